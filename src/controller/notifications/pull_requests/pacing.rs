//! Decides when a repository is asked again.
//!
//! In: the result of a visit, and chance. Out: the pause, and the permission to shorten it by a
//! webhook. Errors double the pause, and a pause that the host asks for is kept. The end of a limit
//! of requests is waited for elsewhere (`host_limits.rs`).

use std::time::Duration;

use super::host_client::{ErrorReach, VisitError};

/// The pause between two polls, at least.
const POLL: Duration = Duration::from_secs(60);
/// The part of a pause that chance adds.
const SPREAD: f64 = 0.25;
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(1800);
/// The longest pause that a host may ask for.
const MAX_ASKED: Duration = Duration::from_secs(3600);
/// Failures in a row after which the Notifier reports the problem.
const REPORTED_AFTER: u32 = 2;

/// Pauses of one repository.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    failures: u32,
}

/// The next visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextVisit {
    pub(super) after: Duration,
    /// A webhook may ask for it earlier.
    pub(super) may_be_called: bool,
    /// The problem is reported.
    pub(super) is_reported: bool,
}

impl Pacing {
    /// Decides what follows a visit; `chance` is between 0 and 1.
    pub(super) fn next(&mut self, result: Result<(), &VisitError>, chance: f64) -> NextVisit {
        let error = match result {
            Err(error) if error.reach == ErrorReach::Visit => error,
            result => {
                self.failures = 0;
                let is_reported = result.is_err_and(|error| error.needs_a_person);
                return NextVisit { after: spread(POLL, chance), may_be_called: true, is_reported };
            }
        };
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.saturating_sub(1).min(16);
        let doubled = POLL.saturating_mul(1 << doublings).min(MAX_PAUSE);
        let asked = error.retry_after.unwrap_or_default().min(MAX_ASKED);
        NextVisit {
            after: spread(doubled.max(asked), chance),
            may_be_called: false,
            is_reported: error.needs_a_person || self.failures >= REPORTED_AFTER,
        }
    }
}

fn spread(pause: Duration, chance: f64) -> Duration {
    pause.mul_f64(1.0 + SPREAD * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_make_the_pause_longer() {
        let mut pacing = Pacing::default();
        let (busy, denied) = (VisitError::of_status("it", 503, None), VisitError::of_status("it", 401, None));
        let (one, odd) = (VisitError::of_status("it", 403, None), VisitError::of_status("it", 422, None));
        let asked = VisitError::of_status("it", 503, Some(Duration::from_secs(700)));
        let forever = VisitError::of_status("it", 503, Some(Duration::MAX));
        for (result, seconds, may_be_called, is_reported) in [
            (Ok(()), 60, true, false),
            // One pull request alone.
            (Err(&one), 60, true, true),
            (Err(&odd), 60, true, false),
            (Err(&busy), 60, false, false),
            (Err(&busy), 120, false, true),
            (Err(&asked), 700, false, true),
            (Ok(()), 60, true, false),
            (Err(&denied), 60, false, true),
            (Err(&forever), 3600, false, true),
        ] {
            let after = Duration::from_secs(seconds);
            assert_eq!(pacing.next(result, 0.0), NextVisit { after, may_be_called, is_reported });
        }
        for _ in 0..100 {
            let _ = pacing.next(Err(&busy), 0.0);
        }
        assert_eq!(pacing.next(Err(&busy), 1.0).after, MAX_PAUSE.mul_f64(1.0 + SPREAD));
    }
}
