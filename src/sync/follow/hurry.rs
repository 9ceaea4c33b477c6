//! A try to render the newest commit that gives way to the repair of the revision that is kept meanwhile.
//!
//! In: a try that began, and the word that something in the cluster changed. Out: the try is given up once it has had its
//! time. A base or a chart on a silent host would else keep repairs waiting until its deadline.

use std::time::Duration;

use super::super::schedule::Time;
use crate::cluster::Stop;

/// A try of a commit beside a kept revision.
pub(super) struct Hurry {
    /// Ends the try.
    pub(super) stop: Stop,
    /// The try has its time until then.
    until: Time,
    /// Something in the cluster changed.
    is_called: bool,
}

impl Hurry {
    pub(super) fn new(now: Time, patience: Duration) -> Self {
        Self { stop: Stop::default(), until: now + patience, is_called: false }
    }

    /// Something in the cluster changed.
    pub(super) fn call(&mut self, now: Time) {
        self.is_called = true;
        self.look(now);
    }

    /// Gives up the try if it has had its time and is called.
    pub(super) fn look(&mut self, now: Time) {
        if self.is_called && self.until <= now {
            self.stop.stop();
        }
    }

    /// When to look again.
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
