//! Watches the SyncSets of the cluster, writes their statuses, and writes the Syncs of a set; lists
//! the Secrets of clusters.
//!
//! In: the watch on SyncSets of an instance, and decisions about their Syncs.
//! Out: [`KindWatchEvent`]s, and the answers of the API server.

use serde_json::{Map, Value, json};

use super::apply::APPLY;
use super::change_log::{Target, WriteKind};
use super::own_kinds::{instance_selector, patch_finalizers, patch_status, watch_target};
use super::syncs::{WatchGuard, path};
use super::watch::kind_watch::{KindWatchEvent, watch_kind};
use super::{Cluster, kinds, query};
use crate::api_client::{ApiRequest, METADATA};
use crate::api_error::ApiError;
use crate::pagination::Pages;
use moorline_api::SyncName;
use moorline_core::object::ObjectId;
use moorline_metrics::RequestClass;

/// Requests about SyncSets, as one identity.
#[derive(Clone, Copy)]
pub struct SyncSetRequests<'a>(&'a Cluster);

impl<'a> SyncSetRequests<'a> {
    /// Creates the requests of a cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self(cluster)
    }

    /// Watches all SyncSets of an instance, until the guard is dropped.
    pub fn watch(
        &self,
        instance: Option<&str>,
        tell: impl FnMut(KindWatchEvent) + Send + 'static,
    ) -> WatchGuard {
        let target = watch_target("SyncSet", "syncsets", &instance_selector(instance));
        watch_kind(self.0.0.wire.clone(), target, tell)
    }

    /// Writes the status of a SyncSet.
    ///
    /// # Guarantees
    ///
    /// Writes only to the SyncSet with this uid.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the status was written.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`].
    pub async fn write_status(&self, name: &SyncName, uid: &str, status: &Value) -> Result<(), ApiError> {
        patch_status(&self.0.0, format!("{}/status", set_path(name)), uid, status).await.map(drop)
    }

    /// Sets the finalizers of a SyncSet.
    ///
    /// # Guarantees
    ///
    /// Writes only if the SyncSet still has this resourceVersion.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the finalizers were written.
    ///
    /// # Errors
    ///
    /// 409 if the SyncSet has changed since; otherwise any [`ApiError`].
    pub async fn write_finalizers(
        &self,
        name: &SyncName,
        version: &str,
        finalizers: &[String],
    ) -> Result<(), ApiError> {
        patch_finalizers(&self.0.0, &set_path(name), version, finalizers).await
    }

    /// Lists the metadata of the Secrets of a namespace that a label selector selects. After more
    /// than `limit` Secrets the list ends: it is too long anyway.
    ///
    /// # Guarantees
    ///
    /// Returns every page, or an error; an answer that is no list is one. The API server leaves out
    /// the content of the Secrets.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`].
    pub async fn list_secrets(
        &self,
        namespace: &str,
        selector: &str,
        limit: usize,
    ) -> Result<Vec<Map<String, Value>>, ApiError> {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        let selector = format!("labelSelector={}", query(selector));
        let mut pages = Pages::new(&self.0.0.wire, RequestClass::Verify, &path, &selector);
        let mut found = Vec::new();
        while let Some(page) = pages.next().await? {
            // Something else that answers may send any JSON. Each list of Secrets has a version.
            if page.version.is_empty() {
                return Err(ApiError::InvalidResponse("it is no list of Secrets".into()));
            }
            found.extend(page.items);
            if found.len() > limit {
                break;
            }
        }
        Ok(found)
    }

    /// Creates a Sync of a set, or applies it if `uid` names the existing one. Returns the Sync as
    /// it is stored.
    ///
    /// # Guarantees
    ///
    /// One server-side apply. Writes nothing if a Sync of this name exists that has another uid.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the Sync was written; the watch reports it.
    ///
    /// # Errors
    ///
    /// 409 if another Sync of this name exists; otherwise any [`ApiError`].
    pub async fn apply_child(
        &self,
        name: &SyncName,
        manifest: &Value,
        manager: &str,
        uid: Option<&str>,
    ) -> Result<Value, ApiError> {
        let mut body = manifest.clone();
        let force = match uid {
            Some(uid) => {
                body["metadata"]["uid"] = uid.into();
                true
            }
            // No existing object has this resourceVersion, so the apply conflicts if there is one.
            None => {
                body["metadata"]["resourceVersion"] = "1".into();
                false
            }
        };
        let uri =
            format!("{}?fieldManager={}&fieldValidation=Strict&force={force}", path(name), query(manager));
        let call =
            ApiRequest::new(RequestClass::Object, "patch", uri).content(APPLY, body.to_string().into_bytes());
        let id = sync_id(name)?;
        self.0.send(call, Target { id: &id, owner: None, kind: WriteKind::Apply }).await?.json()
    }

    /// Deletes a Sync of a set.
    ///
    /// # Guarantees
    ///
    /// Deletes only this uid in this resourceVersion.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the Sync was deleted; the watch reports it.
    ///
    /// # Errors
    ///
    /// 404 if it is gone, 409 if it has changed; otherwise any [`ApiError`].
    pub async fn delete_child(&self, name: &SyncName, uid: &str, version: &str) -> Result<(), ApiError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": version},
        });
        let call = ApiRequest::new(RequestClass::Object, "delete", path(name))
            .accept(METADATA)
            .content("application/json", options.to_string().into_bytes());
        let id = sync_id(name)?;
        self.0.send(call, Target { id: &id, owner: None, kind: WriteKind::Delete }).await.map(drop)
    }
}

fn sync_id(name: &SyncName) -> Result<ObjectId, ApiError> {
    ObjectId::new("moorline.dev", "Sync", &name.namespace, &name.name)
        .map_err(|error| ApiError::InvalidResponse(error.to_string().into()))
}

fn set_path(name: &SyncName) -> String {
    let set = kinds::escape(&name.name);
    format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncsets/{set}", name.namespace)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::api_client::METADATA_LIST;
    use crate::scripted_server::scripted_cluster;

    fn page(names: &[&str], next: &str) -> (u16, String) {
        let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        let metadata = json!({"resourceVersion": "7", "continue": next});
        (200, json!({"kind": "List", "metadata": metadata, "items": items}).to_string())
    }

    #[tokio::test]
    async fn a_list_of_secrets_is_whole_or_an_error() {
        let other = |text: &str| (200, text.to_owned());
        let refused = |code: u16| (code, json!({"reason": "Any", "message": "no"}).to_string());
        let first = || page(&["a", "b"], "more");
        let cases = [
            (vec![page(&["a"], "")], Ok(1)),
            (vec![page(&[], "")], Ok(0)),
            (vec![other("{\"metadata\": {\"resourceVersion\": \"7\"}, \"items\": null}")], Ok(0)),
            (vec![first(), page(&["c"], "")], Ok(3)),
            (vec![refused(403)], Err("no")),
            (vec![first(), refused(410)], Err("no")),
            (vec![first(), refused(500)], Err("no")),
            (vec![other("{}")], Err("no list")),
            (vec![first(), other("{\"message\": \"back soon\"}")], Err("no list")),
            (vec![first(), other("<html>")], Err("not JSON")),
            // It is too long after the first page already.
            (vec![page(&["a", "b", "c", "d"], "more"), refused(500)], Ok(4)),
        ];
        for (pages, expect) in cases {
            let (shown, left) = (format!("{pages:?}"), Arc::new(Mutex::new(pages.into_iter())));
            let cluster = scripted_cluster(move |request| {
                assert_eq!(request.headers()["accept"], METADATA_LIST, "not the content");
                assert!(request.uri().query().unwrap().contains("labelSelector=env%3Dprod&"));
                left.lock().unwrap().next().unwrap()
            });
            let found = SyncSetRequests::new(&cluster).list_secrets("shop", "env=prod", 3).await;
            match (&found, expect) {
                (Ok(found), Ok(count)) => assert_eq!(found.len(), count, "{shown}"),
                (Err(failure), Err(part)) => {
                    assert!(failure.to_string().contains(part), "{shown}: {failure}")
                }
                _ => panic!("{shown}: {found:?}"),
            }
        }
    }
}
