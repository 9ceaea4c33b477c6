//! The end of what is about to be written, because something newer has come.
//!
//! In: a word that nothing more is to be written. Out: whatever waits for its turn gives up. What has begun comes to
//! its end: the later requests of a write that takes several belong to the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Set when nothing more is to be written; clones tell of the same.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    stopped: AtomicBool,
    told: Notify,
}

impl Stop {
    /// From now on nothing begins.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.told.notify_waiters();
    }

    /// True if nothing more is to be written.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Waits until nothing more is to be written.
    pub async fn stopped(&self) {
        let mut told = std::pin::pin!(self.0.told.notified());
        told.as_mut().enable();
        if !self.is_stopped() {
            told.await;
        }
    }
}

/// Requests of which the first is not sent any more once they are stopped.
#[derive(Debug)]
pub(super) struct Together {
    stop: Stop,
    begun: AtomicBool,
}

impl Together {
    pub(super) fn new(stop: &Stop) -> Self {
        Self { stop: stop.clone(), begun: AtomicBool::new(false) }
    }

    /// Waits for a turn; none if nothing was sent yet and nothing is to be sent any more.
    pub(super) async fn begin<T>(&self, turn: impl Future<Output = T>) -> Option<T> {
        if self.begun.load(Ordering::SeqCst) {
            return Some(turn.await);
        }
        tokio::select! {
            biased;
            () = self.stop.stopped() => None,
            turn = turn => {
                self.begun.store(true, Ordering::SeqCst);
                Some(turn)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_has_not_begun_is_given_up() {
        let stop = Stop::default();
        let (begun, waiting) = (Together::new(&stop), Together::new(&stop));
        assert_eq!(begun.begin(async { 1 }).await, Some(1));
        let (given_up, ()) = tokio::join!(waiting.begin(std::future::pending::<()>()), async { stop.stop() });
        assert_eq!(given_up, None);
        assert_eq!(begun.begin(async { 2 }).await, Some(2), "it belongs to the first");
        assert_eq!(Together::new(&stop).begin(async { 3 }).await, None);
    }
}
