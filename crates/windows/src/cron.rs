//! Five fields of cron, and the minutes of a calendar that they match.
//!
//! In: a text such as `0 22 * * MON-FRI`.
//! Out: [`Cron`], or the reason why it cannot be read. There is no time zone here: minutes are
//! those of a wall clock that never jumps.

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime};

/// Maximum number of days of a search: leap days are up to eight years apart.
const MAX_DAYS: usize = 8 * 366 + 1;

/// Names of months.
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// Names of days of the week.
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Longest months, with the leap day.
const LONGEST: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// The minutes that a schedule matches. Each field is a set of bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both kinds of days are restricted: one of them is enough.
    either_day: bool,
}

/// A field: its name, its numbers, and their names.
struct Field {
    name: &'static str,
    from: u32,
    /// The last number of `*`.
    to: u32,
    /// The largest number that may be written.
    largest: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", from: 0, to: 59, largest: 59, names: &[] },
    Field { name: "hour", from: 0, to: 23, largest: 23, names: &[] },
    Field { name: "day of month", from: 1, to: 31, largest: 31, names: &[] },
    Field { name: "month", from: 1, to: 12, largest: 12, names: &MONTHS },
    // 7 is Sunday, too.
    Field { name: "day of week", from: 0, to: 6, largest: 7, names: &WEEKDAYS },
];

impl Cron {
    /// Reads five fields.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts.as_slice() else {
            return Err(format!("a schedule has five fields, and {text:?} has {}", parts.len()));
        };
        let [minutes, hours, days, months, weekdays] = FIELDS;
        let is_restricted = |field: &str| !field.starts_with('*') || field.contains('/');
        let either_day = is_restricted(day) && is_restricted(weekday);
        let (minutes, hours) = (minutes.parse(minute)?, hours.parse(hour)?);
        let (days, months) = (days.parse(day)?, months.parse(month)?);
        let sunday_too = weekdays.parse(weekday)?;
        let weekdays = (sunday_too | sunday_too >> 7) & 0x7f;
        let cron = Self { minutes, hours, days, months, weekdays, either_day };
        match either_day || cron.has_day() {
            true => Ok(cron),
            false => Err(format!("no month of {text:?} has such a day")),
        }
    }

    /// True if one of the months has one of the days.
    fn has_day(&self) -> bool {
        LONGEST
            .iter()
            .zip(1..)
            .any(|(longest, month)| has(self.months, month) && (1..=*longest).any(|day| has(self.days, day)))
    }

    /// Returns the first match at or after a time.
    pub(super) fn next(&self, from: DateTime) -> Option<DateTime> {
        let is_whole = from.second() == 0 && from.subsec_nanosecond() == 0;
        let from = if is_whole { from } else { from.checked_add(1.minute()).ok()? };
        let (mut date, first) = (from.date(), minute_of(from));
        let mut at_least = first;
        for _ in 0..MAX_DAYS {
            if self.has_date(date)
                && let Some(minute) = self.first_minute(at_least)
            {
                return time_of(date, minute);
            }
            // A month that does not match is skipped as a whole.
            let last = if self.has_month(date) { date } else { date.last_of_month() };
            (date, at_least) = (last.tomorrow().ok()?, 0);
        }
        None
    }

    /// Returns the last match at or before a time.
    pub(super) fn last(&self, until: DateTime) -> Option<DateTime> {
        let (mut date, mut at_most) = (until.date(), minute_of(until));
        for _ in 0..MAX_DAYS {
            if self.has_date(date)
                && let Some(minute) = self.last_minute(at_most)
            {
                return time_of(date, minute);
            }
            let first = if self.has_month(date) { date } else { date.first_of_month() };
            (date, at_most) = (first.yesterday().ok()?, DAY - 1);
        }
        None
    }

    fn has_month(&self, date: Date) -> bool {
        has(self.months, u32::try_from(date.month()).unwrap_or_default())
    }

    fn has_date(&self, date: Date) -> bool {
        let number = |number: i8| u32::try_from(number).unwrap_or_default();
        let is_day = has(self.days, number(date.day()));
        let is_weekday = has(self.weekdays, number(date.weekday().to_sunday_zero_offset()));
        let fits = if self.either_day { is_day || is_weekday } else { is_day && is_weekday };
        self.has_month(date) && fits
    }

    /// Returns the first minute of a day that matches, from this one on.
    fn first_minute(&self, at_least: u32) -> Option<u32> {
        let (first, from) = (at_least / 60, at_least % 60);
        let rest = |hour: u32| if hour == first { self.minutes >> from << from } else { self.minutes };
        let hour = (first..24).find(|hour| has(self.hours, *hour) && rest(*hour) != 0)?;
        Some(hour * 60 + rest(hour).trailing_zeros())
    }

    /// Returns the last minute of a day that matches, up to this one.
    fn last_minute(&self, at_most: u32) -> Option<u32> {
        let (last, to) = (at_most / 60, at_most % 60);
        let rest = |hour: u32| if hour == last { self.minutes & ((2 << to) - 1) } else { self.minutes };
        let hour = (0..=last).rev().find(|hour| has(self.hours, *hour) && rest(*hour) != 0)?;
        Some(hour * 60 + rest(hour).ilog2())
    }
}

/// Minutes of a day.
const DAY: u32 = 24 * 60;

fn minute_of(time: DateTime) -> u32 {
    u32::try_from(i32::from(time.hour()) * 60 + i32::from(time.minute())).unwrap_or_default()
}

fn time_of(date: Date, minute: u32) -> Option<DateTime> {
    let part = |number: u32| i8::try_from(number).ok();
    Some(date.at(part(minute / 60)?, part(minute % 60)?, 0, 0))
}

fn has(set: u64, bit: u32) -> bool {
    set >> bit & 1 == 1
}

impl Field {
    /// Reads a list, such as `MON-FRI,0` or `*/15`.
    fn parse(&self, text: &str) -> Result<u64, String> {
        let wrong = || format!("the {} {text:?} cannot be read", self.name);
        let mut set = 0;
        for item in text.split(',') {
            let (range, step) = match item.split_once('/') {
                None => (item, None),
                Some((range, step)) => (
                    range,
                    Some(number(step).filter(|step| (1..=self.largest).contains(step)).ok_or_else(wrong)?),
                ),
            };
            let (from, to) = match (range, range.split_once('-')) {
                ("*", _) => (self.from, self.to),
                (_, Some((from, to))) => {
                    (self.number(from).ok_or_else(wrong)?, self.number(to).ok_or_else(wrong)?)
                }
                // As in a CronJob, `5/10` is `5-59/10`.
                (only, None) => {
                    let from = self.number(only).ok_or_else(wrong)?;
                    (from, if step.is_some() { self.to } else { from })
                }
            };
            if from > to {
                return Err(wrong());
            }
            let step = usize::try_from(step.unwrap_or(1)).map_err(|_| wrong())?;
            (from..=to).step_by(step).for_each(|bit| set |= 1 << bit);
        }
        Ok(set)
    }

    /// Reads a number or a name.
    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.and_then(|at| u32::try_from(at).ok()).map(|at| at + self.from);
        named.or_else(|| number(text)).filter(|number| (self.from..=self.largest).contains(number))
    }
}

/// Reads digits alone: no sign, and no more than a field can have.
fn number(text: &str) -> Option<u32> {
    let is_short = (1..=4).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_matches_as_in_a_cron_job() {
        let time = |text: &str| text.parse::<DateTime>().unwrap();
        for (text, from, next) in [
            ("0 22 * * *", "2026-11-27T21:59:01", "2026-11-27T22:00"),
            ("0 22 * * *", "2026-11-27T22:00:01", "2026-11-28T22:00"),
            ("*/15 8-10/2 * * *", "2026-11-27T08:46", "2026-11-27T10:00"),
            ("5/20 * * * *", "2026-11-27T08:26", "2026-11-27T08:45"),
            ("0 0 * * mon-FRI", "2026-11-28T00:00", "2026-11-30T00:00"),
            ("0 0 * * 7", "2026-11-27T00:00", "2026-11-29T00:00"),
            ("0 0 * * 5-7", "2026-11-28T00:01", "2026-11-29T00:00"),
            ("0 0 29 2 *", "2096-03-01T00:00", "2104-02-29T00:00"),
            ("0 0 1 JAN,jul *", "2026-11-27T00:00", "2027-01-01T00:00"),
            // One of the two days is enough where both are restricted.
            ("0 0 13 * FRI", "2026-11-28T00:00", "2026-12-04T00:00"),
            ("0 0 13 * FRI", "2026-12-12T00:00", "2026-12-13T00:00"),
            ("0 0 31 2 MON", "2026-02-01T00:00", "2026-02-02T00:00"),
            ("0 0 13 * *", "2026-11-28T00:00", "2026-12-13T00:00"),
            ("0 0 */10 * *", "2026-11-22T00:00", "2026-12-01T00:00"),
        ] {
            let cron = Cron::parse(text).unwrap();
            assert_eq!(cron.next(time(from)), Some(time(next)), "{text}");
            assert_eq!(cron.last(time(next)), Some(time(next)), "{text}");
            let earlier = cron.last(time(next).checked_sub(1.second()).unwrap()).unwrap();
            assert!(earlier < time(from) || earlier == time(from), "{text}: {earlier}");
        }
    }

    #[test]
    fn a_schedule_that_is_not_understood_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "* * L * *",
            "* * * * 5L",
            "* * 15W * *",
            "* * * * 5#2",
            "? * * * *",
            "@daily",
            "*/0 * * * *",
            "-1 * * * *",
            "+1 * * * *",
            "5-1 * * * *",
            "* * * * FRI-MON",
            "1,,2 * * * *",
            "1- * * * *",
            "* * * FOO *",
            "0 0 30 2 *",
            "0 0 31 4,6,9,11 *",
            "TZ=UTC 0 0 * * *",
            "*/99999 * * * *",
            "1* * * * *",
        ] {
            assert!(Cron::parse(text).is_err(), "{text}");
        }
    }
}
