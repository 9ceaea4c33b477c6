//! Timestamps and durations.
//!
//! In: texts, as in definitions and in Go, and values.
//! Out: timestamps and durations, sums of them, and their parts. Time zones are supported by their
//! offset from UTC, not by name.

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::evaluate::{Fault, Sum};
use super::tree::Arithmetic;
use super::value::Val;

/// Nanoseconds of each unit of a duration.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];
const SECOND: i128 = 1_000_000_000;
/// Maximal duration in Go.
const MAX_SPAN: i128 = i64::MAX as i128;
/// Maximal number of digits of a number in a duration.
const MAX_DIGITS: usize = 18;

/// Function that returns a part of a timestamp or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Year,
    Month,
    DayOfMonth,
    Date,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// Parses a timestamp or a date.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let of_date = || text.parse::<Date>().ok().filter(|_| text.len() == 10);
    text.parse::<Timestamp>().ok().or_else(|| {
        let date: DateTime = of_date()?.into();
        Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })
}

/// Timestamp so many seconds after the epoch.
pub(super) fn at(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok()
}

/// Duration of so many seconds.
pub(super) fn seconds(seconds: i64) -> i128 {
    i128::from(seconds) * SECOND
}

/// Parses a duration such as `1h30m`, `1.5s` or `-3ms`.
pub(super) fn span(text: &str) -> Option<i128> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if number.len() > MAX_DIGITS || whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return None;
        }
        let until = after.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(until);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        sum += digits * size / 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        rest = next;
    }
    (sum <= MAX_SPAN).then_some(if negative { -sum } else { sum })
}

/// Formats a duration in seconds.
pub(super) fn written(span: i128) -> String {
    let (whole, rest) = ((span / SECOND).abs(), (span % SECOND).abs());
    let fraction = format!("{rest:09}");
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{}{whole}{dot}{fraction}s", if span < 0 { "-" } else { "" })
}

/// Adds and subtracts timestamps and durations.
pub(super) fn arithmetic<'a>(
    operator: Arithmetic,
    left: &Val<'a>,
    right: &Val<'a>,
) -> Result<Val<'a>, Fault> {
    let too_large = Fault::Number(Sum::TooLarge);
    let sign = match operator {
        Arithmetic::Add => 1,
        Arithmetic::Subtract => -1,
        Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::Remainder => {
            return Err(Fault::Kinds("arithmetic"));
        }
    };
    let moved = |time: &Timestamp, span: i128| {
        let span = SignedDuration::from_nanos(i64::try_from(span).ok()?);
        time.checked_add(span).ok().map(Val::Time)
    };
    match (left, right) {
        (Val::Span(left), Val::Span(right)) => {
            Some(left + sign * right).filter(|sum| sum.abs() <= MAX_SPAN).map(Val::Span).ok_or(too_large)
        }
        (Val::Time(time), Val::Span(span)) => moved(time, sign * span).ok_or(too_large),
        (Val::Span(span), Val::Time(time)) if sign == 1 => moved(time, *span).ok_or(too_large),
        (Val::Time(left), Val::Time(right)) if sign == -1 => {
            Ok(Val::Span(left.as_nanosecond() - right.as_nanosecond()))
        }
        (_, _) => Err(Fault::Kinds("arithmetic")),
    }
}

/// Time zone of a name; only offsets from UTC are supported.
fn zone(name: Option<&Val<'_>>) -> Result<TimeZone, Fault> {
    let name = match name {
        None => return Ok(TimeZone::UTC),
        Some(Val::Text(name)) => &**name,
        Some(_) => return Err(Fault::Kinds("a zone")),
    };
    if name.is_empty() || name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    let (sign, rest) = match name.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, name.strip_prefix('+').unwrap_or(name)),
    };
    let (hours, minutes) = rest.split_once(':').ok_or(Fault::Unknown)?;
    let number = |text: &str| text.parse::<i32>().map_err(|_| Fault::Unknown);
    let seconds = sign * (number(hours)? * 3600 + number(minutes)? * 60);
    Offset::from_seconds(seconds).map(Offset::to_time_zone).map_err(|_| Fault::Number(Sum::NoNumber))
}

/// Returns a part of a timestamp in a time zone, or a duration in a unit.
pub(super) fn part<'a>(part: Part, of: &Val<'a>, zone_of_it: Option<&Val<'a>>) -> Result<Val<'a>, Fault> {
    let number = match of {
        Val::Time(time) => {
            let at = time.to_zoned(zone(zone_of_it)?);
            match part {
                Part::Year => i64::from(at.year()),
                Part::Month => i64::from(at.month()) - 1,
                Part::DayOfMonth => i64::from(at.day()) - 1,
                Part::Date => i64::from(at.day()),
                Part::DayOfWeek => i64::from(at.weekday().to_sunday_zero_offset()),
                Part::DayOfYear => i64::from(at.day_of_year()) - 1,
                Part::Hours => i64::from(at.hour()),
                Part::Minutes => i64::from(at.minute()),
                Part::Seconds => i64::from(at.second()),
                Part::Milliseconds => i64::from(at.millisecond()),
            }
        }
        Val::Span(span) => {
            let unit = match part {
                Part::Hours => 3600 * SECOND,
                Part::Minutes => 60 * SECOND,
                Part::Seconds => SECOND,
                Part::Milliseconds => SECOND / 1000,
                Part::Year
                | Part::Month
                | Part::DayOfMonth
                | Part::Date
                | Part::DayOfWeek
                | Part::DayOfYear => return Err(Fault::Kinds("a part of a span")),
            };
            i64::try_from(span / unit).map_err(|_| Fault::Number(Sum::TooLarge))?
        }
        _ => return Err(Fault::Kinds("a part of a time")),
    };
    Ok(Val::Int(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_go_reads_them() {
        let check = |text: &str, expect: Option<i128>| assert_eq!(span(text), expect, "{text}");
        check("1h30m", Some(5400 * SECOND));
        check("1.5s", Some(3 * SECOND / 2));
        check("-3ms", Some(-3_000_000));
        check("0", Some(0));
        for wrong in ["", "1", "h", "1x", "1.2.3s", "-", "9999999h", "99999999999999999999s", "1s2"] {
            check(wrong, None);
        }
        assert_eq!(written(5400 * SECOND), "5400s");
        assert_eq!(written(-3 * SECOND / 2), "-1.5s");
    }
}
