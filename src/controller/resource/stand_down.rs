//! Stops a Sync that may not reconcile, for now or permanently.
//!
//! In: the worker of the Sync. Out: nothing is applied for it, and other Syncs know that it adopts
//! nothing from them. A Sync that is refused permanently, or that another daemon serves, also
//! withdraws its claims, and the owners of those objects reconcile again.

use super::SyncWorker;

/// Stops the reconciler and marks the desired state of the Sync as unknown, so that no other
/// Sync hands anything over to it.
pub(super) async fn withdraw_claims(worker: &mut SyncWorker) {
    is_incomplete(worker);
    worker.resource_recorder.stop_reconciling();
    worker.stop().await;
    // Twice, because the reconcile that has just finished may have published a render.
    is_incomplete(worker);
}

/// Withdraws all claims of the Sync: it is refused permanently, or another daemon serves it.
pub(super) async fn remove_claims(worker: &SyncWorker) {
    worker.context.peers.withdraw_desired(&worker.name);
    worker.context.peers.wait_for_hand_overs(&worker.name).await;
}

fn is_incomplete(worker: &SyncWorker) {
    worker.context.peers.set_applied(&worker.name, None, None);
    worker.context.peers.mark_not_ready(&worker.name);
    worker.context.peers.invalidate(&worker.name);
}
