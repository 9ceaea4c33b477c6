//! The consecutive terms of one daemon.
//!
//! In: the permit of each term.
//! Out: [`Terms`], from which every request gets the permit of the current term. A permit that
//! ended never becomes valid again: a new term has a new permit, and a write that was queued in an
//! earlier term is refused.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::write_permit::WritePermit;
use moorline_runtime::clock;

/// The permit of the current term. Cheap to clone; all clones share the term.
#[derive(Debug, Clone)]
pub struct Terms(Arc<TermState>);

#[derive(Debug)]
struct TermState {
    permits: watch::Sender<WritePermit>,
    /// Start of the current term.
    began: Mutex<Instant>,
}

impl From<WritePermit> for Terms {
    fn from(first: WritePermit) -> Self {
        Self(Arc::new(TermState { permits: watch::Sender::new(first), began: Mutex::new(clock::now()) }))
    }
}

impl Terms {
    /// Returns the permit of the current term, which may have ended.
    #[must_use]
    pub fn current(&self) -> WritePermit {
        self.0.permits.borrow().clone()
    }

    /// Starts the next term. The permit of the last one must have ended.
    pub fn start_term(&self, permit: WritePermit) {
        debug_assert!(!self.current().may_write(), "two terms never overlap");
        *self.0.began.lock().unwrap_or_else(PoisonError::into_inner) = clock::now();
        self.0.permits.send_replace(permit);
    }

    /// Start of the current term. Nothing was done before it, so waiting times count from here.
    pub fn term_started_at(&self) -> Instant {
        *self.0.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this daemon may write.
    pub async fn wait_until_leading(&self) {
        let mut terms = self.0.permits.subscribe();
        while !terms.borrow_and_update().may_write() {
            if terms.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Returns a receiver of the permits of later terms.
    pub fn subscribe(&self) -> watch::Receiver<WritePermit> {
        self.0.permits.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::super::clock::{Clock, Moment};
    use super::*;

    #[test]
    fn a_new_term_has_a_new_permit_and_the_old_one_stays_ended() {
        let permit = || {
            WritePermit::until(
                Moment::now() + Duration::from_secs(60),
                Duration::from_secs(1),
                Clock::Machine,
            )
        };
        let terms = Terms::from(permit());
        let (queued, other) = (terms.current(), terms.clone());
        assert!(terms.wait_until_leading().now_or_never().is_some());
        queued.end();
        let waiting = other.wait_until_leading();
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        terms.start_term(permit());
        assert!(waiting.as_mut().now_or_never().is_some());
        assert!(other.current().may_write());
        assert!(!queued.may_write(), "what was queued in the last term is not written in this one");
    }
}
