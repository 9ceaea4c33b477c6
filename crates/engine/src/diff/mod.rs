//! Unified diffs of values: the same lines for the terminal, the page and JSON.
//!
//! In: two values, one of which may be missing.
//! Out: the [`Line`]s of a unified diff with three lines of context. Multi-line texts are compared
//! line by line; mappings and lists are compared as YAML. Nothing is redacted here: the caller
//! passes only values that may be shown.

mod lines;
mod truncate;
mod unified;

pub use lines::{Edit, Script, edits};
pub use truncate::{Bounds, TruncatedDiff, truncate};
pub use unified::{Line, unified};

use std::borrow::Cow;

use serde_json::Value;

use moorline_yaml as yaml;

/// Returns the unified diff of two values; a missing value is an empty text.
pub fn diff(old: Option<&Value>, new: Option<&Value>) -> Vec<Line> {
    let raw = is_text(old) && is_text(new) && (has_lines(old) || has_lines(new));
    let text = |value: Option<&Value>| -> String {
        match value {
            None => String::new(),
            Some(Value::String(text)) if raw => text.clone(),
            Some(value) => yaml::write(value),
        }
    };
    unified(&text(old), &text(new))
}

/// Formats both values on one line, as `5 -> 3`; none if one needs more than `width` characters or
/// several lines.
pub fn brief(old: Option<&Value>, new: Option<&Value>, width: usize) -> Option<String> {
    let (old, new) = (brief_side(old, width)?, brief_side(new, width)?);
    Some(format!("{old} -> {new}"))
}

/// Formats one value on one line; none if it needs more.
pub fn brief_side(value: Option<&Value>, width: usize) -> Option<Cow<'static, str>> {
    let Some(value) = value else { return Some(Cow::Borrowed("(not set)")) };
    let is_short = match value {
        Value::String(text) => !text.contains('\n') && text.len() <= 4 * width,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    let text = is_short.then(|| value.to_string())?;
    (text.chars().count() <= width).then_some(Cow::Owned(text))
}

fn is_text(value: Option<&Value>) -> bool {
    value.is_none_or(Value::is_string)
}

fn has_lines(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| text.contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(old: Option<Value>, new: Option<Value>, expect: &[&str]) {
        let lines: Vec<String> = diff(old.as_ref(), new.as_ref()).iter().map(ToString::to_string).collect();
        assert_eq!(lines, expect);
    }

    #[test]
    fn texts_are_compared_by_line_and_other_values_as_yaml() {
        check(Some(json!("a\nb\n")), Some(json!("a\nc\n")), &["@@ -1,2 +1,2 @@", " a", "-b", "+c"]);
        check(Some(json!("a")), Some(json!("b")), &["@@ -1 +1 @@", "-a", "+b"]);
        check(Some(json!(5)), Some(json!("5")), &["@@ -1 +1 @@", "-5", "+\"5\""]);
        check(
            None,
            Some(json!({"name": "b", "env": [{"name": "X"}]})),
            &["@@ -0,0 +1,3 @@", "+env:", "+- name: X", "+name: b"],
        );
        check(Some(json!(["a", "b"])), None, &["@@ -1,2 +0,0 @@", "-- a", "-- b"]);
        check(Some(json!("a\nb")), Some(json!({"a": 1})), &["@@ -1,3 +1 @@", "-|-", "-  a", "-  b", "+a: 1"]);
        check(None, None, &[]);
    }

    #[test]
    fn short_values_fit_on_one_line() {
        let (five, text) = (json!(5), json!("a\nb"));
        assert_eq!(brief(Some(&five), None, 60).as_deref(), Some("5 -> (not set)"));
        assert_eq!(brief(Some(&five), Some(&text), 60), None);
        assert_eq!(brief(None, Some(&json!("x".repeat(60))), 60), None);
        assert_eq!(brief(None, Some(&json!({})), 60).as_deref(), Some("(not set) -> {}"));
    }
}
