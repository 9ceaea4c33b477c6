//! Random delays, so that many daemons and Syncs do not send requests at the same moment.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Returns a random duration between half of `time` and `time`.
pub fn jitter(time: Duration) -> Duration {
    between(&(time / 2..=time))
}

/// Returns a random duration within a range.
pub(crate) fn between(times: &RangeInclusive<Duration>) -> Duration {
    let chance = moorline_runtime::chance::next() % 1024;
    let (least, most) = (*times.start(), *times.end());
    least + most.saturating_sub(least).mul_f64(chance as f64 / 1024.0)
}
