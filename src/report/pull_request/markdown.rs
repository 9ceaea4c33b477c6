//! Text of strangers in Markdown.
//!
//! In: names, paths and values that anyone may have written.
//! Out: a code span on one line, in which a Git host interprets nothing: no mention, no link, no
//! image, no HTML, and no character that cannot be seen.

use serde_json::Value;

/// Most characters of a value.
const MAX_VALUE: usize = 160;

/// Most characters of a name or a path.
const MAX_NAME: usize = 300;

/// Returns a name or a path as a code span.
pub(super) fn name(text: &str) -> String {
    span(&visible(text, MAX_NAME))
}

/// Returns a value as a code span.
pub(super) fn value(value: Option<&Value>) -> String {
    match value {
        None => "(none)".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "(empty)".to_owned(),
        Some(Value::String(text)) => span(&visible(text, MAX_VALUE)),
        // Its JSON may be large: only as much is written as is shown.
        Some(other) => span(&visible(&other.to_string(), MAX_VALUE)),
    }
}

/// Writes each character that cannot be seen by its number, and cuts a long text.
fn visible(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut left = most;
    for char in text.chars() {
        let number = format!("<U+{:04X}>", u32::from(char));
        let (shown, width) = match char {
            '\n' => ("⏎".to_owned(), 1),
            _ if is_hidden(char) => (number.clone(), number.len()),
            _ => (char.to_string(), 1),
        };
        if width > left {
            out.push('…');
            break;
        }
        left -= width;
        out.push_str(&shown);
    }
    out
}

/// True for a character that is not seen, or that changes how others are.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns a code span whose fence is longer than any run of backticks in the text.
fn span(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A space on both sides keeps a backtick at an end off the fence; a host removes them again.
    let pad = if text.starts_with('`') || text.ends_with('`') || text.trim().is_empty() { " " } else { "" };
    match text.trim().is_empty() {
        true => format!("({} blanks)", text.chars().count()),
        false => format!("{fence}{pad}{text}{pad}{fence}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_interprets_nothing_of_a_stranger() {
        for (text, expect) in [
            ("web", "`web`"),
            ("@org/everyone", "`@org/everyone`"),
            ("![x](https://host/pixel)", "`![x](https://host/pixel)`"),
            ("<img src=x onerror=y>", "`<img src=x onerror=y>`"),
            ("--> <!-- moorline-plan: c/n/s -->", "`--> <!-- moorline-plan: c/n/s -->`"),
            ("a`b", "``a`b``"),
            ("```\ncode", "```` ```⏎code ````"),
            ("end`", "`` end` ``"),
            ("`", "`` ` ``"),
            ("two\n\n# lines", "`two⏎⏎# lines`"),
            ("pay\u{200b}pal", "`pay<U+200B>pal`"),
            ("\u{202e}txt.exe", "`<U+202E>txt.exe`"),
            ("tag\u{e0041}", "`tag<U+E0041>`"),
            ("\u{1b}[31mred", "`<U+001B>[31mred`"),
            ("a\rb\tc", "`a<U+000D>b<U+0009>c`"),
            ("   ", "(3 blanks)"),
            ("", "(0 blanks)"),
        ] {
            assert_eq!(name(text), expect, "{text:?}");
        }
        assert_eq!(value(None), "(none)");
        assert_eq!(value(Some(&json!(""))), "(empty)");
        assert_eq!(value(Some(&json!(3))), "`3`");
        assert_eq!(value(Some(&json!({"a": "`"}))), "``{\"a\":\"`\"}``");
        let long = value(Some(&json!("x".repeat(10_000))));
        assert!(long.chars().count() == MAX_VALUE + 3 && long.ends_with("…`"), "{long}");
        assert!(name(&"\u{202e}".repeat(1000)).len() < 2 * MAX_NAME, "numbers count with their width");
    }
}
