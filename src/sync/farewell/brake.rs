//! Stops a deletion between two objects as soon as the Sync asks for something else.
//!
//! In: the Sync by which the deletion was decided, and the Sync as it changes. Out: no request begins any more, and those under
//! way come to their end.

use tokio::sync::{Mutex, MutexGuard, watch};

use super::super::keep::Seen;
use crate::cluster::{Standing, Stop};

/// The brake of one deletion.
pub(crate) struct Brake {
    /// The Sync by which the deletion was decided.
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

    /// Until this is dropped, the deletion is not given up half-way.
    pub(super) async fn writes(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().await
    }

    /// Waits until the Sync asks for something else, and then until nothing of the deletion is under way.
    pub(crate) async fn pulled(&self) {
        let mut seen = self.seen.clone();
        let is_other = |seen: &Seen| {
            seen.as_ref().is_some_and(|it| !Standing::of(&it.sync).asks_the_same(&self.decided_by))
        };
        if seen.wait_for(is_other).await.is_err() {
            // The Sync is gone, or the daemon ends.
            std::future::pending::<()>().await;
        }
        self.stop.stop();
        drop(self.writing.lock().await);
    }
}
