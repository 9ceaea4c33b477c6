//! Dates and times of YAML 1.1.
//!
//! In: a plain scalar. Out: whether it is a time, and the time in the one form that Kustomize
//! writes (RFC 3339). kubectl keeps the text of such a scalar; Kustomize turns a bare `2001-12-14`
//! into midnight.

use std::fmt::Write as _;

/// Parts of a timestamp as they are written.
struct Parts<'a> {
    year: u32,
    month: u32,
    day: u32,
    time: Option<Time<'a>>,
}

/// Time of day.
struct Time<'a> {
    hour: u32,
    minute: u32,
    second: u32,
    /// Digits after the dot of the second.
    fraction: &'a str,
    /// Offset from UTC: sign, hours and minutes.
    offset: Option<(char, u32, u32)>,
}

/// True if `text` is a date or a time.
pub(super) fn is_timestamp(text: &str) -> bool {
    // A cheap check first: most numbers are no timestamps.
    text.as_bytes().get(4) == Some(&b'-') && parse(text).is_some()
}

/// Formats a time as RFC 3339; none if `text` is no time or its offset has no such form.
pub(super) fn to_rfc3339(text: &str) -> Option<String> {
    let Parts { year, month, day, time } = parse(text)?;
    let mut out = format!("{year:04}-{month:02}-{day:02}T");
    let Some(time) = time else {
        out.push_str("00:00:00Z");
        return Some(out);
    };
    // Writing to a String cannot fail.
    let _ = write!(out, "{:02}:{:02}:{:02}", time.hour, time.minute, time.second);
    let fraction = time.fraction.get(..9).unwrap_or(time.fraction).trim_end_matches('0');
    if !fraction.is_empty() {
        let _ = write!(out, ".{fraction}");
    }
    match time.offset {
        None | Some((_, 0, 0)) => out.push('Z'),
        Some((_, 24.., _)) => return None,
        // Sixty minutes count as one more hour.
        Some((_, 23, 60)) => return None,
        Some((sign, hour, 60)) => {
            let _ = write!(out, "{sign}{:02}:00", hour + 1);
        }
        Some((sign, hour, minute)) => {
            let _ = write!(out, "{sign}{hour:02}:{minute:02}");
        }
    }
    Some(out)
}

fn parse(text: &str) -> Option<Parts<'_>> {
    let (year, rest) = text.split_at_checked(4)?;
    if !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let year = year.parse().ok()?;
    let (month, rest) = short(rest.strip_prefix('-')?)?;
    let (day, rest) = short(rest.strip_prefix('-')?)?;
    if !(1..=12).contains(&month) || !(1..=days(year, month)).contains(&day) {
        return None;
    }
    let time = match rest.chars().next() {
        None => None,
        Some('T' | 't') => Some(clock(&rest[1..], true)?),
        Some(' ') => Some(clock(&rest[1..], false)?),
        Some(_) => return None,
    };
    Some(Parts { year, month, day, time })
}

/// Parses the time after the date; an offset must follow after the separator `T`, and must not
/// after a blank.
fn clock(text: &str, zoned: bool) -> Option<Time<'_>> {
    let (hour, rest) = short(text)?;
    let (minute, rest) = short(rest.strip_prefix(':')?)?;
    let (second, rest) = short(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = match rest.strip_prefix(['.', ',']) {
        Some(after) => {
            let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            after.split_at(end)
        }
        None => ("", rest),
    };
    let offset = match (zoned, rest) {
        (true, "Z") => Some(('+', 0, 0)),
        (true, rest) => Some(offset(rest)?),
        (false, "") => None,
        (false, _) => return None,
    };
    Some(Time { hour, minute, second, fraction, offset })
}

/// Parses `+hh:mm` or `-hh:mm`; 24 hours and 60 minutes are accepted.
fn offset(text: &str) -> Option<(char, u32, u32)> {
    let sign = text.chars().next().filter(|c| matches!(c, '+' | '-'))?;
    let (hour, minute) = text[1..].split_once(':')?;
    let two = |text: &str| match text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u32>().ok(),
        false => None,
    };
    let (hour, minute) = (two(hour)?, two(minute)?);
    (hour <= 24 && minute <= 60).then_some((sign, hour, minute))
}

/// Parses a number of one or two digits; returns it with the rest of the text.
fn short(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let value = text[..digits].parse().ok()?;
    Some((value, &text[digits..]))
}

/// Returns the number of days of a month.
fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::to_rfc3339;

    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(to_rfc3339(text).as_deref(), expect, "{text}");
    }

    #[test]
    fn times_take_one_form() {
        check("2001-12-14", Some("2001-12-14T00:00:00Z"));
        check("2024-1-2", Some("2024-01-02T00:00:00Z"));
        check("2001-12-14t21:59:43.10-05:00", Some("2001-12-14T21:59:43.1-05:00"));
        check("2001-12-15 2:59:43.10", Some("2001-12-15T02:59:43.1Z"));
        check("2001-12-14T1:2:3.000+00:00", Some("2001-12-14T01:02:03Z"));
    }

    #[test]
    fn what_is_no_time_stays_text() {
        for text in ["2001-13-01", "2001-02-29", "2001-12-14 21:59:43.10 -5", "2001-12-14T", "12-12-12"] {
            check(text, None);
        }
    }
}
