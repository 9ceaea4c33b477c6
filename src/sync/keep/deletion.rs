//! Keeps a Sync that is being deleted.
//!
//! In: the Sync as the API server has it. Out: its deletion goes on for as long as the Sync asks for the same; a change of
//! that stops it between two objects, and it is decided anew.

use serde_json::Value;

use super::super::farewell::{self, Brake, Going, Leaving, Mandate, has_begun};
use super::Keeper;
use crate::cluster::Standing;

impl Keeper {
    /// Deletes what is to be deleted with the Sync, or waits for a person; true if that is to be tried again in a while.
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
            // It is served again at once, as it is now.
            () = brake.pulled() => false,
            // The next daemon goes on with it.
            _ = ending.wait_for(|ending| *ending) => false,
            // Somebody took the finalizer away; another one of the name may be there, and waits for this.
            _ = seen.wait_for(Option::is_none) => false,
        }
    }
}
