//! Parts of JSON schemas.
//!
//! In: names and parts. Out: schemas. Each object lists the fields that are always there and those
//! that may be missing; readers must ignore fields that they do not know.

use serde_json::{Map, Value, json};

/// A text.
pub(super) fn text() -> Value {
    json!({"type": "string"})
}

/// A time in RFC 3339.
pub(super) fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// A number without a fraction.
pub(super) fn number() -> Value {
    json!({"type": "integer"})
}

/// True or false.
pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

/// One of some words; readers must expect new ones.
pub(super) fn word(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// Any value.
pub(super) fn any(description: &str) -> Value {
    json!({"description": description})
}

/// An object whose fields are not ours.
pub(super) fn foreign(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": true})
}

/// A list.
pub(super) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// The value or null.
pub(super) fn nullable(mut schema: Value) -> Value {
    let or_null = match schema["type"].take() {
        Value::Array(types) => types.into_iter().chain(["null".into()]).collect(),
        one => json!([one, "null"]),
    };
    schema["type"] = or_null;
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema
}

/// An object: fields that are always there, and fields that may be missing.
pub(super) fn object(always: &[(&str, Value)], sometimes: &[(&str, Value)]) -> Value {
    let fields = always.iter().chain(sometimes);
    let fields: Map<String, Value> =
        fields.map(|(name, field)| ((*name).to_owned(), field.clone())).collect();
    let mut names: Vec<&str> = always.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    json!({"type": "object", "properties": fields, "required": names})
}

/// The fields of an object of another schema, and more that are always there.
pub(super) fn extended(mut base: Value, always: &[(&str, Value)], sometimes: &[(&str, Value)]) -> Value {
    let more = object(always, sometimes);
    if let (Some(fields), Value::Object(added)) = (base["properties"].as_object_mut(), &more["properties"]) {
        fields.extend(added.clone());
    }
    if let (Some(names), Some(added)) = (base["required"].as_array_mut(), more["required"].as_array()) {
        names.extend(added.iter().cloned());
        names.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
        names.dedup();
    }
    base
}

/// The schema of a definition without the extensions of Kubernetes.
pub(super) fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let own =
                fields.iter().filter(|(name, _)| !name.starts_with("x-kubernetes-") && *name != "nullable");
            let mut out: Value = own.map(|(name, field)| (name.clone(), plain(field))).collect();
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                out = nullable(out);
            }
            out
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}
