//! Durations in the short format of kubectl: `45s`, `3m20s`, `5d`.
//!
//! In: two times, or seconds.
//! Out: the text.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Formats the time since a timestamp of an object; `<unknown>` if there is none.
pub(super) fn since(moment: &Value, now: Timestamp) -> String {
    match moment.as_str().filter(|it| !it.is_empty()) {
        None => "<unknown>".to_owned(),
        Some(text) => match text.parse::<Timestamp>() {
            Ok(moment) => between(moment, now),
            Err(_) => "<invalid>".to_owned(),
        },
    }
}

/// Formats the time between two timestamps.
pub(super) fn between(start: Timestamp, end: Timestamp) -> String {
    human(end.as_second().saturating_sub(start.as_second()))
}

/// Formats a duration in seconds. One second below zero counts as zero, because clocks differ.
pub(super) fn human(seconds: i64) -> String {
    let two = |big: i64, name: &str, small: i64, unit: &str| match small {
        0 => format!("{big}{name}"),
        small => format!("{big}{name}{small}{unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (5 * HOUR + 5 * MINUTE, "5h5m"),
            (8 * HOUR, "8h"),
            (48 * HOUR, "2d"),
            (50 * HOUR, "2d2h"),
            (8 * DAY, "8d"),
            (YEAR, "365d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (8 * YEAR + 3 * DAY, "8y"),
        ] {
            assert_eq!(human(seconds), text);
        }
    }
}
