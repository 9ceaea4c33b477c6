//! Remembers ids that count once.
//!
//! In: ids with their end, and the time. Out: true the first time. Their number is bounded: the id
//! that ends first is forgotten for a newer one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_counts_once() {
        let used = UsedIds::default();
        assert!(used.add("a", 10, 0) && !used.add("a", 10, 0) && used.has("a") && !used.has("b"));
        for number in 0..MAX_IDS {
            assert!(used.add(&number.to_string(), 20, 0));
        }
        assert!(!used.has("a") && used.has("0"), "the first to end is forgotten");
    }
}
