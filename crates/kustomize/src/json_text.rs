//! Writes JSON as Go does, for a JSON text in which one value is replaced.
//!
//! In: a value, and the text that it comes from. Out: the new text, with line breaks if the old one
//! had them.

use std::fmt::Write as _;

use serde_json::Value;

/// From here on, readers of numbers differ.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Formats a value; none for numbers that would change.
pub(super) fn json_text(value: &Value, is_indented: bool) -> Option<String> {
    let mut out = String::new();
    put(&mut out, value, is_indented.then_some(0))?;
    Some(out)
}

fn put(out: &mut String, value: &Value, depth: Option<usize>) -> Option<()> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)?),
        Value::String(text) => quoted(out, text)?,
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(map) if map.is_empty() => out.push_str("{}"),
        Value::Array(items) => {
            out.push('[');
            let inner = depth.map(|depth| depth + 1);
            for (at, item) in items.iter().enumerate() {
                separate(out, at, inner);
                put(out, item, inner)?;
            }
            break_line(out, depth);
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            let inner = depth.map(|depth| depth + 1);
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| key.as_str());
            for (at, (key, field)) in fields.into_iter().enumerate() {
                separate(out, at, inner);
                quoted(out, key)?;
                out.push_str(if inner.is_some() { ": " } else { ":" });
                put(out, field, inner)?;
            }
            break_line(out, depth);
            out.push('}');
        }
    }
    Some(())
}

fn separate(out: &mut String, at: usize, depth: Option<usize>) {
    if at > 0 {
        out.push(',');
    }
    break_line(out, depth);
}

fn break_line(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

/// Appends a quoted text, with the characters of HTML escaped.
fn quoted(out: &mut String, text: &str) -> Option<()> {
    for character in serde_json::to_string(text).ok()?.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(out, "\\u{:04x}", u32::from(character)).ok()?
            }
            character => out.push(character),
        }
    }
    Some(())
}

fn number_text(number: &serde_json::Number) -> Option<String> {
    if !number.is_f64() {
        return number.as_i64().map(|whole| whole.to_string());
    }
    let value = number.as_f64()?;
    let size = value.abs();
    if (TWO_TO_63..2.0 * TWO_TO_63).contains(&size) {
        return None;
    }
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e')?;
        let sign = if exponent.starts_with('-') { "" } else { "+" };
        return Some(format!("{digits}e{sign}{exponent}"));
    }
    Some(format!("{value}"))
}

/// True if all texts and numbers of a JSON text are formatted as Go does.
pub(super) fn is_written_as_go_does(json: &str) -> bool {
    let mut rest = json;
    while let Some(start) = rest.find(|char: char| char == '"' || char == '-' || char.is_ascii_digit()) {
        rest = &rest[start..];
        let is_text = rest.starts_with('"');
        let length = if is_text {
            length_of_text(rest)
        } else {
            rest.find(|char: char| !"+-.eE".contains(char) && !char.is_ascii_digit())
        };
        let (token, after) = rest.split_at(length.unwrap_or(rest.len()));
        let mut written = String::new();
        let is_alike = match serde_json::from_str(token) {
            Ok(Value::String(text)) => quoted(&mut written, &text).is_some() && written == token,
            Ok(Value::Number(number)) => {
                token != "-0" && number_text(&number).is_some_and(|text| text == token)
            }
            _ => false,
        };
        if !is_alike {
            return false;
        }
        rest = after;
    }
    true
}

/// Returns the length of the quoted text at the beginning.
fn length_of_text(json: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map(|end| end + 2)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_text_are_written_as_go_does() {
        let value =
            json!({"b": [1.5, 1e-7, 1e21, -2e300, 1e20], "a": "<&>\u{2028}\u{8}\u{1}é", "c": [], "d": {}});
        let compact = "{\"a\":\"\\u003c\\u0026\\u003e\\u2028\\b\\u0001é\",\"b\":[1.5,1e-7,1e+21,-2e+300,\
                       100000000000000000000],\"c\":[],\"d\":{}}";
        assert_eq!(json_text(&value, false).unwrap(), compact);
        let indented = "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ]\n}";
        assert_eq!(json_text(&json!({"a": [1, {"b": null}]}), true).unwrap(), indented);
        assert_eq!(json_text(&json!(1e19), false), None);
    }

    #[test]
    fn what_go_would_write_in_another_way_is_found() {
        for text in [r#"{"a": ["x\"y", 1, -2.5, 1e+21, true, null], "": "\u003c\\"}"#, "[]", "{}"] {
            assert!(is_written_as_go_does(text), "{text}");
        }
        for text in
            [r#"["<"]"#, r#"["\u0061"]"#, "[1.0]", "[1e3]", "[-0]", "[9223372036854775808]", r#"{"a&b": 1}"#]
        {
            assert!(!is_written_as_go_does(text), "{text}");
        }
    }
}
