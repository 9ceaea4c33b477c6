//! Values as YAML text.
//!
//! In: a JSON value. Out: text in block style that every reader takes for the same value: kubectl's, those
//! of YAML 1.1 and those of YAML 1.2. Whatever any of them would take for something else than text is quoted.

use serde_json::{Map, Value};

use super::Dialect;
use super::scalar::{Resolved, resolve};

/// One value as YAML: two blanks a level, lists at the column of their key (as kubectl prints them), keys in
/// the order of the map, a line break at the end.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    node(&mut out, value, 0, false);
    out
}

/// Keys above this are written after `?`: readers look only 1024 bytes ahead for a key's colon.
const MAX_SIMPLE_KEY: usize = 1000;

/// Writes a value that begins at the current position. `indent` is the column of its lines; if `open` is
/// true, the current line already stands at that column (after `- `).
fn node(out: &mut String, value: &Value, indent: usize, open: bool) {
    match value {
        Value::Object(map) if !map.is_empty() => fields(out, map, indent, open),
        Value::Array(items) if !items.is_empty() => {
            for (position, item) in items.iter().enumerate() {
                if !open || position > 0 {
                    pad(out, indent);
                }
                out.push_str("- ");
                node(out, item, indent + 2, true);
            }
        }
        Value::String(text) if is_literal(text) => literal(out, text, indent.max(2)),
        value => {
            leaf(out, value);
            out.push('\n');
        }
    }
}

fn fields(out: &mut String, map: &Map<String, Value>, indent: usize, open: bool) {
    for (position, (key, value)) in map.iter().enumerate() {
        if !open || position > 0 {
            pad(out, indent);
        }
        let start = out.len();
        string(out, key);
        if out.len() - start > MAX_SIMPLE_KEY {
            out.insert_str(start, "? ");
            out.push('\n');
            pad(out, indent);
        }
        out.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                fields(out, map, indent + 2, false);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                node(out, value, indent, false);
            }
            value => {
                out.push(' ');
                node(out, value, indent + 2, true);
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// A value on one line.
fn leaf(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => string(out, text),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn string(out: &mut String, text: &str) {
    if !text.chars().all(is_plain_char) {
        double_quoted(out, text);
    } else if means_something_else(text) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else if is_plain(text) {
        out.push_str(text);
    } else {
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
    }
}

/// Characters that stand for themselves in every style.
fn is_plain_char(c: char) -> bool {
    let special = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !c.is_control() && !special
}

/// True if some reader takes the text for a number, a boolean, nothing, a time, a merge or a default.
/// Such texts hold neither quotes nor backslashes.
fn means_something_else(text: &str) -> bool {
    let resolves = |dialect| resolve(text, dialect) != Resolved::Text;
    let sexagesimal = || {
        text.contains(':')
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b':' | b'.' | b'_' | b'+' | b'-'))
    };
    // Some readers take more times than ours: everything that begins like one.
    let time = || matches!(text.as_bytes(), [y1, y2, y3, y4, b'-', ..] if [y1, y2, y3, y4].iter().all(|y| y.is_ascii_digit()));
    let quotable = !text.contains(['"', '\\']);
    let other = resolves(Dialect::Kubectl) || resolves(Dialect::Kustomize) || sexagesimal() || time();
    quotable && (other || matches!(text, "<<" | "="))
}

/// True if text needs no quotes between `key:` and the end of the line.
fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let first = match chars.next() {
        None | Some(' ' | '?' | ':' | ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>') => {
            false
        }
        Some('\'' | '"' | '%' | '@' | '`' | '~' | '=' | '<') => false,
        // `--flag` is common and safe; `- x` is a list, and `---` at a line's start ends the document.
        Some('-') => chars.next().is_some_and(|c| c != ' ') && !text.starts_with("---"),
        Some('.') => !text.starts_with("..."),
        Some(_) => true,
    };
    first && !text.ends_with([' ', ':']) && !text.contains(": ") && !text.contains(" #")
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_plain_char(c) => out.push(c),
            // Every such character is below U+10000.
            c => out.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    out.push('"');
}

/// True if a literal block says exactly `text` to every reader: several lines, the first with a visible
/// character in its first column, none of blanks only or beginning with a tab.
fn is_literal(text: &str) -> bool {
    let line = |line: &str| line.is_empty() || !(line.starts_with('\t') || line.trim_matches(' ').is_empty());
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && text.chars().all(|c| is_plain_char(c) || matches!(c, '\n' | '\t'))
        && text.split('\n').all(line)
}

fn literal(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push_str(match text.len() - body.len() {
        0 => "|-\n",
        1 => "|\n",
        _ => "|+\n",
    });
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
}
