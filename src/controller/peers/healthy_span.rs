//! The time since which the objects of a Sync have been healthy.
//!
//! In: a moment, and the time of day that a status has. Out: [`HealthySpan`], with the moment at
//! which it is long enough. It is measured by the monotonic clock: a step of the time of day ends
//! no wait early.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A time of uninterrupted health that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HealthySpan {
    /// The moment from which this daemon has measured it.
    measured_from: Instant,
    /// The time before that moment, from the status.
    earlier: Duration,
    /// Its begin, as time since 1970.
    began: Duration,
}

impl HealthySpan {
    /// Begins now; `wall` is the time since 1970.
    pub(crate) fn begin(now: Instant, wall: Duration) -> Self {
        Self { measured_from: now, earlier: Duration::ZERO, began: wall }
    }

    /// Goes on with one that began at this time since 1970, before this daemon started.
    pub(crate) fn resume(now: Instant, wall: Duration, began: Duration) -> Self {
        let began = began.min(wall);
        Self { measured_from: now, earlier: wall.saturating_sub(began), began }
    }

    /// Returns the moment at which it is that long.
    pub(crate) fn end(&self, healthy_for: Duration) -> Instant {
        self.measured_from + healthy_for.saturating_sub(self.earlier)
    }

    /// Returns that moment for people, in whole seconds: always the same text.
    pub(crate) fn end_text(&self, healthy_for: Duration) -> String {
        let end = self.began + healthy_for;
        let seconds = end.as_secs() + u64::from(end.subsec_nanos() > 0);
        let end = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
        end.unwrap_or_default().to_string()
    }
}
