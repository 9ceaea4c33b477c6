//! Runs the deletion of a Sync as part of its worker.
//!
//! In: the Sync as the API server has it. Out: the deletion continues while the Sync asks for the
//! same; a change of the Sync stops it between two objects, and the decision is made again.

use serde_json::Value;

use super::super::farewell::{self, Brake, Going, Leaving, Mandate, has_begun};
use super::Keeper;
use crate::cluster::Standing;

impl Keeper {
    /// Deletes the objects that go with the Sync, or waits for a person; true if it is to be called
    /// again after a back-off.
    pub(super) async fn leave(&mut self, sync: &Value, leaving: &Leaving) -> bool {
        let begun = self.deletes || has_begun(sync);
        let mandate = Mandate::of(sync, begun);
        self.deletes = begun || mandate == Mandate::Delete;
        self.context.registry.unready(&self.name);
        self.context.neighbours.rests(&self.name);
        if !matches!(mandate, Mandate::Held(_)) {
            self.context.dependencies.leaves(&self.name);
        }
        self.stop().await;
        let (mut ending, mut seen) = (self.context.ending.clone(), self.seen.clone());
        let brake = Brake::new(Standing::of(sync), seen.clone());
        let going = Going { context: &self.context, desk: &self.desk, sync, brake: &brake, has_begun: begun };
        tokio::select! {
            again = farewell::leave(&going, leaving, mandate) => again,
            // The worker serves the changed Sync at once.
            () = brake.pulled() => false,
            // The next daemon continues the deletion.
            _ = ending.wait_for(|ending| *ending) => false,
            // A person removed the finalizer; a new Sync of the same name may exist and wait for
            // this task to end.
            _ = seen.wait_for(Option::is_none) => false,
        }
    }
}
