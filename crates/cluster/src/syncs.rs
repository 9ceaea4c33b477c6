//! Watches the Syncs of the cluster, and writes their statuses, finalizers and Events.
//!
//! In: the watch on all Syncs, and statuses to write.
//! Out: [`SyncWatchEvent`]s. A status is written as a whole, in one request: it needs no read
//! before, and fields that are left out disappear.

mod sync_changes;
mod sync_text;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;

use super::own_kinds::{instance_selector, patch_finalizers, patch_status, watch_target};
use super::watch::{WatchEvent, WatchTarget, follow};
use super::{Inner, kinds};
use crate::api_client::{ApiRequest, ApiResponse, METADATA};
use crate::api_error::ApiError;
use moorline_api::{
    DAEMON_MANAGER, DELETION_ANNOTATION, HOSTS_ANNOTATION, KEYS_LABEL, MOVES_TO_ANNOTATION, SyncName,
};
use moorline_metrics::RequestClass;
pub use sync_text::SyncText;

/// Event of the watch on Syncs.
#[derive(Debug)]
pub enum SyncWatchEvent {
    /// The current state of a Sync.
    Seen(SyncName, Box<Map<String, Value>>),
    /// A Sync was deleted.
    Gone(SyncName),
    /// All existing Syncs were reported.
    Listed,
    /// A new list begins.
    Begins,
    /// The server was set back to an earlier state.
    Rewound,
    /// The server was upgraded or downgraded.
    Upgraded,
    /// Syncs cannot be watched.
    Broken(ApiError),
}

/// A Sync as the API server had it.
#[derive(Clone)]
pub struct SyncSnapshot {
    /// The whole resource.
    pub sync: Arc<SyncText>,
    /// Counts the server's histories (a new one after a restored etcd backup): resourceVersions of
    /// different histories are not comparable.
    pub history: u64,
}

/// The newest snapshot of a Sync; none once the Sync is gone.
pub type LatestSnapshot = Option<SyncSnapshot>;

/// Guard of a watch, which ends when it is dropped.
#[derive(Debug)]
pub struct WatchGuard(pub(super) AbortHandle);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Requests about Syncs, and about the Leases, Secrets and Events of the daemon.
#[derive(Clone, Copy)]
pub struct SyncRequests<'a>(pub(super) &'a Inner);

impl SyncRequests<'_> {
    /// Watches all Syncs of an instance, until the guard is dropped.
    pub fn watch(
        &self,
        instance: Option<&str>,
        mut tell: impl FnMut(SyncWatchEvent) + Send + 'static,
    ) -> WatchGuard {
        let target =
            WatchTarget { patient: false, ..watch_target("Sync", "syncs", &instance_selector(instance)) };
        let sink = move |event| match event {
            WatchEvent::Begins => tell(SyncWatchEvent::Begins),
            WatchEvent::Listed(_) => tell(SyncWatchEvent::Listed),
            WatchEvent::Rewound => tell(SyncWatchEvent::Rewound),
            WatchEvent::Upgraded => tell(SyncWatchEvent::Upgraded),
            WatchEvent::Broken(failure) => tell(SyncWatchEvent::Broken(failure)),
            WatchEvent::Seen(object) => {
                if let Some(name) = name_of(&object) {
                    tell(SyncWatchEvent::Seen(name, Box::new(object)));
                }
            }
            WatchEvent::Gone(object) => {
                if let Some(name) = name_of(&object) {
                    tell(SyncWatchEvent::Gone(name));
                }
            }
        };
        WatchGuard(tokio::spawn(follow(self.0.wire.clone(), target, sink)).abort_handle())
    }

    /// Writes the status of a Sync and returns the new resourceVersion. `version` is the last known
    /// one, 0 for none.
    ///
    /// # Guarantees
    ///
    /// Writes only to the Sync with this uid. The status is replaced as a whole.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the status was written.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`]; a conflict of versions is resolved by a patch.
    pub async fn write_status(
        &self,
        name: &SyncName,
        uid: &str,
        version: u64,
        status: Value,
    ) -> Result<u64, ApiError> {
        let replaced = match version {
            0 => None,
            version => self.replace_status(name, uid, version, &status).await?,
        };
        let reply = match replaced {
            Some(reply) => reply,
            None => patch_status(self.0, status_path(name), uid, &status).await?,
        };
        let object: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let version = self::version(&object);
        self.0.wire.write_history.note(&self.0.wire.client, &path(name), &name.name, version);
        Ok(version)
    }

    /// Updates the status, which costs the server less than any patch. None after a concurrent
    /// write to the Sync.
    async fn replace_status(
        &self,
        name: &SyncName,
        uid: &str,
        version: u64,
        status: &Value,
    ) -> Result<Option<ApiResponse>, ApiError> {
        let body = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "status": status,
            "metadata": {
                "namespace": &*name.namespace, "name": &*name.name, "uid": uid,
                "resourceVersion": version.to_string(),
            },
        });
        let call = ApiRequest::new(RequestClass::Status, "update", status_path(name))
            .accept(METADATA)
            .content("application/json", body.to_string().into_bytes());
        match self.0.status_limiter.send(&self.0.wire, call, None).await {
            Err(failure) if failure.code() == Some(409) => Ok(None),
            reply => reply.map(Some),
        }
    }

    /// Sets the finalizers of a Sync.
    ///
    /// # Guarantees
    ///
    /// Writes only if the Sync still has this resourceVersion.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the finalizers were written.
    ///
    /// # Errors
    ///
    /// 409 if the Sync has changed since; otherwise any [`ApiError`].
    pub async fn write_finalizers(
        &self,
        name: &SyncName,
        version: &str,
        finalizers: &[String],
    ) -> Result<(), ApiError> {
        patch_finalizers(self.0, &path(name), version, finalizers).await
    }

    /// Reads the Sync of this name, also one that another daemon serves; none if it does not exist.
    pub async fn read_live(&self, name: &SyncName) -> Result<Option<LiveSync>, ApiError> {
        let reply = match self
            .0
            .wire
            .send(ApiRequest::new(RequestClass::Verify, "get", path(name)).accept(METADATA))
            .await
        {
            Err(failure) if failure.code() == Some(404) => return Ok(None),
            reply => reply?,
        };
        let sync: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        Ok(Some(LiveSync::of(&sync)))
    }

    /// True if the Lease of this `namespace/name` is held and was renewed within its duration, as
    /// far as the clocks agree. This is for information, not for safety: a daemon that must not
    /// write has no permit.
    pub async fn is_lease_held(&self, lease: &str) -> Result<bool, ApiError> {
        let Some((namespace, name)) = lease.split_once('/') else { return Ok(false) };
        let name = kinds::escape(name);
        let uri = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let reply = match self.0.wire.send(ApiRequest::new(RequestClass::Lease, "get", uri)).await {
            Err(failure) if failure.code() == Some(404) => return Ok(false),
            reply => reply?,
        };
        let lease: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = |field: &str| lease.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let renewed: jiff::Timestamp = text("/spec/renewTime").parse().unwrap_or_default();
        let lasts = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64).unwrap_or_default();
        let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default();
        let age = now.duration_since(renewed).unsigned_abs();
        Ok(!text("/spec/holderIdentity").is_empty() && age < std::time::Duration::from_secs(lasts))
    }

    /// Reads the decoded data of a Secret; none if it does not exist.
    pub async fn read_secret(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, ApiError> {
        let uri = format!("/api/v1/namespaces/{namespace}/secrets/{}", kinds::escape(name));
        match self.0.wire.send(ApiRequest::new(RequestClass::Verify, "get", uri)).await {
            Ok(reply) => Ok(Some(decode(&reply.body)?)),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Creates a Kubernetes Event about a Sync.
    ///
    /// # Guarantees
    ///
    /// One create request without retry.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the Event was created.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`].
    pub async fn write_event(&self, event: Value, namespace: &str) -> Result<(), ApiError> {
        let uri =
            format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events?fieldManager={DAEMON_MANAGER}");
        let call = ApiRequest::new(RequestClass::Status, "create", uri)
            .accept(METADATA)
            .content("application/json", event.to_string().into_bytes());
        self.0.status_limiter.send(&self.0.wire, call, None).await.map(drop)
    }
}

/// Metadata of an existing Sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSync {
    /// Its uid.
    pub uid: Box<str>,
    /// Its generation, which counts changes of the spec.
    pub generation: Option<i64>,
    /// A person's answer about its deletion.
    pub answer: Option<Box<str>>,
    /// The Sync that its objects move to, as written in the annotation.
    pub moves_to: Option<Box<str>>,
    /// Its resourceVersion. Every write changes it, so it says nothing about the spec.
    pub version: Box<str>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

impl LiveSync {
    /// Reads the metadata of a Sync.
    pub fn of(sync: &Value) -> Self {
        let metadata = sync.get("metadata").unwrap_or(&Value::Null);
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default().into();
        let annotation = |key: &str| metadata.get("annotations")?.get(key)?.as_str().map(Box::from);
        let finalizers = metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten();
        Self {
            uid: text("uid"),
            generation: metadata.get("generation").and_then(Value::as_i64),
            answer: annotation(DELETION_ANNOTATION),
            moves_to: annotation(MOVES_TO_ANNOTATION),
            version: text("resourceVersion"),
            finalizers: finalizers.filter_map(|one| Some(one.as_str()?.to_owned())).collect(),
        }
    }

    /// True if both have the same spec and the same instructions.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        (&self.uid, self.generation) == (&other.uid, other.generation)
            && (&self.answer, &self.moves_to) == (&other.answer, &other.moves_to)
    }
}

/// Returns the resourceVersion of an object as a number, as API servers compare it.
pub fn version(object: &Value) -> u64 {
    let text = object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Decoded data of a Secret. It is never formatted.
#[derive(Clone)]
pub struct SecretData {
    /// Keys and values.
    pub data: Vec<(String, Vec<u8>)>,
    /// The hosts that may receive it, from its annotation.
    pub hosts: Option<Box<str>>,
    /// resourceVersion of the Secret.
    pub version: Box<str>,
    /// True if its label says that it holds the keys of a daemon.
    pub holds_keys: bool,
}

fn decode(body: &[u8]) -> Result<SecretData, ApiError> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    // Unreadable content is not quoted: it may be a secret value.
    let bad = || ApiError::InvalidResponse("a Secret that cannot be parsed".into());
    let body: Value = serde_json::from_slice(body).map_err(|_| bad())?;
    let data = body.get("data").and_then(Value::as_object);
    let entries = data.into_iter().flatten().map(|(key, value)| {
        let value = value.as_str().and_then(|text| STANDARD.decode(text).ok()).ok_or_else(bad)?;
        Ok((key.clone(), value))
    });
    let metadata = |field: &str| body.get("metadata").and_then(|metadata| metadata.get(field));
    let hosts = metadata("annotations")
        .and_then(|all| all.get(HOSTS_ANNOTATION))
        .and_then(Value::as_str)
        .map(Box::from);
    let version = metadata("resourceVersion").and_then(Value::as_str).ok_or_else(bad)?.into();
    let holds_keys = metadata("labels").and_then(|all| all.get(KEYS_LABEL)).is_some();
    Ok(SecretData { data: entries.collect::<Result<_, _>>()?, hosts, version, holds_keys })
}

/// Returns namespace and name of an object.
pub fn name_of(object: &Map<String, Value>) -> Option<SyncName> {
    let text = |field: &str| object.get("metadata")?.get(field)?.as_str();
    Some(SyncName::new(text("namespace")?, text("name")?))
}

/// Path for writing a status. The content is ours, so the server may skip the search for unknown
/// fields, for which it would decode everything twice.
fn status_path(name: &SyncName) -> String {
    format!("{}/status?fieldManager={DAEMON_MANAGER}&fieldValidation=Ignore", path(name))
}

pub(super) fn path(name: &SyncName) -> String {
    format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncs/{}", name.namespace, kinds::escape(&name.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_or_names_another_sync_to_move_to_asks_for_something_else() {
        let sync = |generation: i64, annotations: Value| {
            LiveSync::of(
                &json!({"metadata": {"uid": "1", "generation": generation, "annotations": annotations}}),
            )
        };
        let before = sync(1, json!({"moorline.dev/moves-to": "ops/new", "other": "1"}));
        assert_eq!(before.moves_to.as_deref(), Some("ops/new"));
        assert!(before.asks_the_same(&sync(1, json!({"moorline.dev/moves-to": "ops/new", "other": "2"}))));
        assert!(!before.asks_the_same(&sync(1, json!({"other": "1"}))));
        assert!(!before.asks_the_same(&sync(1, json!({"moorline.dev/moves-to": "ops/newer"}))));
        assert!(!before.asks_the_same(&sync(2, json!({"moorline.dev/moves-to": "ops/new"}))));
        let answer = json!({"moorline.dev/moves-to": "ops/new", "moorline.dev/deletion": "Orphan@1"});
        assert!(!before.asks_the_same(&sync(1, answer)));
    }
}
