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

impl SyncWorker {
    /// Deletes the objects that go with the Sync, or waits for a person; true if it is to be called
    /// again after a back-off.
    pub(super) async fn finalize(&mut self, sync: &Value, leaving: &DeletionRequest) -> bool {
        let begun = self.deletes || has_begun(sync);
        let mandate = DeletionDecision::of(sync, begun);
        self.deletes = begun || mandate == DeletionDecision::Delete;
        self.context.registry.unready(&self.name);
        self.context.neighbours.mark_deleting(&self.name);
        if !matches!(mandate, DeletionDecision::Held(_)) {
            self.context.dependencies.leaves(&self.name);
        }
        self.stop().await;
        let (mut ending, mut seen) = (self.context.ending.clone(), self.seen.clone());
        let brake = DeletionStop::new(LiveSync::of(sync), seen.clone());
        let going = DeletionContext {
            context: &self.context,
            desk: &self.desk,
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
}
