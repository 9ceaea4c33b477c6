//! Reads the statuses of objects, for health checks.
//!
//! In: ids of objects, or a namespace with many of them.
//! Out: each object in full, in its current state. For a namespace, all objects with the label of
//! the Sync are listed in pages, so that a thousand objects that change together cost ten requests.
//! For a workload, the ReplicaSets and Pods that its selector matches.

use futures::StreamExt as _;
use serde_json::{Map, Value};

use super::apply::unknown;
use super::store::object;
use super::{Cluster, query};
use crate::api_error::ApiError;
use crate::pagination::Pages;
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::{GroupKind, Object, ObjectId};
use moorline_health::ObjectList;
use moorline_metrics::RequestClass;

/// Maximum number of concurrent reads of single objects.
const SIDE_BY_SIDE: usize = 4;

/// Objects that belong to a workload.
#[derive(Debug, Default)]
pub struct WorkloadChildren {
    /// ReplicaSets of its namespace.
    pub replica_sets: Vec<Map<String, Value>>,
    /// Pods of its namespace.
    pub pods: Vec<Map<String, Value>>,
}

/// Reads of whole objects, for their health.
#[derive(Clone, Copy)]
pub struct StatusReads<'a>(pub(super) &'a Cluster);

impl StatusReads<'_> {
    /// Reads objects in full and passes each one to `take` on arrival: none if it does not exist
    /// any more.
    pub async fn read_each(
        &self,
        owner: &SyncName,
        ids: Vec<ObjectId>,
        mut take: impl FnMut(&ObjectId, Result<Option<Object>, ApiError>),
    ) {
        let reads = futures::stream::iter(ids).map(|id| async move {
            let read = self.read(owner, &id).await;
            (id, read)
        });
        let mut reads = reads.buffer_unordered(SIDE_BY_SIDE);
        while let Some((id, read)) = reads.next().await {
            take(&id, read);
        }
    }

    /// Reads an object in full: none if it does not exist any more.
    pub async fn read(&self, owner: &SyncName, id: &ObjectId) -> Result<Option<Object>, ApiError> {
        let version =
            self.0.read_observed(owner, |set| set.get(id).map(|seen| seen.resource_version.clone()));
        self.0.objects().since(id, &version.unwrap_or_default()).await
    }

    /// Lists all objects of a Sync of one kind in one namespace, and passes each one to `take` on
    /// arrival.
    pub async fn list(
        &self,
        owner: &SyncName,
        place: ObjectList,
        mut take: impl FnMut(&ObjectId, Result<Option<Object>, ApiError>),
    ) {
        let ObjectList { kind, namespace, mut ids } = place;
        let kinds = self.0.kinds();
        let Some(served) = kinds.get(&kind) else {
            ids.iter().for_each(|id| take(id, Err(unknown(id))));
            return;
        };
        let path = served.collection(&kind.group, served.preferred(), namespace.as_deref());
        let selector = format!("labelSelector={}", query(&format!("{SYNC_LABEL}={}", owner.label())));
        let mut pages = Pages::new(&self.0.0.wire, RequestClass::Verify, &path, &selector).of_whole_objects();
        let failure = loop {
            match pages.next().await {
                Ok(Some(page)) => {
                    for mut body in page.items {
                        // Items of a list do not repeat the kind of the list.
                        body.insert("kind".to_owned(), (*kind.kind).into());
                        let found = object(&kind, served.preferred(), body);
                        if let Some(found) = found.filter(|found| ids.remove(&found.id)) {
                            let id = found.id.clone();
                            take(&id, Ok(Some(found)));
                        }
                    }
                }
                Ok(None) => break None,
                Err(failure) => break Some(failure),
            }
        };
        for id in ids {
            take(&id, failure.clone().map_or(Ok(None), Err));
        }
    }

    /// Reads the objects that belong to a workload; at most one page of each kind.
    pub async fn workload_children(&self, workload: &Object) -> Result<WorkloadChildren, ApiError> {
        let Some(selector) = selector(&workload.body) else { return Ok(WorkloadChildren::default()) };
        let namespace = workload.id.namespace();
        let replica_sets = match workload.id.is_kind("apps", "Deployment") {
            true => self.selected("apps", "ReplicaSet", namespace, &selector).await?,
            false => Vec::new(),
        };
        Ok(WorkloadChildren { replica_sets, pods: self.selected("", "Pod", namespace, &selector).await? })
    }

    /// Returns the first page of a selector.
    async fn selected(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Map<String, Value>>, ApiError> {
        let kinds = self.0.kinds();
        let Some(served) = kinds.get(&GroupKind::new(group, kind)) else { return Ok(Vec::new()) };
        let path = served.collection(group, served.preferred(), namespace);
        let selector = format!("labelSelector={}", query(selector));
        let mut pages = Pages::new(&self.0.0.wire, RequestClass::Verify, &path, &selector).of_whole_objects();
        Ok(pages.next().await?.map(|page| page.items).unwrap_or_default())
    }
}

/// Formats the selector of a workload as a query parameter; none if it has none or it is malformed.
fn selector(workload: &Map<String, Value>) -> Option<String> {
    let selector = workload.get("spec")?.get("selector")?;
    let equals = selector.get("matchLabels").and_then(Value::as_object);
    let equals = equals
        .into_iter()
        .flatten()
        .filter_map(|(label, value)| Some(format!("{label}={}", value.as_str()?)));
    let others = selector.get("matchExpressions").and_then(Value::as_array);
    let others = others.into_iter().flatten().filter_map(|expression| {
        let text = |field: &str| expression.get(field).and_then(Value::as_str);
        let values = expression.get("values").and_then(Value::as_array);
        let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        let label = text("key")?;
        match text("operator")? {
            "In" => Some(format!("{label} in ({})", values.join(","))),
            "NotIn" => Some(format!("{label} notin ({})", values.join(","))),
            "Exists" => Some(label.to_owned()),
            "DoesNotExist" => Some(format!("!{label}")),
            _ => None,
        }
    });
    let parts: Vec<String> = equals.chain(others).collect();
    (!parts.is_empty()).then(|| parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_written_as_a_parameter_has_it() {
        let check = |json: &str, expect: Option<&str>| {
            let workload = serde_json::from_str(json).unwrap();
            assert_eq!(selector(&workload).as_deref(), expect, "{json}");
        };
        check(
            r#"{"spec": {"selector": {"matchLabels": {"app": "web", "tier": "a"}}}}"#,
            Some("app=web,tier=a"),
        );
        let others = r#"{"spec": {"selector": {"matchExpressions": [
            {"key": "a", "operator": "In", "values": ["x", "y"]}, {"key": "b", "operator": "NotIn", "values": ["z"]},
            {"key": "c", "operator": "Exists"}, {"key": "d", "operator": "DoesNotExist"}]}}}"#;
        check(others, Some("a in (x,y),b notin (z),c,!d"));
        check(r#"{"spec": {"selector": {}}}"#, None);
        check(r#"{"spec": {}}"#, None);
    }
}
