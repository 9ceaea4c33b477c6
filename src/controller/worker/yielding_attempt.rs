//! Attempt to render the newest commit, which yields to repairs of the held revision.
//!
//! In: an attempt that has begun, and a change in the cluster before or during it. Out: the attempt
//! is cancelled once its time is over. Otherwise a remote base or a chart on a silent host would
//! delay repairs until the deadline of the reconcile.

use std::time::Duration;

use super::super::schedule::Uptime;
use crate::cluster::CancelFlag;

/// The attempt of a Sync to render a commit, and the changes that it yields to.
#[derive(Default)]
pub(super) struct RenderAttempts {
    running: Option<RenderAttempt>,
    /// Something in the cluster has changed that the running reconcile may have to repair.
    is_called: bool,
    /// Something in the cluster has changed since the running reconcile began.
    has_changed: bool,
}

/// Attempt to render a commit while another revision is held.
struct RenderAttempt {
    /// Cancels the attempt.
    stop: CancelFlag,
    /// End of the time in which the attempt cannot be cancelled.
    until: Uptime,
}

impl RenderAttempts {
    /// Begins a reconcile with an attempt, which has this time. A change from before is to be
    /// repaired as well.
    pub(super) fn begin(&mut self, now: Uptime, limit: Duration) {
        self.begin_none();
        self.running = Some(RenderAttempt { stop: CancelFlag::default(), until: now + limit });
    }

    /// Begins a reconcile without an attempt.
    pub(super) fn begin_none(&mut self) {
        (self.running, self.is_called) = (None, std::mem::take(&mut self.has_changed));
    }

    /// Ends the reconcile. One that was stopped leaves its changes to the next one.
    pub(super) fn end(&mut self, is_stopped: bool) {
        self.running = None;
        self.has_changed |= std::mem::take(&mut self.is_called) && is_stopped;
    }

    /// Notes that something in the cluster has changed.
    pub(super) fn call(&mut self, now: Uptime) {
        (self.is_called, self.has_changed) = (true, true);
        self.look(now);
    }

    /// Cancels the attempt if its time is over and something in the cluster has changed.
    pub(super) fn look(&self, now: Uptime) {
        if let Some(attempt) = self.running.as_ref().filter(|it| self.is_called && it.until <= now) {
            attempt.stop.cancel();
        }
    }

    /// Returns the time of the next check.
    pub(super) fn next(&self) -> Option<Uptime> {
        let attempt = self.running.as_ref()?;
        (self.is_called && !attempt.stop.is_cancelled()).then_some(attempt.until)
    }

    /// Returns the flag that cancels the attempt.
    pub(super) fn stop(&self) -> CancelFlag {
        self.running.as_ref().map(|attempt| attempt.stop.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_gives_way_when_it_has_had_its_time_and_something_changed() {
        let at = Duration::from_secs;
        let mut attempts = RenderAttempts::default();
        attempts.begin(at(5), at(1));
        attempts.look(at(60));
        assert!(!attempts.stop().is_cancelled() && attempts.next().is_none(), "nothing has changed");
        attempts.end(false);
        attempts.begin(at(5), at(1));
        attempts.call(at(5));
        assert!(!attempts.stop().is_cancelled());
        assert_eq!(attempts.next(), Some(at(6)));
        attempts.look(at(6));
        assert!(attempts.stop().is_cancelled() && attempts.next().is_none());
    }

    #[test]
    fn a_change_before_a_try_calls_it_until_a_reconcile_has_seen_it() {
        let at = Duration::from_secs;
        let mut attempts = RenderAttempts::default();
        // The change triggers the reconcile, which finds that the next try is due.
        attempts.call(at(5));
        attempts.begin(at(5), at(1));
        assert_eq!(attempts.next(), Some(at(6)));
        // Stopped for a newer commit, it has repaired nothing.
        attempts.end(true);
        attempts.begin(at(7), at(1));
        assert_eq!(attempts.next(), Some(at(8)));
        attempts.end(false);
        attempts.begin(at(9), at(1));
        assert_eq!(attempts.next(), None, "it was repaired");
        // A change during a reconcile may have come after its look at the cluster.
        attempts.call(at(9));
        attempts.end(false);
        attempts.begin(at(11), at(1));
        assert_eq!(attempts.next(), Some(at(12)));
        attempts.end(false);
        attempts.call(at(13));
        attempts.begin_none();
        attempts.end(true);
        attempts.begin(at(13), at(1));
        assert_eq!(attempts.next(), Some(at(14)), "stopped before it repaired anything");
        attempts.end(false);
        attempts.call(at(13));
        attempts.begin_none();
        attempts.end(false);
        attempts.begin(at(14), at(1));
        assert_eq!(attempts.next(), None, "repaired by a reconcile that tries nothing");
    }
}
