//! Paths to fields, in a form for people and in that of the API server.
//!
//! In: the keys of `fieldsV1`.
//! Out: [`FieldPath`]. Conflicts name their fields in the server's form, which cannot be parsed
//! unambiguously; so our paths are printed in that form and the texts are compared.

use std::borrow::Cow;
use std::fmt::{self, Write};

use serde_json::Value;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// A field by its name.
    Field(Box<str>),
    /// A list item with certain values of its key fields: JSON of these, with sorted keys.
    Key(Box<str>),
    /// An item of a set, as JSON.
    Value(Box<str>),
    /// A list item by index.
    Index(i64),
    /// An unknown key, verbatim.
    Other(Box<str>),
}

impl Element {
    /// Reads a key of `fieldsV1`.
    pub(super) fn read(key: &str) -> Self {
        // Parsed and written again, JSON has one form.
        let json = |text: &str| serde_json::from_str::<Value>(text).ok();
        let read = match key.split_once(':') {
            Some(("f", name)) => Some(Self::Field(name.into())),
            Some(("k", text)) => {
                json(text).filter(Value::is_object).map(|it| Self::Key(it.to_string().into()))
            }
            Some(("v", text)) => json(text).map(|it| Self::Value(it.to_string().into())),
            Some(("i", text)) => text.parse().ok().map(Self::Index),
            _ => None,
        };
        read.unwrap_or_else(|| Self::Other(key.into()))
    }

    /// Appends the key of `fieldsV1`.
    pub(super) fn write_key(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(json) => {
                out.push_str("k:");
                out.push_str(&safe_for_html(json));
            }
            Self::Value(json) => {
                out.push_str("v:");
                out.push_str(&safe_for_html(json));
            }
            Self::Index(at) => out.push_str(&format!("i:{at}")),
            Self::Other(text) => out.push_str(text),
        }
    }

    /// Appends the form that the API server uses in the causes of a conflict.
    pub fn write_server_form(&self, out: &mut String) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(json) => {
                let key: Value = serde_json::from_str(json).unwrap_or_default();
                let pairs = key.as_object().into_iter().flatten();
                let pairs: Vec<_> = pairs.map(|(name, value)| format!("{name}={}", go_text(value))).collect();
                write!(out, "[{}]", pairs.join(","))
            }
            Self::Value(json) => {
                write!(out, "[={}]", go_text(&serde_json::from_str(json).unwrap_or_default()))
            }
            Self::Index(at) => write!(out, "[{at}]"),
            Self::Other(_) => out.write_str("{{invalid path element}}"),
        }
    }

    fn write_for_people(&self, f: &mut fmt::Formatter<'_>, first: bool) -> fmt::Result {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match self {
            // Quoted if a dot in the name would be misread.
            Self::Field(name) if name.is_empty() || name.contains(['.', '/', '[', ' ']) => {
                write!(f, "[{name:?}]")
            }
            Self::Field(name) if first => f.write_str(name),
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(json) => {
                let key: Value = serde_json::from_str(json).unwrap_or_default();
                let pairs = key.as_object().into_iter().flatten();
                let pairs: Vec<_> = pairs.map(|(name, value)| format!("{name}={}", plain(value))).collect();
                write!(f, "[{}]", pairs.join(","))
            }
            // Quoting marks a text; a bare number would look like an index.
            Self::Value(json) if json.starts_with('"') => write!(f, "[{json}]"),
            Self::Value(json) => write!(f, "[={json}]"),
            Self::Index(at) => write!(f, "[{at}]"),
            Self::Other(text) => write!(f, "[{text:?}?]"),
        }
    }
}

/// Path from the root of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Box<[Element]>);

impl FieldPath {
    pub(super) fn new(elements: &[&Element]) -> Self {
        Self(elements.iter().map(|element| (*element).clone()).collect())
    }

    /// Creates a path of field names only.
    pub fn of_fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| Element::Field((*name).into())).collect())
    }

    /// Returns its steps.
    pub fn elements(&self) -> &[Element] {
        &self.0
    }

    /// Returns its first `steps` steps.
    #[must_use]
    pub fn prefix(&self, steps: usize) -> Self {
        Self(self.0.iter().take(steps).cloned().collect())
    }

    /// True if this path is the other one or below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Formats as the API server does in the causes of a conflict:
    /// `.spec.containers[name="app"].image`.
    pub fn server_form(&self) -> String {
        let mut text = String::new();
        for element in &self.0 {
            // Writing to a string cannot fail.
            let _ = element.write_server_form(&mut text);
        }
        text
    }
}

impl fmt::Display for FieldPath {
    /// Formats for people: `spec.containers[name=app].image`,
    /// `metadata.annotations["moorline.dev/id"]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, element)| element.write_for_people(f, at == 0))
    }
}

/// Escapes JSON as Go's encoder does.
pub fn safe_for_html(json: &str) -> Cow<'_, str> {
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return Cow::Borrowed(json);
    }
    let escaped = json.chars().fold(String::new(), |mut text, char| {
        match char {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(char)))
            }
            other => text.push(other),
        }
        text
    });
    Cow::Owned(escaped)
}

/// Formats a JSON value as structured-merge-diff does.
fn go_text(value: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(go_text).collect::<Vec<_>>().join(",");
    match value {
        Value::String(text) => go_quoted(text),
        Value::Array(items) => format!("[{}]", list(items)),
        Value::Object(fields) => fields
            .iter()
            .fold(String::new(), |text, (name, value)| text + &format!("{name}={}", go_text(value))),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Quotes a text as Go's `%q` does.
fn go_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        // Writing to a string cannot fail.
        let _ = match char {
            '"' | '\\' => write!(out, "\\{char}"),
            '\n' => out.write_str("\\n"),
            '\t' => out.write_str("\\t"),
            '\r' => out.write_str("\\r"),
            '\u{7}' => out.write_str("\\a"),
            '\u{8}' => out.write_str("\\b"),
            '\u{b}' => out.write_str("\\v"),
            '\u{c}' => out.write_str("\\f"),
            ' ' => out.write_char(' '),
            '\0'..='\u{1f}' | '\u{7f}' => write!(out, "\\x{:02x}", u32::from(char)),
            _ if !char.is_control() && !char.is_whitespace() => out.write_char(char),
            '\0'..='\u{ffff}' => write!(out, "\\u{:04x}", u32::from(char)),
            _ => write!(out, "\\U{:08x}", u32::from(char)),
        };
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[&str], people: &str, server: &str) {
        let elements: Vec<Element> = keys.iter().map(|key| Element::read(key)).collect();
        let path = FieldPath(elements.into());
        assert_eq!((path.to_string(), path.server_form()), (people.to_owned(), server.to_owned()));
    }

    #[test]
    fn a_path_is_written_for_people_and_as_the_server_does() {
        check(&["f:data", "f:a"], "data.a", ".data.a");
        check(
            &["f:spec", "f:containers", "k:{\"name\":\"app\"}", "f:image"],
            "spec.containers[name=app].image",
            ".spec.containers[name=\"app\"].image",
        );
        check(
            &["f:ports", "k:{\"protocol\":\"TCP\",\"containerPort\":80}"],
            "ports[containerPort=80,protocol=TCP]",
            ".ports[containerPort=80,protocol=\"TCP\"]",
        );
        check(
            &["f:metadata", "f:annotations", "f:moorline.dev/id"],
            "metadata.annotations[\"moorline.dev/id\"]",
            ".metadata.annotations.moorline.dev/id",
        );
        check(&["f:finalizers", "v:\"x\""], "finalizers[\"x\"]", ".finalizers[=\"x\"]");
        check(&["f:set", "v:1"], "set[=1]", ".set[=1]");
        check(&["f:set", "v:[true,null]"], "set[=[true,null]]", ".set[=[true,null]]");
        check(&["f:list", "i:3"], "list[3]", ".list[3]");
        check(&["f:a", "z:b"], "a[\"z:b\"?]", ".a{{invalid path element}}");
        check(
            &["v:\"a\\\"\\n\\u0001é\\u00a0\""],
            "[\"a\\\"\\n\\u0001é\u{a0}\"]",
            "[=\"a\\\"\\n\\x01é\\u00a0\"]",
        );
    }
}
