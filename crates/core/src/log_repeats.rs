//! Limits repeated log messages: the first of a kind is written, the rest are counted.
//!
//! In: a subject, a message about it, and the time.
//! Out: the decision to write the line, and the number of lines that were suppressed. A subject is
//! anything that has one state: an object, the repository, the status of a Sync. It is open from
//! its first message until it is closed.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

/// Interval after which a lasting state is logged again, with the number of suppressed lines.
pub const REPEAT_INTERVAL: Duration = Duration::from_secs(300);

/// Maximum number of different messages of one open subject that are written: alternating errors
/// are one state.
const MAX_TEXTS: usize = 8;

/// The decision about one log line.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogDecision {
    /// The message is new: write it. Carries the number of lines about the subject that were
    /// suppressed before it.
    New(u64),
    /// The message is not new, but the last line is old: write it. Carries the number of lines
    /// suppressed since.
    Ongoing(u64),
    /// The line is suppressed and counted.
    Suppressed,
}

/// The open subjects of one Sync.
#[derive(Debug, Default)]
pub struct LogRepeats(BTreeMap<Box<str>, OpenSubject>);

#[derive(Debug)]
struct OpenSubject {
    /// Hashes of the messages that were written.
    texts: Vec<u64>,
    /// Time at which the last line was written.
    last_written: Duration,
    /// Number of lines suppressed since.
    counted: u64,
}

impl LogRepeats {
    /// Records a message about a subject and decides if it is written.
    pub fn record(&mut self, subject: &str, text: &str, now: Duration) -> LogDecision {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        let Some(open) = self.0.get_mut(subject) else {
            self.0.insert(subject.into(), OpenSubject { texts: vec![hash], last_written: now, counted: 0 });
            return LogDecision::New(0);
        };
        let is_news = !open.texts.contains(&hash) && open.texts.len() < MAX_TEXTS;
        if is_news {
            open.texts.push(hash);
        } else if now.saturating_sub(open.last_written) < REPEAT_INTERVAL {
            open.counted += 1;
            return LogDecision::Suppressed;
        }
        open.last_written = now;
        match (is_news, std::mem::take(&mut open.counted)) {
            (true, counted) => LogDecision::New(counted),
            (false, counted) => LogDecision::Ongoing(counted + 1),
        }
    }

    /// Closes a subject. Returns the number of suppressed lines, or none if it was not open.
    pub fn close(&mut self, subject: &str) -> Option<u64> {
        self.0.remove(subject).map(|open| open.counted)
    }

    /// True if no subject is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Closes every subject that `stays` rejects. Returns those that have suppressed lines.
    pub fn close_others(&mut self, stays: impl Fn(&str) -> bool) -> Vec<(Box<str>, u64)> {
        let closed: Vec<Box<str>> = self.0.keys().filter(|subject| !stays(subject)).cloned().collect();
        let counts = closed.into_iter().map(|subject| {
            let counted = self.close(&subject).unwrap_or_default();
            (subject, counted)
        });
        counts.filter(|(_, counted)| *counted > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_state_is_written_once_and_counted_after_that() {
        let mut repeats = LogRepeats::default();
        assert_eq!(repeats.record("a", "forbidden", at(0)), LogDecision::New(0));
        for second in 1..60 {
            assert_eq!(repeats.record("a", "forbidden", at(second)), LogDecision::Suppressed);
        }
        assert_eq!(repeats.record("b", "forbidden", at(60)), LogDecision::New(0), "another subject");
        assert_eq!(repeats.record("a", "denied", at(60)), LogDecision::New(59), "a transition");
        assert_eq!(repeats.record("a", "denied", at(61)), LogDecision::Suppressed);
        assert_eq!(repeats.close("a"), Some(1));
        assert_eq!(repeats.close("a"), None);
        assert_eq!(repeats.record("a", "forbidden", at(62)), LogDecision::New(0), "it was over meanwhile");
    }

    #[test]
    fn a_state_that_lasts_is_written_every_few_minutes() {
        let mut repeats = LogRepeats::default();
        let lines =
            (0..1800).filter(|second| repeats.record("a", "away", at(*second)) != LogDecision::Suppressed);
        assert_eq!(lines.count(), 6);
        assert_eq!(repeats.record("a", "away", at(1800)), LogDecision::Ongoing(300));
    }

    #[test]
    fn errors_that_alternate_are_one_state() {
        let mut repeats = LogRepeats::default();
        let texts = ["refused", "reset"];
        let lines = (0..100)
            .filter(|nth| repeats.record("a", texts[nth % 2], at(*nth as u64)) != LogDecision::Suppressed);
        assert_eq!(lines.count(), 2);
        // Messages that never repeat are limited as well.
        let lines =
            (0..100).filter(|nth| repeats.record("b", &nth.to_string(), at(*nth)) != LogDecision::Suppressed);
        assert_eq!(lines.count(), MAX_TEXTS);
    }

    #[test]
    fn what_is_not_said_any_more_is_over() {
        let mut repeats = LogRepeats::default();
        for (subject, times) in [("a", 3), ("b", 1), ("c", 2)] {
            (0..times).for_each(|second| {
                assert_ne!(repeats.record(subject, "failed", at(second)), LogDecision::Ongoing(0))
            });
        }
        assert_eq!(repeats.close_others(|subject| subject == "c"), [("a".into(), 2)]);
        assert_eq!((repeats.close("b"), repeats.close("c")), (None, Some(1)));
    }
}
