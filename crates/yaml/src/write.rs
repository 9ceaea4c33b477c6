//! Writes values as YAML text.
//!
//! In: a JSON value. Out: text in block style that every reader takes for the same value:
//! kubectl's, and those of YAML 1.1 and 1.2. A text that any of them would read as another type is
//! quoted.

use serde_json::{Map, Value};

use super::Dialect;
use super::scalar::{Resolved, resolve};

/// Writes one value as YAML: two blanks a level, lists at the column of their key (as kubectl
/// prints them), keys in the order of the map, a line break at the end.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    node(&mut out, value, 0, false);
    out
}

/// Longer keys are written after `?`: readers look only 1024 bytes ahead for a key's colon.
const MAX_SIMPLE_KEY: usize = 1000;

/// Writes a value at the current position. `indent` is the column of its lines; `open` means that
/// the current line is already at that column (after `- `).
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

/// Writes a value on one line.
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

/// True for characters that stand for themselves in every style.
fn is_plain_char(c: char) -> bool {
    let special = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !c.is_control() && !special
}

/// True if some reader takes the text for a number, a boolean, null, a time, a merge or a default.
/// Such texts hold neither quotes nor backslashes.
fn means_something_else(text: &str) -> bool {
    let resolves = |dialect| resolve(text, dialect) != Resolved::Text;
    let sexagesimal = || {
        text.contains(':')
            && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b':' | b'.' | b'_' | b'+' | b'-'))
    };
    // Some readers accept more times than ours, so every text that begins like one is quoted.
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
        // A brace after any blank, these included, makes kubectl take the file for JSON.
        Some(c) if c.is_whitespace() => false,
        // `--flag` is common and safe; `- x` is a list, and `---` at the start of a line ends the
        // document.
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

/// True if a literal block gives exactly `text` in every reader: it has several lines, the first
/// line has a visible character in its first column, and no line has only blanks or begins with a
/// tab.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{Dialect, read};
    use super::*;

    fn check(value: &Value, expect: &str) {
        assert_eq!(write(value), expect);
        same(value);
    }

    /// Both dialects read back what was written. An empty document counts as none.
    fn same(value: &Value) {
        let text = write(value);
        for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
            let documents = read("written.yaml", text.as_bytes(), dialect)
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            let found = documents.first().map_or(&Value::Null, |document| &document.value);
            assert_eq!(found, value, "{dialect:?}\n{text}");
        }
    }

    #[test]
    fn values_look_like_kubectl_prints_them() {
        let value = json!({
            "data": {"empty": "", "mode": "0644", "on": "yes", "script": "#!/bin/sh\nset -e\n\necho\n", "time": "2001-12-14"},
            "list": [{"a": 1, "b": [1, [2, "x"]]}, [], {}, "two\nlines"],
            "flag": "--v=2",
        });
        let expect = "data:\n  empty: \"\"\n  mode: \"0644\"\n  \"on\": \"yes\"\n  script: |\n    #!/bin/sh\n    set -e\n\n    \
                      echo\n  time: \"2001-12-14\"\nflag: --v=2\nlist:\n- a: 1\n  b:\n  - 1\n  - - 2\n    - x\n- []\n- {}\n- |-\n  \
                      two\n  lines\n";
        check(&value, expect);
        check(&json!("plain"), "plain\n");
        check(&json!("two\nlines\n\n"), "|+\n  two\n  lines\n\n");
        check(&json!({}), "{}\n");
    }

    #[test]
    fn nasty_texts_stay_text() {
        for text in NASTY {
            same(&json!(text));
            same(&json!([text]));
            same(&json!({ "k": text }));
            same(&json!({ "k": [{"a": text, "b": 1}], "l": 2 }));
            if *text != "<<" {
                same(&json!({ *text: 1, "z": {*text: [text]} }));
            }
        }
        let long = "x".repeat(3000);
        same(&json!({ &long: {&long: [1]}, "z": {&long: 1} }));
    }

    /// Texts that some reader resolves to another type, or that break lines and quotes.
    const NASTY: &[&str] = &[
        "",
        " ",
        "  a",
        "a  ",
        "yes",
        "No",
        "on",
        "y",
        "N",
        "true",
        "~",
        "null",
        "NULL",
        "0644",
        "0o17",
        "0x1F",
        "0b1",
        "1_000",
        "1e3",
        "1.5",
        ".5",
        "5.",
        "-1",
        "+1",
        "-",
        "--",
        "---",
        "--- a",
        "...",
        "... a",
        ".inf",
        "-.INF",
        ".nan",
        "12:30:45",
        "2001-12-14",
        "2001-12-14 21:59:43",
        "<<",
        "=",
        "a: b",
        "a:",
        ":a",
        "a #b",
        "#a",
        "a#b",
        "- a",
        "-a",
        "? a",
        "?a",
        "[a",
        "]",
        "{a",
        "}",
        ",",
        "&a",
        "*a",
        "!a",
        "! a",
        "|",
        ">",
        "'",
        "\"",
        "it's",
        "say \"x\"",
        "%a",
        "@a",
        "`a",
        "\\",
        "\\n",
        "\t",
        "a\tb",
        "\ta",
        "a\t",
        "\n",
        "\n\n",
        "a\n",
        "a\n\n",
        "\na",
        " \na",
        "a\n b\n",
        " a\nb",
        "a\n\tb",
        "a\n \nb",
        "a \nb",
        "a\nb ",
        "a\r\nb",
        "\r",
        "a\u{85}b",
        "a\u{2028}b",
        "a\u{2029}b",
        "\u{feff}",
        "\u{feff}a\nb",
        "a\u{feff}",
        "\0",
        "\u{7}",
        "\u{1b}[0m",
        "\u{7f}",
        "\u{9f}",
        "\u{a0}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{1f600}",
        "é",
        "a\n---\nb\n",
        "a\n...\n",
        "# a\nb",
        "{{ .x }}",
        "${x}",
        "0b-1",
        "\u{a0}{a",
        "1__0",
        "08",
        "0_",
    ];

    /// Text made of pieces that confuse readers.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            3 => prop::sample::select(NASTY).prop_map(str::to_owned),
            1 => "[ -~\\n\\t]{0,6}",
            1 => "\\PC{0,3}",
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
    }

    /// Values as a reader returns them: no whole floats within 64 bits, no integers above.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter_map("a number that stays a float", |float| {
                let number = super::super::scalar::float(float).ok()?;
                number.is_f64().then_some(Value::Number(number))
            }),
            text().prop_map(Value::String),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            // Kustomize drops the key `<<` however it is written.
            let key = text().prop_filter("a key that Kustomize keeps", |key| key != "<<");
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::btree_map(key, inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_written_is_read_back(value in value()) {
            same(&value);
        }
    }
}
