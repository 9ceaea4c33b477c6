//! Times of a window: its starts by a wall clock, and its ends by elapsed time.
//!
//! In: fields of cron, a length, a time zone, and a time.
//! Out: [`Activity`]: in the window or not, and until when.
//!
//! A window starts when the wall clock shows a time that the schedule matches. A time that the
//! clock skips counts at the moment of the jump; a time that it shows twice counts twice.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::cron::Cron;

/// Maximum number of windows that are joined, because each begins before the last one ends.
pub(super) const MAX_JOINED: usize = 1000;

/// Maximum number of clock changes of one search: more than two a year until the next leap day.
const MAX_CHANGES: usize = 64;

/// Times of a window.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) cron: Cron,
    /// Length in seconds.
    pub(super) length: i64,
    pub(super) zone: TimeZone,
}

/// State of one window, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Activity {
    pub(super) is_active: bool,
    /// The next time at which this may change.
    pub(super) until: Option<i64>,
}

/// A moment at which the clock changes.
#[derive(Clone, Copy)]
struct ClockChange {
    at: i64,
    before: Offset,
    after: Offset,
}

impl Schedule {
    /// Returns the state at a time. Each window that is joined takes one of the steps; without any
    /// left, the end is that of the last one that was joined.
    pub(super) fn activity(&self, now: i64, steps: &mut usize) -> Activity {
        let Some(start) = self.last_start(now) else {
            return Activity { is_active: false, until: self.next_start(now) };
        };
        let mut end = start + self.length;
        let mut last = start;
        for _ in 0..MAX_JOINED {
            if *steps == 0 {
                break;
            }
            *steps -= 1;
            // A window that begins at the very end leaves no gap.
            match self.last_start(end).filter(|next| *next > last) {
                Some(next) => (last, end) = (next, next + self.length),
                None => break,
            }
        }
        Activity { is_active: true, until: Some(end) }
    }

    /// Returns the first start after a time.
    fn next_start(&self, after: i64) -> Option<i64> {
        let mut from = after + 1;
        if self.change_up_to(from).is_some_and(|change| change.at == from && self.is_skipped(change)) {
            return Some(from);
        }
        for _ in 0..MAX_CHANGES {
            let time = Timestamp::from_second(from).ok()?;
            let offset = self.zone.to_offset(time);
            let change = self.change_after(from);
            let found = self.cron.next(offset.to_datetime(time));
            let found = found.and_then(|found| Some(offset.to_timestamp(found).ok()?.as_second()));
            let Some(change) = change else { return found };
            if let Some(found) = found.filter(|found| *found < change.at) {
                return Some(found);
            }
            if self.is_skipped(change) {
                return Some(change.at);
            }
            from = change.at;
        }
        None
    }

    /// Returns the last start at or before a time, if its window has not ended by then.
    fn last_start(&self, at: i64) -> Option<i64> {
        let mut until = at;
        while until > at - self.length {
            let time = Timestamp::from_second(until).ok()?;
            let offset = self.zone.to_offset(time);
            let change = self.change_up_to(until);
            let found = self.cron.last(offset.to_datetime(time));
            let found = found.and_then(|found| Some(offset.to_timestamp(found).ok()?.as_second()));
            let found = found.filter(|found| change.is_none_or(|change| *found >= change.at));
            let found = found.or_else(|| Some(change.filter(|change| self.is_skipped(*change))?.at));
            match (found, change) {
                (Some(found), _) => return Some(found).filter(|found| *found > at - self.length),
                (None, Some(change)) => until = change.at - 1,
                (None, None) => return None,
            }
        }
        None
    }

    /// True if the clock skips a time that the schedule matches.
    fn is_skipped(&self, change: ClockChange) -> bool {
        let Ok(time) = Timestamp::from_second(change.at) else { return false };
        let (from, to) = (change.before.to_datetime(time), change.after.to_datetime(time));
        from < to && self.cron.next(from).is_some_and(|found| found < to)
    }

    /// Returns the last change of the clock at or before a time.
    fn change_up_to(&self, at: i64) -> Option<ClockChange> {
        let found = self.zone.preceding(Timestamp::from_second(at + 1).ok()?).next()?;
        self.change_at(found.timestamp())
    }

    /// Returns the next change of the clock after a time.
    fn change_after(&self, at: i64) -> Option<ClockChange> {
        let time = Timestamp::from_second(at).ok()?;
        let found = self.zone.following(time).find(|found| found.timestamp() > time)?;
        self.change_at(found.timestamp())
    }

    fn change_at(&self, time: Timestamp) -> Option<ClockChange> {
        let at = time.as_second();
        let before = self.zone.to_offset(Timestamp::from_second(at - 1).ok()?);
        Some(ClockChange { at, before, after: self.zone.to_offset(time) })
    }
}
