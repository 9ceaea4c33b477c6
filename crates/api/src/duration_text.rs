//! Durations as people write them in a Sync: `30s`, `5m`, `1h30m`.
//!
//! In: text.
//! Out: a duration, or none. The original text is kept, so that a Sync with an invalid one can
//! still be read and be refused with a reason.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use moorline_core::duration::{self, Part, Unit};

/// Shortest duration that a Sync may name: a repository must not be polled more often.
pub const MIN_DURATION: Duration = Duration::from_secs(5);

/// Longest duration that a Sync may name: a longer one is a mistake, or means `suspend`.
pub const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// Hours, minutes and seconds, each at most once and in this order: less than the dialect of
/// settings, so that the API server can check it by a pattern.
const PATTERN: &str = "^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$";

/// Maximum number of digits before a unit.
const MAX_DIGITS: usize = 5;

/// Duration such as `30s`, `5m` or `1h30m`, with its original text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(Box<str>);

impl DurationText {
    /// Wraps a text, valid or not.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the duration if the text is valid and between [`MIN_DURATION`] and [`MAX_DURATION`].
    pub fn duration(&self) -> Option<Duration> {
        let parts = duration::parts(&self.0)?;
        let in_order = parts.windows(2).all(|pair| pair[0].unit() > pair[1].unit());
        let fits = |part: &Part<'_>| part.unit() >= Unit::Second && part.digits() <= MAX_DIGITS;
        let duration = duration::parse(&self.0).filter(|_| in_order && parts.iter().all(fits));
        duration.filter(|duration| (MIN_DURATION..=MAX_DURATION).contains(duration))
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 2,
            "maxLength": 18,
            "pattern": PATTERN,
            // A text that is no duration fails `matches` first, so `duration(self)` is never
            // evaluated on it.
            "x-kubernetes-validations": [{
                "rule": format!(
                    "self.matches('{PATTERN}') && duration(self) >= duration('{}s') && duration(self) <= duration('{}s')",
                    MIN_DURATION.as_secs(),
                    MAX_DURATION.as_secs(),
                ),
                "message": "write a duration from 5s to 24h, such as 30s, 5m or 1h30m",
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_go_reads_them() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(DurationText::from_text(text).duration(), expect.map(Duration::from_secs), "{text}");
        };
        check("30s", Some(30));
        check("5m", Some(300));
        check("90m", Some(5400));
        check("1h30m", Some(5400));
        check("1h0m5s", Some(3605));
        check("24h", Some(86400));
        check("5s", Some(5));
        check("4s", None);
        check("24h1s", None);
        check("99999h", None);
        check("100000s", None);
        check("123456s", None);
        for wrong in
            ["", "30", "s", "m30", "30s5m", "1.5h", "-5m", "+5m", "5m ", "1d", "5M", "500ms", "1h1h", "é"]
        {
            check(wrong, None);
        }
    }
}
