//! Attempt to render the newest commit, which yields to repairs of the held revision.
//!
//! In: an attempt that has begun, and a change in the cluster. Out: the attempt is cancelled once
//! its time is over. Otherwise a remote base or a chart on a silent host would delay repairs until
//! the deadline of the reconcile.

use std::time::Duration;

use super::super::schedule::Uptime;
use crate::cluster::CancelFlag;

/// Attempt to render a commit while another revision is held.
pub(super) struct RenderAttempt {
    /// Cancels the attempt.
    pub(super) stop: CancelFlag,
    /// End of the time in which the attempt cannot be cancelled.
    until: Uptime,
    /// Something in the cluster has changed.
    is_called: bool,
}

impl RenderAttempt {
    pub(super) fn new(now: Uptime, limit: Duration) -> Self {
        Self { stop: CancelFlag::default(), until: now + limit, is_called: false }
    }

    /// Notes that something in the cluster has changed.
    pub(super) fn call(&mut self, now: Uptime) {
        self.is_called = true;
        self.look(now);
    }

    /// Cancels the attempt if its time is over and something in the cluster has changed.
    pub(super) fn look(&mut self, now: Uptime) {
        if self.is_called && self.until <= now {
            self.stop.cancel();
        }
    }

    /// Returns the time of the next check.
    pub(super) fn next(&self) -> Option<Uptime> {
        (self.is_called && !self.stop.is_cancelled()).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_gives_way_when_it_has_had_its_time_and_something_changed() {
        let at = Duration::from_secs;
        let mut hurry = RenderAttempt::new(at(5), at(1));
        hurry.look(at(60));
        assert!(!hurry.stop.is_cancelled() && hurry.next().is_none(), "nothing has changed");
        let mut hurry = RenderAttempt::new(at(5), at(1));
        hurry.call(at(5));
        assert!(!hurry.stop.is_cancelled());
        assert_eq!(hurry.next(), Some(at(6)));
        hurry.look(at(6));
        assert!(hurry.stop.is_cancelled() && hurry.next().is_none());
    }
}
