//! A rate limit: a burst, and a number in each second after that.
//!
//! In: the burst and the rate, and requests.
//! Out: true for a request within the limit. It never waits.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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
        let now = clock::now();
        let gained = now.duration_since(left.1).as_secs_f64() * self.rate;
        *left = ((left.0 + gained).min(self.burst), now);
        let allowed = left.0 >= 1.0;
        if allowed {
            left.0 -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
