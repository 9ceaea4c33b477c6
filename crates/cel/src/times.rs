//! Timestamps and durations.
//!
//! In: texts, as in definitions and in Go, and values.
//! Out: timestamps and durations, sums of them, and their parts. Time zones are supported by their
//! offset from UTC, not by name.

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use moorline_core::duration;

use super::evaluate::{EvaluationError, NumberError};
use super::tree::Arithmetic;
use super::value::CelValue;

const SECOND: i128 = 1_000_000_000;
/// Maximal duration in Go.
const MAX_SPAN: i128 = i64::MAX as i128;

/// Function that returns a part of a timestamp or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimePart {
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
pub(super) fn from_unix_seconds(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok()
}

/// Duration of so many seconds.
pub(super) fn seconds(seconds: i64) -> i128 {
    i128::from(seconds) * SECOND
}

/// Parses a duration such as `1h30m`, `1.5s` or `-3ms`.
pub(super) fn span(text: &str) -> Option<i128> {
    duration::parse_go(text).filter(|span| span.abs() <= MAX_SPAN)
}

/// Formats a duration in seconds.
pub(super) fn format_duration(span: i128) -> String {
    let (whole, rest) = ((span / SECOND).abs(), (span % SECOND).abs());
    let fraction = format!("{rest:09}");
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{}{whole}{dot}{fraction}s", if span < 0 { "-" } else { "" })
}

/// Adds and subtracts timestamps and durations.
pub(super) fn arithmetic<'a>(
    operator: Arithmetic,
    left: &CelValue<'a>,
    right: &CelValue<'a>,
) -> Result<CelValue<'a>, EvaluationError> {
    let too_large = EvaluationError::Number(NumberError::TooLarge);
    let sign = match operator {
        Arithmetic::Add => 1,
        Arithmetic::Subtract => -1,
        Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::Remainder => {
            return Err(EvaluationError::WrongType("arithmetic"));
        }
    };
    let moved = |time: &Timestamp, span: i128| {
        let span = SignedDuration::from_nanos(i64::try_from(span).ok()?);
        time.checked_add(span).ok().map(CelValue::Time)
    };
    match (left, right) {
        (CelValue::Span(left), CelValue::Span(right)) => {
            Some(left + sign * right).filter(|sum| sum.abs() <= MAX_SPAN).map(CelValue::Span).ok_or(too_large)
        }
        (CelValue::Time(time), CelValue::Span(span)) => moved(time, sign * span).ok_or(too_large),
        (CelValue::Span(span), CelValue::Time(time)) if sign == 1 => moved(time, *span).ok_or(too_large),
        (CelValue::Time(left), CelValue::Time(right)) if sign == -1 => {
            Ok(CelValue::Span(left.as_nanosecond() - right.as_nanosecond()))
        }
        (_, _) => Err(EvaluationError::WrongType("arithmetic")),
    }
}

/// Time zone of a name; only offsets from UTC are supported.
fn zone(name: Option<&CelValue<'_>>) -> Result<TimeZone, EvaluationError> {
    let name = match name {
        None => return Ok(TimeZone::UTC),
        Some(CelValue::Text(name)) => &**name,
        Some(_) => return Err(EvaluationError::WrongType("a zone")),
    };
    if name.is_empty() || name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    let (sign, rest) = match name.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, name.strip_prefix('+').unwrap_or(name)),
    };
    let (hours, minutes) = rest.split_once(':').ok_or(EvaluationError::Unsupported)?;
    let number = |text: &str| text.parse::<i32>().map_err(|_| EvaluationError::Unsupported);
    let seconds = sign * (number(hours)? * 3600 + number(minutes)? * 60);
    Offset::from_seconds(seconds)
        .map(Offset::to_time_zone)
        .map_err(|_| EvaluationError::Number(NumberError::NoNumber))
}

/// Returns a part of a timestamp in a time zone, or a duration in a unit.
pub(super) fn part<'a>(
    part: TimePart,
    of: &CelValue<'a>,
    zone_of_it: Option<&CelValue<'a>>,
) -> Result<CelValue<'a>, EvaluationError> {
    let number = match of {
        CelValue::Time(time) => {
            let at = time.to_zoned(zone(zone_of_it)?);
            match part {
                TimePart::Year => i64::from(at.year()),
                TimePart::Month => i64::from(at.month()) - 1,
                TimePart::DayOfMonth => i64::from(at.day()) - 1,
                TimePart::Date => i64::from(at.day()),
                TimePart::DayOfWeek => i64::from(at.weekday().to_sunday_zero_offset()),
                TimePart::DayOfYear => i64::from(at.day_of_year()) - 1,
                TimePart::Hours => i64::from(at.hour()),
                TimePart::Minutes => i64::from(at.minute()),
                TimePart::Seconds => i64::from(at.second()),
                TimePart::Milliseconds => i64::from(at.millisecond()),
            }
        }
        CelValue::Span(span) => {
            let unit = match part {
                TimePart::Hours => 3600 * SECOND,
                TimePart::Minutes => 60 * SECOND,
                TimePart::Seconds => SECOND,
                TimePart::Milliseconds => SECOND / 1000,
                TimePart::Year
                | TimePart::Month
                | TimePart::DayOfMonth
                | TimePart::Date
                | TimePart::DayOfWeek
                | TimePart::DayOfYear => return Err(EvaluationError::WrongType("a part of a span")),
            };
            i64::try_from(span / unit).map_err(|_| EvaluationError::Number(NumberError::TooLarge))?
        }
        _ => return Err(EvaluationError::WrongType("a part of a time")),
    };
    Ok(CelValue::Int(number))
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
        assert_eq!(format_duration(5400 * SECOND), "5400s");
        assert_eq!(format_duration(-3 * SECOND / 2), "-1.5s");
    }
}
