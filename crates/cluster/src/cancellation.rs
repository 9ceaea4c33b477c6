//! Cancels queued writes that are superseded by newer input.
//!
//! In: a cancellation.
//! Out: queued writes end without a request. A group of requests that has begun is completed,
//! because its later requests belong to the first one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Cancels queued writes; clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    stopped: AtomicBool,
    notify: Notify,
}

impl CancelFlag {
    /// Sets the flag: no further write begins.
    pub fn cancel(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// True once the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Waits until the flag is set.
    pub async fn wait_until_cancelled(&self) {
        let mut notified = std::pin::pin!(self.0.notify.notified());
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}

/// A group of requests; once cancelled, its first request is not sent any more.
#[derive(Debug)]
pub(super) struct WriteGroup {
    stop: CancelFlag,
    begun: AtomicBool,
}

impl WriteGroup {
    pub(super) fn new(stop: &CancelFlag) -> Self {
        Self { stop: stop.clone(), begun: AtomicBool::new(false) }
    }

    /// Waits for a turn; none if the group was cancelled before its first request.
    pub(super) async fn begin<T>(&self, turn: impl Future<Output = T>) -> Option<T> {
        if self.begun.load(Ordering::SeqCst) {
            return Some(turn.await);
        }
        tokio::select! {
            biased;
            () = self.stop.wait_until_cancelled() => None,
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
        let stop = CancelFlag::default();
        let (begun, waiting) = (WriteGroup::new(&stop), WriteGroup::new(&stop));
        assert_eq!(begun.begin(async { 1 }).await, Some(1));
        let (given_up, ()) =
            tokio::join!(waiting.begin(std::future::pending::<()>()), async { stop.cancel() });
        assert_eq!(given_up, None);
        assert_eq!(begun.begin(async { 2 }).await, Some(2), "it belongs to the first");
        assert_eq!(WriteGroup::new(&stop).begin(async { 3 }).await, None);
    }
}
