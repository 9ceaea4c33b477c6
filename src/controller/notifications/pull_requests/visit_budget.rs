//! Bounds of one visit: its time without waits, and the refusals of its host.
//!
//! In: the time, waits, and errors of single requests. Out: the end of the visit.

use std::time::{Duration, Instant};

use super::host_client::{ErrorReach, VisitError};

/// Longest time of a visit, without its waits for other repositories.
const MAX_WORK: Duration = Duration::from_secs(300);
/// Most requests that the host may refuse in one visit.
const MAX_REFUSALS: u32 = 5;

/// The rest of a visit.
#[derive(Debug, Clone)]
pub(super) struct VisitBudget {
    end: Instant,
    refusals: u32,
}

impl VisitBudget {
    /// Begins a visit.
    pub(super) fn new(now: Instant) -> Self {
        Self { end: now + MAX_WORK, refusals: 0 }
    }

    /// Leaves out a wait for other repositories.
    pub(super) fn waited(&mut self, wait: Duration) {
        self.end += wait;
    }

    /// True if the rest is left to the next visit.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.is_late(now) || self.refusals >= MAX_REFUSALS
    }

    /// True if there was too much work for one visit.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        now >= self.end
    }

    /// Counts a refusal, or returns an error that ends the visit.
    pub(super) fn refuse(&mut self, error: VisitError) -> Result<(), VisitError> {
        self.refusals += 1;
        match error.reach {
            ErrorReach::Visit => Err(error),
            ErrorReach::Request | ErrorReach::Length => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_refusal_of_one_request_does_not_end_a_visit() {
        let pause = Some(Duration::from_secs(9));
        for (status, retry_after, ends) in [
            (400, None, false),
            (403, None, false),
            (404, None, false),
            (410, None, false),
            (422, None, false),
            (401, None, true),
            (408, None, true),
            (429, None, true),
            (500, None, true),
            (503, None, true),
            // GitHub says so that there were too many requests.
            (403, pause, true),
        ] {
            let mut budget = VisitBudget::new(clock::now());
            let error = || VisitError::of_status("a comment", status, retry_after);
            assert_eq!(budget.refuse(error()).is_err(), ends, "{status}");
            assert!(!budget.is_over(clock::now()));
            (1..MAX_REFUSALS).for_each(|_| drop(budget.refuse(error())));
            assert!(budget.is_over(clock::now()) && !budget.is_late(clock::now()), "{status}");
        }
    }

    #[test]
    fn a_wait_is_no_work() {
        let now = clock::now();
        let mut budget = VisitBudget::new(now);
        assert!(!budget.is_over(now) && budget.is_over(now + MAX_WORK));
        budget.waited(Duration::from_secs(1000));
        assert!(!budget.is_over(now + Duration::from_secs(1000)));
    }
}
