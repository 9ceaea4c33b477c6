//! Back-off for objects that are written to all the time without a change of our fields, such as a
//! heartbeat in an annotation.
//!
//! In: outcomes of verifications.
//! Out: the time until which an object that changed again is not verified.
//!
//! If the metadata of a write do not show that it left our fields unchanged, each write costs a
//! request. After a few verifications in a row that found nothing, they become rarer. A write that
//! visibly changes our fields is not throttled, and is repaired at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::controller::schedule::Uptime;
use crate::object::ObjectId;
use crate::plan::Outcome;

/// Verifications in a row without a finding that run at once.
const AT_ONCE: u32 = 5;
/// First and longest pause after that. A change that was throttled is verified within ten seconds.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
/// Time without a verification after which the row ends.
const ROW: Duration = Duration::from_secs(90);
/// Doublings after which the longest pause is reached.
const MAX_DOUBLINGS: u32 = 3;

/// Objects whose recent verifications found nothing.
#[derive(Debug, Default)]
pub(crate) struct NoisyObjects {
    looks: BTreeMap<ObjectId, NoopStreak>,
    /// Time of the next throttled verification.
    next: Option<Uptime>,
}

#[derive(Debug)]
struct NoopStreak {
    in_vain: u32,
    last: Uptime,
}

impl NoopStreak {
    fn next(&self) -> Uptime {
        let pause = match self.in_vain.checked_sub(AT_ONCE) {
            None => Duration::ZERO,
            Some(doublings) => (PAUSE.0 * (1 << doublings.min(MAX_DOUBLINGS))).min(PAUSE.1),
        };
        self.last + pause
    }
}

impl NoisyObjects {
    /// Records the outcomes of verifications.
    pub(crate) fn learn<'a>(
        &mut self,
        outcomes: impl IntoIterator<Item = (&'a ObjectId, &'a Outcome)>,
        now: Uptime,
    ) {
        self.looks.retain(|_, looks| looks.last + ROW > now);
        for (id, outcome) in outcomes {
            if *outcome == Outcome::Kept {
                let looks = self.looks.entry(id.clone()).or_insert(NoopStreak { in_vain: 0, last: now });
                (looks.in_vain, looks.last) = (looks.in_vain + 1, now);
            } else {
                self.looks.remove(id);
            }
        }
    }

    /// Returns true if the verification of a changed object is throttled.
    pub(crate) fn waits(&mut self, id: &ObjectId, now: Uptime) -> bool {
        let due = self.looks.get(id).filter(|looks| looks.last + ROW > now).map(NoopStreak::next);
        let due = due.filter(|due| *due > now);
        self.next = self.next.into_iter().chain(due).min();
        due.is_some()
    }

    /// Returns the objects whose verification is throttled now.
    pub(crate) fn throttled(&self, now: Uptime) -> BTreeSet<ObjectId> {
        let waits = |looks: &NoopStreak| looks.last + ROW > now && looks.next() > now;
        self.looks.iter().filter(|(_, looks)| waits(looks)).map(|(id, _)| id.clone()).collect()
    }

    /// Records the objects whose verification a plan has left out.
    pub(crate) fn note_throttled(&mut self, ids: &BTreeSet<ObjectId>) {
        self.next = ids.iter().filter_map(|id| self.looks.get(id)).map(NoopStreak::next).min();
    }

    /// Returns the time of the next throttled verification.
    pub(crate) fn next(&self) -> Option<Uptime> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Change;

    #[test]
    fn what_moves_in_vain_is_looked_at_less_and_less_often() {
        let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
        let mut restless = NoisyObjects::default();
        let (mut looked, mut beat) = (Vec::new(), 0);
        while beat < 120 {
            let now = Duration::from_secs(beat);
            if !restless.waits(&id, now) {
                restless.learn([(&id, &Outcome::Kept)], now);
                looked.push(beat);
            }
            beat += 1;
        }
        assert_eq!(looked, [0, 1, 2, 3, 4, 5, 7, 11, 19, 27, 35, 43, 51, 59, 67, 75, 83, 91, 99, 107, 115]);
        let drift = Outcome::Updated(Change::MaybeDrifted);
        restless.learn([(&id, &drift)], Duration::from_secs(120));
        assert!(!restless.waits(&id, Duration::from_secs(120)), "there was something to repair");
    }

    #[test]
    fn a_row_ends_with_quiet() {
        let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
        let mut restless = NoisyObjects::default();
        (0..20).for_each(|_| restless.learn([(&id, &Outcome::Kept)], Duration::ZERO));
        assert!(restless.waits(&id, Duration::from_secs(7)));
        assert!(!restless.waits(&id, Duration::from_secs(8)));
        restless.learn([], ROW);
        assert!(restless.looks.is_empty());
    }
}
