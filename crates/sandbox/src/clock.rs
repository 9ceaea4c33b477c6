//! The clock of the server.
//!
//! In: the runtime's clock, which tests can pause and advance, and a skew.
//! Out: the time in the format of Kubernetes objects.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Clock that advances with the runtime's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    at: Timestamp,
    /// Seconds that the clock is ahead.
    skew: AtomicI64,
}

impl Clock {
    /// Returns a clock that reads `at` now; the machine's time if that is `None`.
    pub(crate) fn new(at: Option<Timestamp>) -> Self {
        let at = at.or_else(|| Timestamp::try_from(SystemTime::now()).ok()).unwrap_or_default();
        Self { began: Instant::now(), at, skew: AtomicI64::new(0) }
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.began.elapsed()).unwrap_or_default();
        let skew = SignedDuration::from_secs(self.skew.load(Ordering::Relaxed));
        self.at.checked_add(passed).and_then(|at| at.checked_add(skew)).unwrap_or(self.at)
    }

    /// Returns the current time as objects contain it, such as `2024-01-01T00:00:00Z`.
    pub(crate) fn text(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Sets the clock ahead by so many seconds; a negative number sets it back.
    pub(crate) fn skew(&self, seconds: i64) {
        self.skew.store(seconds, Ordering::Relaxed);
    }
}
