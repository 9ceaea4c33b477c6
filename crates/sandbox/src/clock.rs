//! The time of the server.
//!
//! In: the runtime's clock, which tests can stop and move, and by how much the server's is wrong. Out: the time as it
//! stands in objects.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock that goes with the runtime's.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    at: Timestamp,
    /// Seconds by which it goes ahead.
    skew: AtomicI64,
}

impl Clock {
    /// A clock that says `at` now; the machine's time if none is given.
    pub(crate) fn new(at: Option<Timestamp>) -> Self {
        let at = at.or_else(|| Timestamp::try_from(SystemTime::now()).ok()).unwrap_or_default();
        Self { began: Instant::now(), at, skew: AtomicI64::new(0) }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.began.elapsed()).unwrap_or_default();
        let skew = SignedDuration::from_secs(self.skew.load(Ordering::Relaxed));
        self.at.checked_add(passed).and_then(|at| at.checked_add(skew)).unwrap_or(self.at)
    }

    /// The same as it stands in objects, such as `2024-01-01T00:00:00Z`.
    pub(crate) fn text(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// From now on it goes ahead by so many seconds, or behind.
    pub(crate) fn skew(&self, seconds: i64) {
        self.skew.store(seconds, Ordering::Relaxed);
    }
}
