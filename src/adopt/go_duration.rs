//! Converts Go durations to the format and the limits of a Sync.
//!
//! In: text such as `1m30s`, `0.5h` or `500ms`. Out: text such as `90s`, or none if it is no
//! duration.

use crate::api::{MAX_DURATION, MIN_DURATION};
use crate::duration;

/// Nanoseconds of a second.
const NANOS: i128 = 1_000_000_000;

/// A duration for a Sync; true if it had to be changed to fit the limits.
pub(super) fn convert_go_duration(text: &str) -> Option<(String, bool)> {
    // A poll interval has no sign.
    let nanos = duration::parse_go(text).filter(|_| !text.starts_with(['-', '+']))?;
    let (least, most) = (MIN_DURATION.as_secs(), MAX_DURATION.as_secs());
    let whole = u64::try_from(nanos.saturating_add(NANOS - 1) / NANOS).unwrap_or(u64::MAX);
    let seconds = whole.clamp(least, most);
    let shown = match seconds {
        hours if hours % 3600 == 0 => format!("{}h", hours / 3600),
        minutes if minutes % 60 == 0 => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    };
    Some((shown, seconds != whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_brought_into_bounds() {
        for (text, expect) in [
            ("1m0s", Some(("1m", false))),
            ("90s", Some(("90s", false))),
            ("1h30m", Some(("90m", false))),
            ("0.5h", Some(("30m", false))),
            ("1s", Some(("5s", true))),
            ("500ms", Some(("5s", true))),
            ("48h", Some(("24h", true))),
            ("999999999999999999999h", Some(("24h", true))),
            ("", None),
            ("5", None),
            ("m", None),
            ("5d", None),
            ("-5m", None),
            ("1.2.3s", None),
        ] {
            let expect = expect.map(|(text, bound)| (text.to_owned(), bound));
            assert_eq!(convert_go_duration(text), expect, "{text}");
        }
        let spans = ["1m", "90m", "24h", "5s"].map(crate::api::DurationText::from_text);
        assert!(spans.iter().all(|span| span.duration().is_some()));
    }
}
