//! Limits the writes per second.
//!
//! In: a rate and a burst.
//! Out: turns, in the order of requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Limits of the writes: of one identity, and of all together.
#[derive(Clone)]
pub(super) struct Limits {
    pub(super) concurrency: usize,
    pub(super) rate: Arc<RateLimit>,
}

/// Rate limit of writes, shared by all identities of the daemon.
#[derive(Debug)]
pub(super) struct RateLimit {
    bound: Mutex<RateBound>,
    /// End of all turns given out so far, had they been taken one by one.
    booked: Mutex<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct RateBound {
    /// Interval of one write; none without a limit.
    each: Option<Duration>,
    burst: u32,
}

impl RateBound {
    fn new(per_second: u32, burst: u32) -> Self {
        let each = (per_second > 0).then(|| Duration::from_secs(1) / per_second);
        Self { each, burst: burst.max(1) }
    }
}

impl RateLimit {
    /// Allows `per_second` writes, 0 for no limit, and bursts of `burst`.
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        Self { bound: Mutex::new(RateBound::new(per_second, burst)), booked: Mutex::new(Instant::now()) }
    }

    /// Changes the rate and the burst.
    pub(super) fn set(&self, per_second: u32, burst: u32) {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = RateBound::new(per_second, burst);
    }

    fn bound(&self) -> RateBound {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn.
    pub(super) async fn acquire(&self) {
        if let Some(each) = self.bound().each {
            let until = self.book(each, Instant::now());
            tokio::time::sleep_until(until).await;
        }
    }

    /// Reserves the next turn and returns its time.
    fn book(&self, each: Duration, now: Instant) -> Instant {
        let mut booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner);
        *booked = (*booked).max(now) + each;
        // The machine's clock has no earlier time.
        booked.checked_sub(each * self.bound().burst).map_or(now, |turn| turn.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_one_by_one() {
        let (rate, now) = (RateLimit::new(10, 3), Instant::now() + Duration::from_secs(1));
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
        assert_eq!(RateLimit::new(0, 1).bound().each, None);
    }
}
