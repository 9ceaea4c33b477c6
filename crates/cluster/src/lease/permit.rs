//! The right to write, as everybody who sends a request holds it.
//!
//! In: the deadlines that the holder of the Lease earns. Out: [`Permit`], asked before each request. It compares
//! with the clock at every question, so that a process that was stopped, or whose runtime was, is refused in the
//! moment it wakes, before any of its own tasks could have noticed that the Lease is lost.
//!
//! What no clock can give: a process that is stopped between the question and the sending sends when it wakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::{Clock, Moment};

/// The deadline of a permit that ended.
const ENDED: u64 = 0;

/// Whether a write may start now. Cheap to clone; all clones end together.
#[derive(Debug, Clone)]
pub struct Permit(Option<Term>);

#[derive(Debug, Clone)]
struct Term {
    deadline: Arc<AtomicU64>,
    /// How long after the deadline nobody else can write yet.
    slack: Duration,
    clock: Clock,
}

impl Permit {
    /// For a run without election: it never ends.
    pub fn always() -> Self {
        Self(None)
    }

    /// A permit up to a deadline. A write that has begun by then may go on for `slack`.
    pub(super) fn until(deadline: Moment, slack: Duration, clock: Clock) -> Self {
        Self(Some(Term { deadline: Arc::new(AtomicU64::new(deadline.nanoseconds())), slack, clock }))
    }

    /// How long a write that starts now may take, so that it is over before anybody else can write; none if there
    /// is nobody else.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.time_left_at(self.now())
    }

    fn time_left_at(&self, now: Moment) -> Option<Duration> {
        let term = self.0.as_ref()?;
        let left = term.deadline.load(Ordering::Acquire).saturating_sub(now.nanoseconds());
        Some(if left == 0 { Duration::ZERO } else { Duration::from_nanos(left) + term.slack })
    }

    /// Whether a write may start now. Ask right before each request, and give the request no more time than
    /// [`Permit::time_left`].
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

    /// Moves the deadline, unless it has passed: an end is final, so that nobody sees a permit come back.
    pub(super) fn extend(&self, deadline: Moment) -> bool {
        let Some(Term { deadline: current, clock, .. }) = &self.0 else { return true };
        let now = clock.now().nanoseconds();
        // In one step with the look at it, because another thread may end the permit in between.
        current
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |until| {
                (now < until).then_some(until.max(deadline.nanoseconds()))
            })
            .is_ok()
    }

    /// Ends it at once.
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
        let permit = Permit::until(at(10), slack, Clock::Machine);
        assert!(permit.may_write_at(at(9)));
        assert_eq!(permit.time_left_at(at(9)), Some(Duration::from_secs(5)));
        assert!(!permit.may_write_at(at(10)));
        assert_eq!(permit.time_left_at(at(10)), Some(Duration::ZERO), "the slack is for what has begun");
        assert_eq!(Permit::always().time_left(), None);

        let now = Moment::now();
        let permit = Permit::until(now + Duration::from_secs(60), slack, Clock::Machine);
        let clone = permit.clone();
        assert!(clone.may_write());
        assert!(permit.extend(now + Duration::from_secs(120)));
        assert!(clone.may_write_at(now + Duration::from_secs(90)));
        // An answer that was long on its way shortens nothing.
        assert!(permit.extend(now + Duration::from_secs(30)));
        assert!(clone.may_write_at(now + Duration::from_secs(90)));
        permit.end();
        assert!(!clone.may_write());
        assert!(!permit.extend(now + Duration::from_secs(120)));
        assert!(!clone.may_write());
        assert!(Permit::always().may_write());
    }
}
