//! Runs the deletion of a Sync as part of its worker.
//!
//! In: the Sync as the API server has it. Out: the deletion continues while the Sync asks for the
//! same; a change of the Sync stops it between two objects, and the decision is made again.

use serde_json::Value;

use super::SyncWorker;
use crate::cluster::LiveSync;
use crate::controller::deletion;
use crate::controller::deletion::{
    DeletionContext, DeletionDecision, DeletionRequest, DeletionStop, has_begun,
};

/// Deletes the objects that go with the Sync, or waits for a person; true if it is to be called
/// again after a back-off.
pub(super) async fn finalize(worker: &mut SyncWorker, sync: &Value, leaving: &DeletionRequest) -> bool {
    let begun = worker.deletes || has_begun(sync);
    let mandate = DeletionDecision::of(sync, begun);
    worker.deletes = begun || mandate == DeletionDecision::Delete;
    worker.context.registry.unready(&worker.name);
    worker.context.neighbours.mark_deleting(&worker.name);
    if !matches!(mandate, DeletionDecision::Held(_)) {
        worker.context.dependencies.leaves(&worker.name);
    }
    worker.stop().await;
    let (mut ending, mut seen) = (worker.context.ending.clone(), worker.seen.clone());
    let brake = DeletionStop::new(LiveSync::of(sync), seen.clone());
    let going = DeletionContext {
        context: &worker.context,
        desk: &worker.desk,
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
