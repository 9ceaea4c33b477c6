//! The finalizer of a Sync, which has its objects deleted before the Sync itself.
//!
//! In: a Sync as the API server has it. Out: the finalizer is set exactly while the spec asks to
//! delete the objects.

use serde_json::Value;

use super::SyncWorker;
use crate::api::{DeletionPolicy, FINALIZER, Sync};

/// Sets or removes the finalizer, so that it is set exactly while the objects are to be deleted
/// with the Sync.
pub(super) async fn finalizer(worker: &SyncWorker, sync: &Sync) -> Option<crate::cluster::ApiError> {
    let mut finalizers = sync.metadata.finalizers.clone().unwrap_or_default();
    let (has, wants) =
        (finalizers.iter().any(|one| one == FINALIZER), sync.spec.deletion_policy == DeletionPolicy::Delete);
    match (has, wants) {
        (true, true) | (false, false) => return None,
        (false, true) => finalizers.push(FINALIZER.to_owned()),
        (true, false) => finalizers.retain(|one| one != FINALIZER),
    }
    let version = sync.metadata.resource_version.as_deref().unwrap_or_default();
    let written = worker.context.cluster.write_finalizers(&worker.name, version, &finalizers).await;
    // After a conflict the newer version of the Sync is on its way already.
    written.err().filter(|failure| failure.code() != Some(409))
}

/// Removes the finalizer where a refused spec asks to orphan the objects when the Sync is
/// deleted.
pub(super) async fn orphan_if_asked(worker: &SyncWorker, sync: &Value) {
    let policy = sync.pointer("/spec/deletionPolicy").and_then(Value::as_str);
    let finalizers = sync.pointer("/metadata/finalizers").and_then(Value::as_array);
    let texts = finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let (own, others): (Vec<String>, Vec<String>) = texts.partition(|one| one == FINALIZER);
    if policy == Some("Delete") || own.is_empty() {
        return;
    }
    let version = sync.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    if let Err(failure) = worker.context.cluster.write_finalizers(&worker.name, version, &others).await {
        tracing::debug!(sync = %worker.name, %failure, "the finalizer could not be removed");
    }
}
