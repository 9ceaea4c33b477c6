//! Durations as people write them: `500ms`, `30s`, `1h30m`.
//!
//! In: text.
//! Out: a duration, and the shortest text for one. The units are those of Kubernetes' own settings
//! without fractions, so that a formatted duration parses to the same value.

use std::time::Duration;

/// Units with their milliseconds, the longest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Parses a duration; none if the text is invalid.
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut total) = (text, 0u64);
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit())?;
        let (number, behind) = rest.split_at(digits);
        let unit = behind.find(|char: char| char.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        let (_, milliseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*milliseconds)?)?;
        rest = behind;
    }
    (!text.is_empty()).then(|| Duration::from_millis(total))
}

/// Returns the shortest text for a duration of whole milliseconds.
pub(super) fn format(duration: Duration) -> String {
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

    #[test]
    fn durations_read_as_they_are_shown() {
        for (text, milliseconds, shortest) in [
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "1m30s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("24h", 86_400_000, "24h"),
            ("0s", 0, "0s"),
            ("1s500ms", 1500, "1s500ms"),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
            assert_eq!(format(Duration::from_millis(milliseconds)), shortest);
        }
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            "30",
            "s",
            "1.5s",
            "-1s",
            "1 s",
            "1d",
            "1S",
            "99999999999999999999s",
            "9999999999999999h",
            "é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
