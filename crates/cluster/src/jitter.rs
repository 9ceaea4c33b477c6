//! Chance, so that many daemons and many Syncs do not ask at the same moment.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Between half of `time` and all of it.
pub fn jitter(time: Duration) -> Duration {
    between(&(time / 2..=time))
}

/// Somewhere within a range.
pub(crate) fn between(times: &RangeInclusive<Duration>) -> Duration {
    let chance = moorline_runtime::chance::next() % 1024;
    let (least, most) = (*times.start(), *times.end());
    least + most.saturating_sub(least).mul_f64(chance as f64 / 1024.0)
}
