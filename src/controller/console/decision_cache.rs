//! Keeps decisions about rights for a short time.
//!
//! In: decisions, and the time at which each was asked for. Out: the decision, while it is younger
//! than [`DECISION_AGE`]. Their number is bounded: if there are too many, the old ones go first; if
//! that is not enough, all go.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::serve::rights::DECISION_AGE;

/// The most decisions that are kept.
const MAX_DECISIONS: usize = 20_000;

/// Decisions by what was asked.
#[derive(Debug)]
pub(super) struct DecisionCache<K>(BTreeMap<K, (Instant, bool)>);

impl<K> Default for DecisionCache<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> DecisionCache<K> {
    /// The decision, if it is young enough.
    pub(super) fn get(&self, key: &K, now: Instant) -> Option<bool> {
        let (asked, decision) = self.0.get(key)?;
        (now.duration_since(*asked) < DECISION_AGE).then_some(*decision)
    }

    /// Keeps a decision that was asked for at this time.
    pub(super) fn put(&mut self, key: K, asked: Instant, decision: bool) {
        if self.0.len() >= MAX_DECISIONS {
            self.0.retain(|_, (known, _)| asked.saturating_duration_since(*known) < DECISION_AGE);
        }
        if self.0.len() >= MAX_DECISIONS {
            self.0.clear();
        }
        self.0.insert(key, (asked, decision));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_decision_counts_for_five_seconds_and_there_are_not_too_many() {
        let (mut cache, begun) = (DecisionCache::default(), Instant::now());
        cache.put(0, begun, true);
        let just = begun + DECISION_AGE - Duration::from_millis(1);
        assert_eq!((cache.get(&0, just), cache.get(&0, begun + DECISION_AGE)), (Some(true), None));
        assert_eq!(cache.get(&1, begun), None);
        (1..2 * MAX_DECISIONS).for_each(|key| cache.put(key, begun, false));
        assert!(cache.0.len() <= MAX_DECISIONS);
        (0..MAX_DECISIONS).for_each(|key| cache.put(key, begun + DECISION_AGE, true));
        assert_eq!(cache.get(&(MAX_DECISIONS - 1), begun + DECISION_AGE), Some(true));
    }
}
