//! Durations as text, in the two dialects that Kubernetes users write.
//!
//! In: text.
//! Out: [`parse`] reads whole numbers with the units `h`, `m`, `s` and `ms`, as settings and Syncs
//! have them (`500ms`, `1h30m`), and [`format()`] writes them, so that a formatted duration parses
//! to the same value. [`parse_go`] reads all that Go's `time.ParseDuration` reads: also signs,
//! fractions and units down to nanoseconds.

use std::time::Duration;

/// Units of a duration, the shortest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// `ns`.
    Nanosecond,
    /// `us`, with either micro sign also `µs`.
    Microsecond,
    /// `ms`.
    Millisecond,
    /// `s`.
    Second,
    /// `m`.
    Minute,
    /// `h`.
    Hour,
}

/// One number with its unit, such as `1.5h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Digits before the dot.
    whole: &'a str,
    /// Digits after the dot; none without a dot.
    fraction: Option<&'a str>,
    unit: Unit,
}

/// Fraction digits that are read: further ones are below a nanosecond in every unit.
const MAX_FRACTION_DIGITS: usize = 15;

impl Unit {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "ns" => Self::Nanosecond,
            "us" | "\u{b5}s" | "\u{3bc}s" => Self::Microsecond,
            "ms" => Self::Millisecond,
            "s" => Self::Second,
            "m" => Self::Minute,
            "h" => Self::Hour,
            _ => return None,
        })
    }

    const fn nanoseconds(self) -> i128 {
        match self {
            Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Hour => 3_600_000_000_000,
        }
    }
}

impl Part<'_> {
    /// Returns the unit.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the number of digits before the dot.
    pub fn digits(&self) -> usize {
        self.whole.len()
    }

    /// Nanoseconds, rounded down; a number that is too large becomes the largest.
    fn nanoseconds(&self) -> i128 {
        // Only digits: no text but the empty one fails for another reason than its size.
        let number = |digits: &str| match digits {
            "" => 0,
            digits => digits.parse().unwrap_or(i128::MAX),
        };
        let unit = self.unit.nanoseconds();
        let fraction = self.fraction.unwrap_or_default();
        let fraction = &fraction[..fraction.len().min(MAX_FRACTION_DIGITS)];
        let scale = (0..fraction.len()).fold(1, |scale, _| scale * 10);
        number(self.whole).saturating_mul(unit).saturating_add(number(fraction) * unit / scale)
    }
}

/// Splits a text without a sign into its parts; `None` if it is no sequence of numbers with units.
/// An empty text has no parts.
pub fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    let (mut rest, mut parts) = (text, Vec::new());
    let is_of_number = |char: char| char.is_ascii_digit() || char == '.';
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|char| !is_of_number(char))?);
        let (unit, next) = after.split_at(after.find(is_of_number).unwrap_or(after.len()));
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let digits = whole.len() + fraction.map_or(0, str::len);
        if digits == 0 || fraction.is_some_and(|digits| digits.contains('.')) {
            return None;
        }
        parts.push(Part { whole, fraction, unit: Unit::parse(unit)? });
        rest = next;
    }
    Some(parts)
}

/// Parses a duration of whole numbers of hours, minutes, seconds and milliseconds; `None` if the
/// text is anything else or too large.
pub fn parse(text: &str) -> Option<Duration> {
    let parts = parts(text).filter(|parts| !parts.is_empty())?;
    if parts.iter().any(|part| part.fraction.is_some() || part.unit < Unit::Millisecond) {
        return None;
    }
    let milliseconds = sum(&parts) / Unit::Millisecond.nanoseconds();
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Parses a duration of Go to nanoseconds, rounded down. A text whose number is too large gives the
/// largest number: a Go program would refuse what is beyond `i64`.
pub fn parse_go(text: &str) -> Option<i128> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    match text {
        "" => None,
        "0" => Some(0),
        text => parts(text).map(|parts| sign * sum(&parts)),
    }
}

fn sum(parts: &[Part<'_>]) -> i128 {
    parts.iter().fold(0, |sum: i128, part| sum.saturating_add(part.nanoseconds()))
}

/// Returns the shortest text for a duration of whole milliseconds.
pub fn format(duration: Duration) -> String {
    const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, milliseconds) in UNITS {
        if rest >= milliseconds {
            text += &format!("{}{unit}", rest / milliseconds);
            rest %= milliseconds;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000;

    #[test]
    fn durations_read_as_they_are_shown() {
        for (text, milliseconds, shortest) in [
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "1m30s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("30m1h", 5_400_000, "1h30m"),
            ("24h", 86_400_000, "24h"),
            ("0s", 0, "0s"),
            ("1s500ms", 1500, "1s500ms"),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
            assert_eq!(format(Duration::from_millis(milliseconds)), shortest);
            assert_eq!(parse_go(text), Some(i128::from(milliseconds) * 1_000_000), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "", "0", "30", "s", "1.5s", ".5s", "1.s", "-1s", "+1s", "1 s", "1d", "1S", "1us", "5ns", "1s2",
            "é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["99999999999999999999s", "9999999999999999h", "99999999999999999999ms"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn go_durations_are_read_as_go_reads_them() {
        for (text, nanoseconds) in [
            ("1h30m", 5400 * SECOND),
            ("1.5s", 3 * SECOND / 2),
            (".5s", SECOND / 2),
            ("1.s", SECOND),
            ("-3ms", -3_000_000),
            ("+1us", 1_000),
            ("1\u{b5}s1\u{3bc}s", 2_000),
            ("0.5ns", 0),
            ("0", 0),
            ("-0", 0),
            ("0.333333333333333333333h", 1_199_999_999_999),
        ] {
            assert_eq!(parse_go(text), Some(nanoseconds), "{text}");
        }
        for text in ["", "-", "1", "h", ".s", "1x", "1.2.3s", "1s2", "--1s", "1s-2s", "1 s"] {
            assert_eq!(parse_go(text), None, "{text}");
        }
        let large = "9".repeat(100) + "h";
        assert_eq!(parse_go(&large), Some(i128::MAX));
        assert_eq!(parse_go(&format!("-{large}{large}")), Some(-i128::MAX));
    }
}
