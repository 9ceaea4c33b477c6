//! Label and field selectors.
//!
//! In: their text in the query.
//! Out: a [`Selector`] that matches objects, or the error that Kubernetes returns for an invalid
//! selector.

use serde_json::Value;

use super::store::StoredObject;
use crate::status_error::StatusError;

/// Conditions that an object must satisfy.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq)]
enum LabelRequirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

#[derive(Debug, Clone, PartialEq)]
struct FieldRequirement {
    path: String,
    equal: bool,
    value: String,
}

impl Selector {
    /// Parses both selectors; `known` lists the fields that the kind supports besides name and
    /// namespace.
    pub(crate) fn read(
        labels: Option<&str>,
        fields: Option<&str>,
        known: &[&str],
    ) -> Result<Self, StatusError> {
        let mut selector = Self::default();
        for part in split(labels.unwrap_or_default()) {
            let why = if part.contains("===") { "found '=', expected: identifier" } else { part };
            let label = label(part);
            selector
                .labels
                .push(label.ok_or_else(|| {
                    StatusError::bad_request(format!("unable to parse requirement: {why}"))
                })?);
        }
        for part in fields.unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
            let found = ["!=", "==", "="].iter().find_map(|sign| Some((*sign, part.split_once(sign)?)));
            let Some((sign, (path, value))) = found else {
                return Err(StatusError::bad_request(format!(
                    "invalid selector: {part:?}; can't understand {part:?}"
                )));
            };
            if !matches!(path, "metadata.name" | "metadata.namespace") && !known.contains(&path) {
                return Err(StatusError::bad_request(format!("field label not supported: {path}")));
            }
            selector.fields.push(FieldRequirement {
                path: path.to_owned(),
                equal: sign != "!=",
                value: value.to_owned(),
            });
        }
        Ok(selector)
    }

    /// True if every object matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns the name, if the selector matches only one name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields
            .iter()
            .find(|field| field.equal && field.path == "metadata.name")
            .map(|field| &*field.value)
    }

    /// True if the object matches.
    pub(crate) fn fits(&self, stored: &StoredObject) -> bool {
        self.labels.iter().all(|label| label.fits(stored)) && self.fits_fields(stored)
    }

    fn fits_fields(&self, stored: &StoredObject) -> bool {
        let mut body: Option<Value> = None;
        self.fields.iter().all(|field| {
            let equal = match field.path.as_str() {
                "metadata.name" => *stored.key.name == *field.value,
                "metadata.namespace" => *stored.key.namespace == *field.value,
                path => text_at(body.get_or_insert_with(|| stored.body()), path) == field.value,
            };
            equal == field.equal
        })
    }
}

fn text_at(body: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(body, |value, name| value.get(name));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

impl LabelRequirement {
    fn fits(&self, stored: &StoredObject) -> bool {
        match self {
            Self::In(name, values) => {
                stored.label(name).is_some_and(|value| values.iter().any(|it| it == value))
            }
            Self::NotIn(name, values) => {
                !stored.label(name).is_some_and(|value| values.iter().any(|it| it == value))
            }
            Self::Exists(name) => stored.label(name).is_some(),
            Self::Absent(name) => stored.label(name).is_none(),
        }
    }
}

/// Splits at the commas outside parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |char| {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        char == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn label(text: &str) -> Option<LabelRequirement> {
    let valid =
        |name: &str| (!name.is_empty() && !name.contains([' ', '(', ')', '=', '!'])).then(|| name.to_owned());
    if let Some(name) = text.strip_prefix('!') {
        return Some(LabelRequirement::Absent(valid(name.trim())?));
    }
    if let Some((name, value)) = text.split_once("!=") {
        return Some(LabelRequirement::NotIn(valid(name.trim())?, vec![value.trim().to_owned()]));
    }
    if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        let value = value.trim();
        return (!value.starts_with('='))
            .then_some(LabelRequirement::In(valid(name.trim())?, vec![value.to_owned()]));
    }
    let Some((head, values)) = text.split_once('(') else {
        return Some(LabelRequirement::Exists(valid(text)?));
    };
    let values = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    let mut words = head.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(name), Some("in"), None) => Some(LabelRequirement::In(valid(name)?, values)),
        (Some(name), Some("notin"), None) => Some(LabelRequirement::NotIn(valid(name)?, values)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::store::{Key, Store};
    use super::*;

    #[test]
    fn an_object_fits_what_it_is() {
        let body = json!({"metadata": {"name": "a", "labels": {"app": "shop", "tier": "web"}}, "status": {"phase": "Running"}});
        let Value::Object(mut body) = body else { unreachable!() };
        let stored = Store::default().put(&"pods".into(), Key::new("n", "a"), &mut body);
        let check = |labels: &str, fields: &str, expect: bool| {
            let selector = Selector::read(Some(labels), Some(fields), &["status.phase"]).unwrap();
            assert_eq!(selector.fits(&stored), expect, "{labels} {fields}");
        };
        check("", "", true);
        check("app=shop", "", true);
        check("app==shop,tier!=db", "", true);
        check("app in (shop, cart),tier notin (db)", "", true);
        check("app in (cart)", "", false);
        check("app", "metadata.name=a", true);
        check("!app", "", false);
        check("!zone", "metadata.name!=a", false);
        check("", "status.phase=Running,metadata.namespace=n", true);
        check("", "status.phase!=Running", false);
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        assert!(Selector::read(Some("a in b"), None, &[]).is_err());
        let refused = Selector::read(None, Some("spec.nodeName=a"), &[]).unwrap_err();
        assert_eq!(refused.message, "field label not supported: spec.nodeName");
    }
}
