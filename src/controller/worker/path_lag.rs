//! Time in which a missing path may be younger than the revision that lacks it.
//!
//! In: a new path or a revision that another Sync polled, and the answers of the Git server.
//! Out: true while the path may have been pushed after the revision was polled, for at most
//! [`MAX_LAG`].

use std::time::{Duration, Instant};

/// Longest time in which a missing path is not reported.
const MAX_LAG: Duration = Duration::from_secs(30);

/// Compares the time of the last poll with the time at which the path came into use.
#[derive(Debug, Default)]
pub(super) struct PathLag {
    /// Polls that began before this moment do not count; none if the newest poll counts.
    since: Option<Instant>,
    /// A poll was requested since then.
    has_requested: bool,
}

impl PathLag {
    /// The path is new, or the revision comes from another Sync.
    pub(super) fn begin(&mut self, now: Instant) {
        *self = Self { since: Some(now), has_requested: false };
    }

    /// The Git server answered a poll that began at `asked`.
    pub(super) fn answered(&mut self, asked: Instant) {
        self.since = self.since.filter(|since| asked < *since);
    }

    /// True while the path may be younger than the revision.
    pub(super) fn is_outdated(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.saturating_duration_since(since) < MAX_LAG)
    }

    /// Returns true on the first call: the caller has to request a poll.
    pub(super) fn requests_poll(&mut self) -> bool {
        !std::mem::replace(&mut self.has_requested, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_began_before_the_path_was_set_does_not_count() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut lag = PathLag::default();
        assert!(!lag.is_outdated(at(0)));
        lag.begin(at(10));
        assert!(lag.requests_poll() && !lag.requests_poll(), "one poll is enough");
        lag.answered(at(9));
        assert!(lag.is_outdated(at(39)));
        assert!(!lag.is_outdated(at(40)), "a server that never answers hides nothing for ever");
        lag.answered(at(10));
        assert!(!lag.is_outdated(at(11)));
        lag.begin(at(50));
        assert!(lag.is_outdated(at(51)) && lag.requests_poll());
    }
}
