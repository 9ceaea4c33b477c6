//! A problem in a manifest: the field, the value found, and what is expected.
//!
//! In: a type mismatch, an unknown field, or a cause in the wording of an API server.
//! Out: a [`Finding`] in one sentence. For hidden values only the type is shown.

use serde_json::Value;

use super::path;
use moorline_core::did_you_mean::nearest_name;

/// Maximum length of a value; longer ones are cut.
const MAX_VALUE: usize = 100;

/// Maximum length of a message of the server; longer ones are cut.
const MAX_WORDS: usize = 400;

/// One problem in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path of the field, such as `spec.replicas`; empty for the whole object.
    pub field: String,
    /// The value found, and what is expected.
    pub message: String,
}

impl Finding {
    fn new(field: &str, words: String) -> Self {
        Self { field: field.to_owned(), message: words }
    }

    /// A value that does not have the type of its field.
    pub(super) fn mismatch(field: &str, value: &Value, expected: &str, hides: bool) -> Self {
        Self::new(field, format!("found {}; expected {expected}", typed(value, hides)))
    }

    /// A field that the type does not have.
    pub(super) fn unknown<'a>(field: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let meant =
            nearest_name(name, known).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        Self::new(field, format!("unknown field{meant}"))
    }

    /// A version that the definition does not serve.
    pub(super) fn version(found: &str, served: &str) -> Self {
        Self::new(
            "apiVersion",
            format!("found version {found}; the CustomResourceDefinition serves {served}"),
        )
    }

    /// Returns the value of the field.
    pub(super) fn value_in<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        path::value(object, &self.field)
    }
}

/// Converts a cause of an API server; `object` is the one that was validated.
pub(super) fn finding_of_cause(
    reason: &str,
    message: &str,
    field: &str,
    object: &Value,
    hides: bool,
) -> Finding {
    let field = if field == "<nil>" { "" } else { field };
    let value = path::value(object, field);
    let found = || value.map_or_else(|| "nothing".to_owned(), |value| typed(value, hides));
    let words = words(message);
    let words = words.strip_prefix(&format!("{field} in body ")).unwrap_or(words);
    let or = |other: &str| if words.is_empty() { other.to_owned() } else { cut_to(words, MAX_WORDS) };
    let sentence = match reason {
        "FieldValueRequired" => format!("missing: {}", or("a value is required")),
        "FieldValueForbidden" => format!("not allowed: {words}"),
        "FieldValueDuplicate" => format!("found {} twice; expected no duplicates", found()),
        "FieldValueTypeInvalid" => {
            let expected = message.split("must be of type ").nth(1).unwrap_or_default();
            format!("found {}; expected the type {}", found(), expected.split(':').next().unwrap_or_default())
        }
        _ if words.starts_with("`selector` does not match") => {
            let selector = path::value(object, &field.replace("template.metadata.labels", "selector"));
            let selector = selector.map(|it| cut(&it.to_string())).unwrap_or_default();
            format!("found {}; expected labels that match the selector: {selector}", found())
        }
        _ if is_about_key(message, field) => format!("invalid key: {words}"),
        // Every message may quote a value.
        _ if hides => format!("found {}, which is not valid", found()),
        "FieldValueNotSupported" => {
            format!("found {}; {}", found(), words.replace("supported values:", "expected one of"))
        }
        "FieldValueInvalid" if value.is_some_and(|it| !it.is_object() && !it.is_array()) => {
            format!("found {}; {}", found(), or("this is not valid"))
        }
        _ => or(message),
    };
    Finding::new(field, sentence)
}

/// Strips the prefix of a message and the quoted value: `Invalid value: 11: `.
fn words(message: &str) -> &str {
    let Some((_, rest)) = message.split_once(": ") else { return "" };
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
    let is_value = values.next().is_some_and(|value| value.is_ok());
    match rest.get(values.byte_offset()..) {
        Some("") if is_value => "",
        Some(after) if is_value => after.strip_prefix(": ").unwrap_or(rest),
        _ => rest,
    }
}

/// True for a cause about the last key of the path, and not about the value under it.
fn is_about_key(message: &str, field: &str) -> bool {
    let key = field.strip_suffix(']').and_then(|field| field.rsplit_once('[')).map(|(_, key)| key);
    key.is_some_and(|key| message.starts_with(&format!("Invalid value: {}: ", Value::from(key))))
}

/// Formats a value with its type, such as `a string "three"`.
fn typed(value: &Value, hides: bool) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    };
    match value {
        _ if hides => format!("{kind}, whose value is hidden"),
        value => format!("{kind} {}", cut(&value.to_string())),
    }
}

fn cut(text: &str) -> String {
    cut_to(text, MAX_VALUE)
}

fn cut_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
