//! The right to write, as everybody who sends a request holds it.
//!
//! In: the deadlines that the holder of the Lease earns. Out: [`Permit`], asked before each request. It compares
//! with the clock at every question, so that a process that was stopped, or whose runtime was, is refused in the
//! moment it wakes, before any of its own tasks could have noticed that the Lease is lost.
//!
//! What no clock can give: a process that is stopped between the question and the sending sends when it wakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::Moment;

/// The deadline of a permit that ended.
const ENDED: u64 = 0;

/// Whether a write may start now. Cheap to clone; all clones end together.
#[derive(Debug, Clone)]
pub struct Permit(Option<Arc<AtomicU64>>);

impl Permit {
    /// For a run without election: it never ends.
    pub fn always() -> Self {
        Self(None)
    }

    /// A permit up to a deadline.
    pub(super) fn until(deadline: Moment) -> Self {
        Self(Some(Arc::new(AtomicU64::new(deadline.nanoseconds()))))
    }

    /// Whether a write may start now. Ask right before each request, and give the request no more time than
    /// [`Timings::request`](super::Timings::request).
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.may_write_at(Moment::now())
    }

    fn may_write_at(&self, now: Moment) -> bool {
        let Some(deadline) = &self.0 else { return true };
        now.nanoseconds() < deadline.load(Ordering::Acquire)
    }

    /// Moves the deadline, unless it has passed: an end is final, so that nobody sees a permit come back.
    pub(super) fn extend(&self, deadline: Moment) -> bool {
        let Some(current) = &self.0 else { return true };
        let now = Moment::now().nanoseconds();
        // In one step with the look at it, because another thread may end the permit in between.
        current
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |until| {
                (now < until).then_some(until.max(deadline.nanoseconds()))
            })
            .is_ok()
    }

    /// Ends it at once.
    pub(super) fn end(&self) {
        if let Some(deadline) = &self.0 {
            deadline.store(ENDED, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_permit_ends_at_its_deadline_and_never_comes_back() {
        let at = |seconds| Moment::after_start(Duration::from_secs(seconds));
        let permit = Permit::until(at(10));
        assert!(permit.may_write_at(at(9)));
        assert!(!permit.may_write_at(at(10)));

        let now = Moment::now();
        let permit = Permit::until(now + Duration::from_secs(60));
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
