//! Attempt to render the newest commit, which yields to repairs of the held revision.
//!
//! In: an attempt that has begun, and a change in the cluster. Out: the attempt is cancelled once
//! its time is over. A remote base or a chart on a silent host would else delay repairs until the
//! deadline of the reconcile.

use std::time::Duration;

use super::super::schedule::Time;
use crate::cluster::Stop;

/// Attempt to render a commit while another revision is held.
pub(super) struct Hurry {
    /// Cancels the attempt.
    pub(super) stop: Stop,
    /// End of the time in which the attempt cannot be cancelled.
    until: Time,
    /// Something in the cluster has changed.
    is_called: bool,
}

impl Hurry {
    pub(super) fn new(now: Time, patience: Duration) -> Self {
        Self { stop: Stop::default(), until: now + patience, is_called: false }
    }

    /// Notes that something in the cluster has changed.
    pub(super) fn call(&mut self, now: Time) {
        self.is_called = true;
        self.look(now);
    }

    /// Cancels the attempt if its time is over and something in the cluster has changed.
    pub(super) fn look(&mut self, now: Time) {
        if self.is_called && self.until <= now {
            self.stop.stop();
        }
    }

    /// Returns the time of the next check.
    pub(super) fn next(&self) -> Option<Time> {
        (self.is_called && !self.stop.is_stopped()).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_gives_way_when_it_has_had_its_time_and_something_changed() {
        let at = Duration::from_secs;
        let mut hurry = Hurry::new(at(5), at(1));
        hurry.look(at(60));
        assert!(!hurry.stop.is_stopped() && hurry.next().is_none(), "nothing has changed");
        let mut hurry = Hurry::new(at(5), at(1));
        hurry.call(at(5));
        assert!(!hurry.stop.is_stopped());
        assert_eq!(hurry.next(), Some(at(6)));
        hurry.look(at(6));
        assert!(hurry.stop.is_stopped() && hurry.next().is_none());
    }
}
