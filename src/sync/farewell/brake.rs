//! Stops a deletion between two objects as soon as the Sync asks for something else.
//!
//! In: the Sync as it was when the deletion was decided, and its later changes.
//! Out: no further request starts, and requests in flight finish.

use tokio::sync::{Mutex, MutexGuard, watch};

use super::super::keep::Seen;
use crate::cluster::{Standing, Stop};

/// Cancels one deletion when its Sync changes.
pub(crate) struct Brake {
    /// The Sync as it was when the deletion was decided.
    pub(crate) decided_by: Standing,
    pub(crate) stop: Stop,
    seen: watch::Receiver<Seen>,
    /// Held while objects are written.
    writing: Mutex<()>,
}

impl Brake {
    pub(crate) fn new(decided_by: Standing, seen: watch::Receiver<Seen>) -> Self {
        Self { decided_by, stop: Stop::default(), seen, writing: Mutex::default() }
    }

    /// Blocks cancellation until the guard is dropped, so that no write is interrupted.
    pub(super) async fn writes(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().await
    }

    /// Waits until the Sync asks for something else, then until no write of the deletion is in
    /// flight.
    pub(crate) async fn pulled(&self) {
        let mut seen = self.seen.clone();
        let is_other = |seen: &Seen| {
            seen.as_ref().is_some_and(|it| !Standing::of(&it.sync).asks_the_same(&self.decided_by))
        };
        if seen.wait_for(is_other).await.is_err() {
            // The Sync is gone, or the daemon shuts down.
            std::future::pending::<()>().await;
        }
        self.stop.stop();
        drop(self.writing.lock().await);
    }
}
