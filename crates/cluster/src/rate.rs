//! How many writes may begin in a second.
//!
//! In: a number per second and how many may go at once before it counts. Out: turns, in the order of asking.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A bound on writes in a second, shared by everyone whom the daemon acts as.
#[derive(Debug)]
pub(super) struct Rate {
    bound: Mutex<Bound>,
    /// When everything that was given out would be over, had it come one by one.
    booked: Mutex<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    /// The time of one write; none if there is no bound.
    each: Option<Duration>,
    burst: u32,
}

impl Bound {
    fn new(per_second: u32, burst: u32) -> Self {
        let each = (per_second > 0).then(|| Duration::from_secs(1) / per_second);
        Self { each, burst: burst.max(1) }
    }
}

impl Rate {
    /// `per_second` writes, 0 for no bound; `burst` may go at once.
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        Self { bound: Mutex::new(Bound::new(per_second, burst)), booked: Mutex::new(Instant::now()) }
    }

    /// The same from now on for other numbers.
    pub(super) fn set(&self, per_second: u32, burst: u32) {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = Bound::new(per_second, burst);
    }

    fn bound(&self) -> Bound {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self) {
        if let Some(each) = self.bound().each {
            let until = self.book(each, Instant::now());
            tokio::time::sleep_until(until).await;
        }
    }

    /// The time of the next turn, for one who asks now.
    fn book(&self, each: Duration, now: Instant) -> Instant {
        let mut booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner);
        *booked = (*booked).max(now) + each;
        // Before the clock of the machine began, there is only now.
        booked.checked_sub(each * self.bound().burst).map_or(now, |turn| turn.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_one_by_one() {
        let (rate, now) = (Rate::new(10, 3), Instant::now() + Duration::from_secs(1));
        let each = rate.bound().each.unwrap();
        let waits: Vec<u128> = (0..6).map(|_| (rate.book(each, now) - now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        let later = now + Duration::from_secs(10);
        let waits: Vec<u128> = (0..4).map(|_| (rate.book(each, later) - later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100], "a burst is saved up, and no more than one");
        rate.set(5, 1);
        let later = later + Duration::from_secs(10);
        let waits: Vec<u128> = (0..2).map(|_| (rate.book(each * 2, later) - later).as_millis()).collect();
        assert_eq!(waits, [0, 200], "what is set later counts");
        assert_eq!(Rate::new(0, 1).bound().each, None);
    }
}
