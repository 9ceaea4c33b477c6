//! Stops a deletion between two objects as soon as the Sync asks for something else.
//!
//! In: the Sync as it was when the deletion was decided, and its later changes.
//! Out: no further request starts, and requests in flight finish.

use tokio::sync::{Mutex, MutexGuard, watch};

use crate::cluster::{CancelFlag, LatestSnapshot, LiveSync};

/// Cancels one deletion when its Sync changes.
pub(crate) struct DeletionStop {
    /// The Sync as it was when the deletion was decided.
    pub(crate) decided_by: LiveSync,
    pub(crate) stop: CancelFlag,
    seen: watch::Receiver<LatestSnapshot>,
    /// Held while objects are written.
    writing: Mutex<()>,
}

impl DeletionStop {
    pub(crate) fn new(decided_by: LiveSync, seen: watch::Receiver<LatestSnapshot>) -> Self {
        Self { decided_by, stop: CancelFlag::default(), seen, writing: Mutex::default() }
    }

    /// Blocks cancellation until the guard is dropped, so that no write is interrupted.
    pub(super) async fn writes(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().await
    }

    /// Waits until the Sync asks for something else, then until no write of the deletion is in
    /// flight.
    pub(crate) async fn cancelled(&self) {
        let mut seen = self.seen.clone();
        let is_other = |seen: &LatestSnapshot| {
            seen.as_ref().is_some_and(|it| !LiveSync::of(&it.sync.read()).asks_the_same(&self.decided_by))
        };
        if seen.wait_for(is_other).await.is_err() {
            // The Sync is gone, or the daemon shuts down.
            std::future::pending::<()>().await;
        }
        self.stop.cancel();
        drop(self.writing.lock().await);
    }
}
