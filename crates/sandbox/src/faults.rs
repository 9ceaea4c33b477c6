//! Fault injection: failures of a network and of a busy server.
//!
//! In: the rate of each fault, in a thousand requests or events.
//! Out: the fault, if any, of one request or event; the same seed gives the same faults. A new
//! server injects none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::seeded_random::SeededRandom;

/// Rate of each fault, in a thousand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// A request is answered with a delay.
    pub latency: u16,
    /// Maximum delay of a delayed request.
    pub longest: Duration,
    /// A write is refused with a conflict, as if the object had changed meanwhile.
    pub conflict: u16,
    /// A request is refused because there are too many (429).
    pub too_many: u16,
    /// A request fails with an internal error (500).
    pub internal: u16,
    /// A write is done, but its response is lost.
    pub lost: u16,
    /// A request never reaches the server.
    pub unreached: u16,
    /// An event of a watch is not sent.
    pub dropped: u16,
    /// An event is sent twice.
    pub doubled: u16,
    /// The events after an event are delayed; this includes initial events.
    pub late: u16,
}

/// Maximum delay of events.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestFault {
    Conflict,
    TooMany,
    Internal,
    /// The request is done, but the client gets no response.
    Lost,
    /// The request is not done.
    Unreached,
}

/// Fault of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventFault {
    Dropped,
    Doubled,
    /// The event is sent, and the following ones only after this delay.
    Late(Duration),
}

/// Fault injector of a server; cheap to clone.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    dice: Mutex<FaultGenerator>,
    cut: watch::Sender<u64>,
}

struct FaultGenerator {
    rates: FaultRates,
    chance: SeededRandom,
    happened: BTreeMap<&'static str, u64>,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        let dice = FaultGenerator {
            rates: FaultRates::default(),
            chance: SeededRandom::new(seed),
            happened: BTreeMap::new(),
        };
        Self(Arc::new(Inner { dice: Mutex::new(dice), cut: watch::channel(0).0 }))
    }

    fn dice(&self) -> MutexGuard<'_, FaultGenerator> {
        self.0.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the rates from now on.
    pub fn set(&self, rates: FaultRates) {
        self.dice().rates = rates;
    }

    /// Returns how often each fault has happened.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.dice().happened.clone()
    }

    /// Ends every open watch, as a server does that shuts down.
    pub fn cut_watches(&self) {
        self.dice().note("cut watch");
        self.0.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Returns a receiver that is notified when watches are cut.
    pub(crate) fn cuts(&self) -> watch::Receiver<u64> {
        self.0.cut.subscribe()
    }

    /// Returns the delay of the next request, if it gets one.
    pub(crate) fn latency(&self) -> Option<Duration> {
        let mut dice = self.dice();
        let FaultRates { latency, longest, .. } = dice.rates;
        if !dice.chance.in_thousand(latency) {
            return None;
        }
        dice.note("latency");
        let most = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Some(Duration::from_micros(dice.chance.below(most)))
    }

    /// Returns the fault of the next request, if it gets one.
    pub(crate) fn next_request_fault(&self, writes: bool) -> Option<RequestFault> {
        let mut dice = self.dice();
        let rates = dice.rates;
        let chances = [
            (RequestFault::Unreached, rates.unreached, "unreached"),
            (RequestFault::TooMany, rates.too_many, "429"),
            (RequestFault::Internal, rates.internal, "500"),
            (RequestFault::Conflict, if writes { rates.conflict } else { 0 }, "409"),
            (RequestFault::Lost, if writes { rates.lost } else { 0 }, "lost reply"),
        ];
        let (fate, _, word) = chances.into_iter().find(|(_, rate, _)| dice.chance.in_thousand(*rate))?;
        dice.note(word);
        Some(fate)
    }

    /// Returns for how long a watch pauses while it sends initial events, if it does.
    pub(crate) fn next_list_pause(&self) -> Option<Duration> {
        let mut dice = self.dice();
        let late = dice.rates.late;
        if !dice.chance.in_thousand(late) {
            return None;
        }
        dice.note("halting list");
        Some(Duration::from_millis(dice.chance.below(MAX_PAUSE.as_millis() as u64)))
    }

    /// Returns the fault of the next event, if it gets one.
    pub(crate) fn next_event_fault(&self) -> Option<EventFault> {
        let mut dice = self.dice();
        let rates = dice.rates;
        let pause = Duration::from_millis(dice.chance.below(MAX_PAUSE.as_millis() as u64));
        let chances = [
            (EventFault::Dropped, rates.dropped, "dropped event"),
            (EventFault::Doubled, rates.doubled, "doubled event"),
            (EventFault::Late(pause), rates.late, "late event"),
        ];
        let (mishap, _, word) = chances.into_iter().find(|(_, rate, _)| dice.chance.in_thousand(*rate))?;
        dice.note(word);
        Some(mishap)
    }
}

impl FaultGenerator {
    fn note(&mut self, word: &'static str) {
        *self.happened.entry(word).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_faults() {
        let rates =
            FaultRates { conflict: 100, too_many: 50, lost: 50, dropped: 200, ..FaultRates::default() };
        let run = |seed| {
            let faults = Faults::new(seed);
            faults.set(rates);
            (0..200).map(|_| (faults.next_request_fault(true), faults.next_event_fault())).collect::<Vec<_>>()
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5), run(6));
    }

    #[test]
    fn a_new_server_makes_none() {
        let faults = Faults::new(1);
        assert!((0..100).all(|_| faults.next_request_fault(true).is_none()
            && faults.next_event_fault().is_none()
            && faults.latency().is_none()));
        assert!(faults.counts().is_empty());
    }

    #[test]
    fn reads_are_not_lost() {
        let faults = Faults::new(1);
        faults.set(FaultRates { conflict: 1000, lost: 1000, ..FaultRates::default() });
        assert_eq!(faults.next_request_fault(false), None);
        assert_eq!(faults.next_request_fault(true), Some(RequestFault::Conflict));
    }
}
