//! A rate limit: a burst, and a number in each second after that.
//!
//! In: the burst and the rate, and requests.
//! Out: true for a request within the limit, or the time after which one is. It never waits.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// A rate limit.
#[derive(Debug)]
pub struct TokenBucket {
    burst: f64,
    rate: f64,
    left: Mutex<(f64, Instant)>,
}

impl TokenBucket {
    /// Creates it with its whole burst.
    pub fn new((burst, rate): (u32, u32)) -> Self {
        let burst = f64::from(burst);
        Self { burst, rate: f64::from(rate), left: Mutex::new((burst, clock::now())) }
    }

    /// True if the whole burst is available.
    pub fn is_whole(&self) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.0 + clock::since(left.1).as_secs_f64() * self.rate >= self.burst
    }

    /// True if one more is within the limit.
    pub fn take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        self.refill(&mut left);
        let allowed = left.0 >= 1.0;
        if allowed {
            left.0 -= 1.0;
        }
        allowed
    }

    /// Reserves one more, and returns the time after which it is within the limit; none if that is
    /// longer than `longest`.
    pub fn reserve(&self, longest: Duration) -> Option<Duration> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        self.refill(&mut left);
        let wait = Duration::try_from_secs_f64((1.0 - left.0).max(0.0) / self.rate).ok()?;
        if wait > longest {
            return None;
        }
        left.0 -= 1.0;
        Some(wait)
    }

    fn refill(&self, left: &mut (f64, Instant)) {
        let now = clock::now();
        let gained = now.duration_since(left.1).as_secs_f64() * self.rate;
        *left = ((left.0 + gained).min(self.burst), now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reserved_turns_come_one_after_the_other() {
        let (bucket, longest) = (TokenBucket::new((2, 4)), Duration::from_secs(1));
        let turns = || (0..10).map_while(|_| bucket.reserve(longest)).map(|wait| wait.as_millis());
        assert_eq!(turns().collect::<Vec<_>>(), [0, 0, 250, 500, 750, 1000]);
        assert!(!bucket.take());
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(turns().collect::<Vec<_>>(), [750, 1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_used_up_and_comes_back_with_time() {
        let bucket = TokenBucket::new((2, 1));
        assert!(bucket.is_whole());
        assert_eq!([bucket.take(), bucket.take(), bucket.take()], [true, true, false]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!bucket.is_whole());
        assert_eq!([bucket.take(), bucket.take()], [true, false]);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(bucket.is_whole());
        assert_eq!([bucket.take(), bucket.take(), bucket.take()], [true, true, false]);
    }
}
