//! What a network and a busy server do, on purpose.
//!
//! In: how often each fault is to happen, of a thousand requests or events. Out: what becomes of one of them; the same
//! seed gives the same faults. A new server makes none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::chance::Chance;

/// How often each fault happens, in a thousand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// A request is answered later than it could be.
    pub latency: u16,
    /// By how much at most.
    pub longest: Duration,
    /// A write is refused because the object changed meanwhile.
    pub conflict: u16,
    /// A request is refused because there are too many.
    pub too_many: u16,
    /// A request fails inside the server.
    pub internal: u16,
    /// A write happens, and its answer is lost.
    pub lost: u16,
    /// A request never arrives.
    pub unreached: u16,
    /// An event of a watch is never told.
    pub dropped: u16,
    /// An event is told twice.
    pub doubled: u16,
    /// The events after an event are told late, also those that tell what is there.
    pub late: u16,
}

/// The longest that events are late.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Conflict,
    TooMany,
    Internal,
    /// It is done, and nobody hears of it.
    Lost,
    /// It is not done.
    Unreached,
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    Dropped,
    Doubled,
    /// It is told, and what follows it is told only after this.
    Late(Duration),
}

/// The faults of a server; cheap to clone.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    dice: Mutex<Dice>,
    cut: watch::Sender<u64>,
}

struct Dice {
    rates: Rates,
    chance: Chance,
    happened: BTreeMap<&'static str, u64>,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        let dice = Dice { rates: Rates::default(), chance: Chance::new(seed), happened: BTreeMap::new() };
        Self(Arc::new(Inner { dice: Mutex::new(dice), cut: watch::channel(0).0 }))
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.0.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on faults happen as often as this.
    pub fn set(&self, rates: Rates) {
        self.dice().rates = rates;
    }

    /// How often each fault has happened.
    pub fn happened(&self) -> BTreeMap<&'static str, u64> {
        self.dice().happened.clone()
    }

    /// Ends every open watch, as a server does that goes down.
    pub fn cut_watches(&self) {
        self.dice().note("cut watch");
        self.0.cut.send_modify(|cuts| *cuts += 1);
    }

    /// A receiver that changes when watches are cut.
    pub(crate) fn cuts(&self) -> watch::Receiver<u64> {
        self.0.cut.subscribe()
    }

    /// How long the request waits.
    pub(crate) fn latency(&self) -> Option<Duration> {
        let mut dice = self.dice();
        let Rates { latency, longest, .. } = dice.rates;
        if !dice.chance.in_thousand(latency) {
            return None;
        }
        dice.note("latency");
        let most = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Some(Duration::from_micros(dice.chance.below(most)))
    }

    /// What becomes of a request.
    pub(crate) fn fate(&self, writes: bool) -> Option<Fate> {
        let mut dice = self.dice();
        let rates = dice.rates;
        let chances = [
            (Fate::Unreached, rates.unreached, "unreached"),
            (Fate::TooMany, rates.too_many, "429"),
            (Fate::Internal, rates.internal, "500"),
            (Fate::Conflict, if writes { rates.conflict } else { 0 }, "409"),
            (Fate::Lost, if writes { rates.lost } else { 0 }, "lost reply"),
        ];
        let (fate, _, word) = chances.into_iter().find(|(_, rate, _)| dice.chance.in_thousand(*rate))?;
        dice.note(word);
        Some(fate)
    }

    /// How long a watch that tells what is there stops before it goes on.
    pub(crate) fn halt(&self) -> Option<Duration> {
        let mut dice = self.dice();
        let late = dice.rates.late;
        if !dice.chance.in_thousand(late) {
            return None;
        }
        dice.note("halting list");
        Some(Duration::from_millis(dice.chance.below(MAX_PAUSE.as_millis() as u64)))
    }

    /// What becomes of an event.
    pub(crate) fn mishap(&self) -> Option<Mishap> {
        let mut dice = self.dice();
        let rates = dice.rates;
        let pause = Duration::from_millis(dice.chance.below(MAX_PAUSE.as_millis() as u64));
        let chances = [
            (Mishap::Dropped, rates.dropped, "dropped event"),
            (Mishap::Doubled, rates.doubled, "doubled event"),
            (Mishap::Late(pause), rates.late, "late event"),
        ];
        let (mishap, _, word) = chances.into_iter().find(|(_, rate, _)| dice.chance.in_thousand(*rate))?;
        dice.note(word);
        Some(mishap)
    }
}

impl Dice {
    fn note(&mut self, word: &'static str) {
        *self.happened.entry(word).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_faults() {
        let rates = Rates { conflict: 100, too_many: 50, lost: 50, dropped: 200, ..Rates::default() };
        let run = |seed| {
            let faults = Faults::new(seed);
            faults.set(rates);
            (0..200).map(|_| (faults.fate(true), faults.mishap())).collect::<Vec<_>>()
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5), run(6));
    }

    #[test]
    fn a_new_server_makes_none() {
        let faults = Faults::new(1);
        assert!(
            (0..100).all(|_| faults.fate(true).is_none()
                && faults.mishap().is_none()
                && faults.latency().is_none())
        );
        assert!(faults.happened().is_empty());
    }

    #[test]
    fn reads_are_not_lost() {
        let faults = Faults::new(1);
        faults.set(Rates { conflict: 1000, lost: 1000, ..Rates::default() });
        assert_eq!(faults.fate(false), None);
        assert_eq!(faults.fate(true), Some(Fate::Conflict));
    }
}
