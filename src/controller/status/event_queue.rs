//! Queue of Events of one Sync: revisions, repairs and prunes.
//!
//! In: notes, and the time. Out: at most ten Events a minute. Further notes are combined into one
//! Event with a count, as soon as the limit allows.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Most Events of one Sync in a minute.
const MAX_EVENTS: usize = 10;
/// Window of the limit.
const WINDOW: Duration = Duration::from_secs(60);
/// Most notes that the combined Event repeats.
const MAX_NAMED: usize = 5;

/// An Event that is not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// Reason of the Event.
    pub(crate) reason: String,
    /// Text of the Event.
    pub(crate) text: String,
}

/// Waiting Events, and the times of the last written ones.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    open: VecDeque<Note>,
    rest: Option<Rest>,
    written: VecDeque<Instant>,
    /// Turn within the limit of the namespace, once one is reserved.
    turn: Option<Instant>,
}

/// Notes beyond the limit: the first ones, and their number.
#[derive(Debug)]
struct Rest {
    reason: String,
    named: Vec<String>,
    count: usize,
}

impl EventQueue {
    /// Adds a note.
    pub(crate) fn add(&mut self, note: Note) {
        match &mut self.rest {
            Some(rest) => rest.add(note),
            None if self.open.len() < MAX_EVENTS => self.open.push_back(note),
            None => self.rest = Some(Rest::of(note)),
        }
    }

    /// Returns the next Event that may be written now. It counts as written.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Note> {
        while self.written.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            self.written.pop_front();
        }
        let room = MAX_EVENTS - self.written.len();
        let waiting = self.open.len() + usize::from(self.rest.is_some());
        if waiting > room {
            self.count_from(room.saturating_sub(1));
        }
        if room == 0 {
            return None;
        }
        let next = self.open.pop_front().or_else(|| self.rest.take().map(Rest::note));
        self.written.extend(next.iter().map(|_| now));
        next
    }

    /// Returns the time until another Event may be written; none if none waits.
    pub(crate) fn due(&self, now: Instant) -> Option<Duration> {
        let waits = !self.open.is_empty() || self.rest.is_some();
        let full = self.written.front().filter(|_| self.written.len() == MAX_EVENTS);
        let left = full.map(|at| WINDOW.saturating_sub(now.duration_since(*at))).unwrap_or_default();
        let turn = self.turn.map(|at| at.saturating_duration_since(now)).unwrap_or_default();
        waits.then(|| left.max(turn))
    }

    /// True if an Event may be written now within the limit of the namespace: at once, or when the
    /// turn has come that `reserve` gave. Without a turn, all waiting notes are dropped.
    pub(crate) fn has_turn(&mut self, now: Instant, reserve: impl FnOnce() -> Option<Duration>) -> bool {
        let turn = self.turn.or_else(|| reserve().map(|wait| now + wait));
        self.turn = turn.filter(|at| *at > now);
        if turn.is_none() {
            (self.open, self.rest) = (VecDeque::new(), None);
        }
        turn.is_some_and(|at| at <= now)
    }

    /// Combines the waiting notes from this one on.
    fn count_from(&mut self, first: usize) {
        let Some(begun) = self.open.get(first) else { return };
        let later = self.rest.take();
        let mut rest = Rest { reason: begun.reason.clone(), named: Vec::new(), count: 0 };
        self.open.drain(first..).for_each(|note| rest.add(note));
        if let Some(later) = later {
            let named = later.named.into_iter().filter(|_| later.reason == rest.reason);
            let room = MAX_NAMED.saturating_sub(rest.named.len());
            rest.named.extend(named.take(room));
            rest.count += later.count;
        }
        self.rest = Some(rest);
    }
}

impl Rest {
    fn of(note: Note) -> Self {
        Self { reason: note.reason, named: vec![note.text], count: 1 }
    }

    /// Adds a note; one with another reason is only counted.
    fn add(&mut self, note: Note) {
        self.count += 1;
        if self.named.len() < MAX_NAMED && note.reason == self.reason {
            self.named.push(note.text);
        }
    }

    fn note(self) -> Note {
        let more = self.count - self.named.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Note { reason: self.reason, text: self.named.join("; ") + &more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: usize) -> Note {
        Note { reason: "DriftRepaired".to_owned(), text: format!("r{text}") }
    }

    /// Takes all Events that may be written at a time.
    fn taken(queue: &mut EventQueue, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| queue.take(now)).map(|note| note.text).collect()
    }

    #[test]
    fn ten_events_a_minute_and_then_one_with_a_count() {
        let (mut queue, begun) = (EventQueue::default(), Instant::now());
        assert_eq!(queue.due(begun), None);
        for at in 0..10 {
            queue.add(note(at));
            assert_eq!(queue.due(begun), Some(Duration::ZERO));
            assert_eq!(taken(&mut queue, begun), [format!("r{at}")]);
        }
        for at in 10..30 {
            queue.add(note(at));
            assert!(taken(&mut queue, begun + Duration::from_secs(30)).is_empty());
        }
        let later = begun + Duration::from_secs(45);
        assert_eq!(queue.due(later), Some(Duration::from_secs(15)));
        assert_eq!(taken(&mut queue, begun + WINDOW), ["r10; r11; r12; r13; r14; and 15 more"]);
        assert_eq!(queue.due(begun + WINDOW), None);
    }

    #[test]
    fn a_turn_is_reserved_once_and_notes_without_one_are_dropped() {
        let (mut queue, now) = (EventQueue::default(), Instant::now());
        let (soon, asked) = (Duration::from_secs(7), std::cell::Cell::new(0));
        let reserve = |wait: Option<Duration>| {
            asked.set(asked.get() + 1);
            wait
        };
        queue.add(note(0));
        assert!(queue.has_turn(now, || reserve(Some(Duration::ZERO))));
        assert!(!queue.has_turn(now, || reserve(Some(soon))));
        assert_eq!((queue.due(now), asked.get()), (Some(soon), 2));
        assert!(!queue.has_turn(now, || reserve(None)) && queue.has_turn(now + soon, || reserve(None)));
        assert_eq!((asked.get(), taken(&mut queue, now + soon)), (2, vec!["r0".to_owned()]));
        queue.add(note(1));
        assert!(!queue.has_turn(now + soon, || reserve(None)));
        assert_eq!((queue.due(now + soon), taken(&mut queue, now + soon).len()), (None, 0));
    }

    #[test]
    fn many_at_once_are_nine_and_one_with_a_count() {
        let (mut queue, begun) = (EventQueue::default(), Instant::now());
        (0..30).for_each(|at| queue.add(note(at)));
        let told = taken(&mut queue, begun);
        assert_eq!((told.len(), told[8].as_str()), (10, "r8"));
        assert_eq!(told[9], "r9; r10; r11; r12; r13; and 16 more");
        let mut few = EventQueue::default();
        (0..10).for_each(|at| few.add(note(at)));
        assert_eq!(taken(&mut few, begun).len(), 10);
    }

    #[test]
    fn no_minute_has_more_than_ten() {
        let (mut queue, begun) = (EventQueue::default(), Instant::now());
        let mut written = Vec::new();
        for second in 0..600 {
            queue.add(note(second));
            let now = begun + Duration::from_secs(second as u64);
            written.extend(std::iter::repeat_n(second, taken(&mut queue, now).len()));
        }
        for first in 0..540 {
            let within = written.iter().filter(|at| (first..first + 60).contains(*at)).count();
            assert!(within <= MAX_EVENTS, "{within} from second {first} on");
        }
    }

    #[test]
    fn notes_with_another_reason_are_counted() {
        let (mut queue, begun) = (EventQueue::default(), Instant::now());
        (0..10).for_each(|at| queue.add(note(at)));
        assert_eq!(taken(&mut queue, begun).len(), 10);
        queue.add(Note { reason: "Applied".to_owned(), text: "main@1 is applied".to_owned() });
        queue.add(note(1));
        assert_eq!(queue.take(begun + WINDOW / 2), None);
        let told = queue.take(begun + WINDOW).unwrap();
        assert_eq!((told.reason.as_str(), told.text.as_str()), ("Applied", "main@1 is applied; and 1 more"));
    }
}
