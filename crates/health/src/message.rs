//! Building blocks of the sentences that explain health.
//!
//! In: counts, durations, texts of controllers.
//! Out: parts of a sentence, on one line and of bounded length. Any client that may write a status
//! controls these texts; control sequences of terminals are removed by the code that prints them.

/// Maximal number of characters that are quoted of one controller text.
const MAX_QUOTED_CHARS: usize = 240;

/// Quotes a controller's text as part of a sentence: one line, bounded length, no trailing full
/// stop.
pub(super) fn quote(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(MAX_QUOTED_CHARS));
    let mut chars = 0;
    // Stops reading at the limit: a message may be a megabyte long.
    for word in
        text.split(|char: char| char.is_whitespace() || char.is_control()).filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
            chars += 1;
        }
        let room = MAX_QUOTED_CHARS.saturating_sub(chars);
        line.extend(word.chars().take(room));
        chars += word.chars().take(room + 1).count();
        if chars > MAX_QUOTED_CHARS {
            line.push('…');
            return line;
        }
    }
    line.truncate(line.trim_end_matches('.').len());
    line
}

/// Formats `1 replica is`, `3 replicas are`.
pub(super) fn count_are(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun} is"),
        _ => format!("{count} {noun}s are"),
    }
}

/// Formats `1 of 3 replicas is`, `0 of 1 replica is`.
pub(super) fn count_of_are(count: u64, all: u64, noun: &str) -> String {
    let plural = if all == 1 { "" } else { "s" };
    let verb = if count == 1 || all == 1 { "is" } else { "are" };
    format!("{count} of {all} {noun}{plural} {verb}")
}

/// Formats a duration in the largest unit that divides it: `10 minutes`, `1 hour`.
pub(super) fn format_duration(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    let (count, unit) = match seconds {
        _ if seconds >= 3600 && seconds % 3600 == 0 => (seconds / 3600, "hour"),
        _ if seconds >= 60 && seconds % 60 == 0 => (seconds / 60, "minute"),
        _ => (seconds, "second"),
    };
    match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_bounded_line() {
        assert_eq!(quote(" a\n\tb\u{1b}c. "), "a b c");
        assert_eq!(quote(""), "");
        assert_eq!(quote(&"x".repeat(MAX_QUOTED_CHARS)), "x".repeat(MAX_QUOTED_CHARS));
        assert_eq!(quote(&"ä".repeat(9_999)), "ä".repeat(MAX_QUOTED_CHARS) + "…");
        assert_eq!(quote(&"ab ".repeat(9_999)).chars().count(), MAX_QUOTED_CHARS + 1);
    }

    #[test]
    fn counts_and_spans_are_plain() {
        assert_eq!(count_are(1, "replica"), "1 replica is");
        assert_eq!(count_are(0, "replica"), "0 replicas are");
        assert_eq!(count_of_are(1, 3, "replica"), "1 of 3 replicas is");
        assert_eq!(count_of_are(0, 1, "replica"), "0 of 1 replica is");
        assert_eq!(count_of_are(2, 3, "replica"), "2 of 3 replicas are");
        let spans = [1, 60, 90, 600, 3600, 5400, 0].map(|seconds| format_duration(seconds * 1000));
        assert_eq!(
            spans,
            ["1 second", "1 minute", "90 seconds", "10 minutes", "1 hour", "90 minutes", "0 seconds"]
        );
    }
}
