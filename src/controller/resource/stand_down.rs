//! Stops a Sync that may not reconcile, for now or permanently.
//!
//! In: the worker of the Sync. Out: nothing is applied for it, and other Syncs know that it adopts
//! nothing from them. A Sync that is refused permanently, or that another daemon serves, also
//! withdraws its claims, and the owners of those objects reconcile again.

use super::SyncWorker;

impl SyncWorker {
    /// Stops the reconciler and marks the desired state of the Sync as unknown, so that no other
    /// Sync hands anything over to it.
    pub(super) async fn withdraw_claims(&mut self) {
        self.is_incomplete();
        self.desk.stop_reconciling();
        self.stop().await;
        // Twice, because the reconcile that has just finished may have published a render.
        self.is_incomplete();
    }

    /// Withdraws all claims of the Sync: it is refused permanently, or another daemon serves it.
    pub(super) async fn remove_claims(&self) {
        let held = self.context.registry.withdraw_desired(&self.name);
        self.context.neighbours.wake(&held);
        self.context.registry.hand_overs_ended(&self.name).await;
    }

    fn is_incomplete(&self) {
        self.context.dependencies.applied(&self.name, None);
        self.context.registry.unready(&self.name);
        self.context.neighbours.invalidate(&self.name);
    }
}
