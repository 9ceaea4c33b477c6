//! Exponential back-off after failures.

use std::time::Duration;

/// Back-off after failures in a row: none, then `base`, twice as long each time, at most `cap`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    failures: u32,
}

/// Beyond this many doublings every cap is reached.
const MAX_DOUBLINGS: u32 = 30;

impl Backoff {
    /// Creates a back-off between `base` and `cap`.
    pub fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap, failures: 0 }
    }

    /// Returns the pause after one more failure. `chance` between 0 and 1 spreads it over its upper
    /// half.
    pub fn failed(&mut self, chance: f64) -> Duration {
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let pause = self.base.saturating_mul(1 << doublings.min(MAX_DOUBLINGS)).min(self.cap);
                pause.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
            }
        }
    }

    /// Returns the pauses of `other` with the number of failures of this one.
    pub fn with_pauses(self, other: Self) -> Self {
        Self { failures: self.failures, ..other }
    }

    /// Resets the count of failures, after a success or new input.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Delays after failures.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Back-off between attempts that wait for the cluster.
    pub cluster: Backoff,
    /// Delay between attempts that wait for another manifest.
    pub manifest: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_retry_is_at_once_and_pauses_double_up_to_the_cap() {
        let check = |chance: f64, expect: [u64; 9]| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
            for (nth, milliseconds) in expect.into_iter().enumerate() {
                assert_eq!(backoff.failed(chance), Duration::from_millis(milliseconds), "retry {nth}");
            }
            (0..100).for_each(|_| assert!(backoff.failed(chance) <= Duration::from_secs(60)));
            backoff.reset();
            assert_eq!(backoff.failed(chance), Duration::ZERO);
        };
        check(1.0, [0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        check(0.0, [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    }

    #[test]
    fn other_pauses_count_at_once() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        for _ in 0..3 {
            backoff.failed(1.0);
        }
        let quick = Backoff::new(Duration::from_millis(10), Duration::from_millis(30));
        assert_eq!(backoff.with_pauses(quick).failed(1.0), Duration::from_millis(30));
    }
}
