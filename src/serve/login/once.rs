//! Bounds what can be repeated: ids that count once, and a rate.
//!
//! In: ids with their end, and the time. Out: true the first time. Both are bounded: the id that
//! ends first is forgotten for a newer one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// The most ids that are remembered.
const MAX_IDS: usize = 10_000;

/// Ids that have been used, each until its end in seconds since 1970.
#[derive(Debug, Default)]
pub(super) struct UsedIds(Mutex<HashMap<Box<str>, i64>>);

impl UsedIds {
    /// Records an id; false if it was there.
    pub(super) fn add(&self, id: &str, ends: i64, now: i64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains_key(id) {
            return false;
        }
        if known.len() >= MAX_IDS {
            known.retain(|_, ends| *ends > now);
        }
        if known.len() >= MAX_IDS {
            let first = known.iter().min_by_key(|(_, ends)| **ends).map(|(id, _)| id.clone());
            first.map(|first| known.remove(&first));
        }
        known.insert(id.into(), ends);
        true
    }

    /// True if the id was recorded.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }
}

/// A rate: so many at once, and so many a second after that.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    burst: f64,
    left: Mutex<(f64, Instant)>,
}

impl Rate {
    pub(super) fn new(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst, left: Mutex::new((burst, Instant::now())) }
    }

    /// True if one more is within the rate.
    pub(super) fn take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(left.1).as_secs_f64() * self.per_second;
        *left = ((left.0 + gained).min(self.burst), now);
        let allowed = left.0 >= 1.0;
        left.0 -= f64::from(u8::from(allowed));
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_id_counts_once_and_a_rate_is_kept() {
        let used = UsedIds::default();
        assert!(used.add("a", 10, 0) && !used.add("a", 10, 0) && used.has("a") && !used.has("b"));
        for number in 0..MAX_IDS {
            assert!(used.add(&number.to_string(), 20, 0));
        }
        assert!(!used.has("a") && used.has("0"), "the first to end is forgotten");
        let rate = Rate::new(1.0, 2.0);
        assert_eq!([rate.take(), rate.take(), rate.take()], [true, true, false]);
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert_eq!([rate.take(), rate.take()], [true, false]);
    }
}
