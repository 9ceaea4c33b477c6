//! Stops a Sync that may not reconcile, for now or permanently.
//!
//! In: the worker of the Sync. Out: nothing is applied for it, and other Syncs know that it adopts
//! nothing from them. A Sync that is refused permanently, or that another daemon serves, also
//! withdraws its claims, and the owners of those objects reconcile again.

use super::Keeper;

impl Keeper {
    /// Stops the reconciler and marks the desired state of the Sync as unknown, so that no other
    /// Sync hands anything over to it.
    pub(super) async fn takes_nothing(&mut self) {
        self.is_incomplete();
        self.desk.is_left();
        self.stop().await;
        // Twice, because the reconcile that has just finished may have published a render.
        self.is_incomplete();
    }

    /// Withdraws all claims of the Sync: it is refused permanently, or another daemon serves it.
    pub(super) async fn claims_nothing(&self) {
        let held = self.context.registry.claims_nothing(&self.name).await;
        self.context.neighbours.wake(&held);
    }

    fn is_incomplete(&self) {
        self.context.dependencies.applied(&self.name, None);
        self.context.registry.unready(&self.name);
        self.context.neighbours.anew(&self.name);
    }
}
