//! Checks an applied configuration against its type.
//!
//! In: an applied object.
//! Out: nothing, or the errors in the wording of the API server, which come from
//! structured-merge-diff and show values as Go prints them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::schema::{Fields, List, ListType, Scalar, Schema, Shape};
use super::schema_walk::step;
use moorline_managed_fields::Element;

/// Maximum number of errors that are reported for one object.
const MAX_TOLD: usize = 100;

/// Checks the types of an applied object.
pub(super) fn check(schema: &Schema, object: &Value) -> Result<(), String> {
    let mut walk = Walk { path: String::new(), told: Vec::new() };
    walk.value(schema, object);
    match &*walk.told {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

struct Walk {
    path: String,
    told: Vec<String>,
}

impl Walk {
    fn tell(&mut self, words: &str) {
        if self.told.len() < MAX_TOLD {
            let path = &self.path;
            self.told.push(if path.is_empty() { words.to_owned() } else { format!("{path}: {words}") });
        }
    }

    fn value(&mut self, schema: &Schema, value: &Value) {
        match schema.shape() {
            Shape::Anything | Shape::Opaque => {}
            Shape::Scalar(scalar) => self.scalar(*scalar, value),
            Shape::Fields(fields) => self.fields(fields, value),
            Shape::List(list) => self.list(list, value),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        let words = match (scalar, value) {
            (_, Value::Null)
            | (Scalar::Int32 | Scalar::Int64 | Scalar::Number, Value::Number(_))
            | (Scalar::String | Scalar::Bytes, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_)) => return,
            (Scalar::Int32 | Scalar::Int64 | Scalar::Number, other) => {
                format!("expected numeric (int or float), got {}", go_type(other))
            }
            (Scalar::String | Scalar::Bytes | Scalar::Duration, other) if !other.is_string() => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other))
            }
            (Scalar::Boolean, other) => format!("expected boolean, got &{{{}}}", go_print(other)),
            (_, other @ (Value::Array(_) | Value::Object(_))) => {
                format!("expected any scalar, got &{{{}}}", go_print(other))
            }
            (_, Value::Bool(_) | Value::Number(_) | Value::String(_)) => return,
        };
        self.tell(&words);
    }

    fn fields(&mut self, fields: &Fields, value: &Value) {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => return,
            other => return self.tell(&format!("expected map, got &{{{}}}", go_print(other))),
        };
        for (name, value) in map {
            let length = self.path.len();
            self.path.push('.');
            self.path.push_str(name);
            match fields.of(name) {
                Some(schema) => self.value(schema, value),
                None => self.tell("field not declared in schema"),
            }
            self.path.truncate(length);
            if fields.of(name).is_none() {
                return;
            }
        }
    }

    fn list(&mut self, list: &List, value: &Value) {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return,
            other => return self.tell(&format!("expected list, got &{{{}}}", go_print(other))),
        };
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let element = match list.merge {
                ListType::Atomic => Element::Index(i64::try_from(at).unwrap_or(i64::MAX)),
                ListType::Set | ListType::Keyed(_) => match step(list, item) {
                    Ok(element) => element,
                    Err(words) => return self.tell(&format!("element {at}: {words}")),
                },
            };
            let mut shown = String::new();
            // Writing to a string cannot fail.
            let _ = element.write_server_form(&mut shown);
            if !seen.insert(element) {
                self.tell(&format!("duplicate entries for key {shown}"));
            }
            let length = self.path.len();
            self.path.push_str(&shown);
            self.value(list.items(), item);
            self.path.truncate(length);
        }
    }
}

/// Name of the Go type of a JSON value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a value as Go's `%v` does.
fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go_print).collect::<Vec<_>>().join(" "))
        }
        Value::Object(fields) => {
            let pairs: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name}:{}", go_print(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// Formats a value as Go's `%#v` does.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let pairs: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}
