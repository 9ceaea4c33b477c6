//! Runs the deletion of a Sync as part of its worker, and sets its finalizer.
//!
//! In: the Sync as the API server has it. Out: the deletion continues while the Sync asks for the
//! same; a change of the Sync stops it between two objects, and the decision is made again.

use serde_json::Value;

use super::SyncWorker;
use crate::api::{DeletionPolicy, FINALIZER, Sync};
use crate::cluster::LiveSync;
use crate::controller::deletion;
use crate::controller::deletion::{
    DeletionContext, DeletionDecision, DeletionRequest, DeletionStop, has_begun,
};

/// Deletes the objects that go with the Sync, or waits for a person; true if it is to be called
/// again after a back-off.
pub(super) async fn finalize(worker: &mut SyncWorker, sync: &Value, leaving: &DeletionRequest) -> bool {
    let begun = worker.has_begun_deletion || has_begun(sync);
    let mandate = DeletionDecision::of(sync, begun);
    worker.has_begun_deletion = begun || mandate == DeletionDecision::Delete;
    worker.context.peers.begin_deletion(&worker.name, !matches!(mandate, DeletionDecision::Held(_)));
    worker.stop().await;
    let (mut ending, mut seen) = (worker.context.process.ending.clone(), worker.snapshots.clone());
    let brake = DeletionStop::new(LiveSync::of(sync), seen.clone());
    let going = DeletionContext {
        context: &worker.context,
        resource_recorder: &worker.resource_recorder,
        sync,
        brake: &brake,
        has_begun: begun,
    };
    tokio::select! {
        again = deletion::finalize(&going, leaving, mandate) => again,
        // The worker serves the changed Sync at once.
        () = brake.cancelled() => false,
        // The next daemon continues the deletion.
        _ = ending.wait_for(|ending| *ending) => false,
        // A person removed the finalizer; a new Sync of the same name may exist and wait for
        // this task to end.
        _ = seen.wait_for(Option::is_none) => false,
    }
}

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
    let written = worker.context.cluster.syncs().write_finalizers(&worker.name, version, &finalizers).await;
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
    if let Err(failure) =
        worker.context.cluster.syncs().write_finalizers(&worker.name, version, &others).await
    {
        tracing::debug!(sync = %worker.name, %failure, "the finalizer could not be removed");
    }
}
