//! Chance, so that many daemons and many Syncs do not ask at the same moment.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Between half of `time` and all of it.
pub(crate) fn jitter(time: Duration) -> Duration {
    // Every `RandomState` has keys of its own, which the operating system's chance has made.
    let chance = RandomState::new().hash_one(0) % 1024;
    time / 2 + time.mul_f64(chance as f64 / 2048.0)
}
