//! The permit to write, as held by every sender of requests.
//!
//! In: the deadlines of the Lease's renewals.
//! Out: a [`WritePermit`], checked before each request. It reads the clock at every check. So a
//! process that was stopped, or whose async runtime was blocked, is refused as soon as it resumes,
//! before one of its own tasks can notice that the Lease is lost.
//!
//! Limit of any clock: a process that is stopped between check and sending sends when it resumes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::{Clock, Moment};

/// Deadline of a permit that has ended.
const ENDED: u64 = 0;

/// Permit to start writes. Cheap to clone; all clones end together.
#[derive(Debug, Clone)]
pub struct WritePermit(Option<Term>);

#[derive(Debug, Clone)]
struct Term {
    deadline: Arc<AtomicU64>,
    /// Time after the deadline during which no other daemon can write yet.
    slack: Duration,
    clock: Clock,
}

impl WritePermit {
    /// Returns a permit without end, for a run without leader election.
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// Returns a permit with a deadline. A write that has begun by then may take `slack` longer.
    pub(super) fn until(deadline: Moment, slack: Duration, clock: Clock) -> Self {
        Self(Some(Term { deadline: Arc::new(AtomicU64::new(deadline.nanoseconds())), slack, clock }))
    }

    /// Maximum duration of a write that starts now, so that it ends before another daemon can
    /// write; none without leader election.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.time_left_at(self.now())
    }

    fn time_left_at(&self, now: Moment) -> Option<Duration> {
        let term = self.0.as_ref()?;
        let left = term.deadline.load(Ordering::Acquire).saturating_sub(now.nanoseconds());
        Some(if left == 0 { Duration::ZERO } else { Duration::from_nanos(left) + term.slack })
    }

    /// True if a write may start now. Check it right before each request, and limit the request to
    /// [`WritePermit::time_left`].
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.may_write_at(self.now())
    }

    fn may_write_at(&self, now: Moment) -> bool {
        let Some(term) = &self.0 else { return true };
        now.nanoseconds() < term.deadline.load(Ordering::Acquire)
    }

    fn now(&self) -> Moment {
        self.0.as_ref().map_or(Clock::Machine, |term| term.clock).now()
    }

    /// Moves the deadline, unless it has passed: an end is final, so a permit never becomes valid
    /// again.
    pub(super) fn extend(&self, deadline: Moment) -> bool {
        let Some(Term { deadline: current, clock, .. }) = &self.0 else { return true };
        let now = clock.now().nanoseconds();
        // Atomic with the check, because another thread may end the permit in between.
        current
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |until| {
                (now < until).then_some(until.max(deadline.nanoseconds()))
            })
            .is_ok()
    }

    /// Ends the permit at once.
    pub(super) fn end(&self) {
        if let Some(term) = &self.0 {
            term.deadline.store(ENDED, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_ends_at_its_deadline_and_never_comes_back() {
        let at = |seconds| Moment::after_start(Duration::from_secs(seconds));
        let slack = Duration::from_secs(4);
        let permit = WritePermit::until(at(10), slack, Clock::Machine);
        assert!(permit.may_write_at(at(9)));
        assert_eq!(permit.time_left_at(at(9)), Some(Duration::from_secs(5)));
        assert!(!permit.may_write_at(at(10)));
        assert_eq!(permit.time_left_at(at(10)), Some(Duration::ZERO), "the slack is for what has begun");
        assert_eq!(WritePermit::unlimited().time_left(), None);

        let now = Moment::now();
        let permit = WritePermit::until(now + Duration::from_secs(60), slack, Clock::Machine);
        let clone = permit.clone();
        assert!(clone.may_write());
        assert!(permit.extend(now + Duration::from_secs(120)));
        assert!(clone.may_write_at(now + Duration::from_secs(90)));
        // A late response shortens nothing.
        assert!(permit.extend(now + Duration::from_secs(30)));
        assert!(clone.may_write_at(now + Duration::from_secs(90)));
        permit.end();
        assert!(!clone.may_write());
        assert!(!permit.extend(now + Duration::from_secs(120)));
        assert!(!clone.may_write());
        assert!(WritePermit::unlimited().may_write());
    }
}
