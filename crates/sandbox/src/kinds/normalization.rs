//! Normal form in which an API server stores and returns objects.
//!
//! In: an object that matches its schema.
//! Out: the object as Go writes it after decoding: no nulls, no zero values of `omitempty` fields,
//! all fields that are always written, canonical quantities and times, and the `stringData` of a
//! Secret in its `data`. Normalizing twice changes nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::schema::{Field, Fields, Scalar, Schema, Shape, WritePolicy};
use moorline_cel::quantity;

/// Maximum depth; values below it are left unchanged.
const MAX_DEPTH: usize = 128;

/// Normalizes an object of a built-in kind.
pub(crate) fn normalize(schema: &Schema, kind: &str, object: &mut Value) {
    if kind == "Secret" {
        encode_strings(object);
    }
    value(schema, object, 0);
}

/// Moves `stringData` of a Secret to `data`, where it replaces existing keys.
fn encode_strings(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    let data = secret.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = json!({});
    }
    let Some(data) = data.as_object_mut() else { return };
    for (key, text) in texts {
        data.insert(key, STANDARD.encode(text.as_str().unwrap_or_default()).into());
    }
}

fn value(schema: &Schema, it: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema.shape() {
        Shape::Scalar(scalar) => {
            if let Some(form) = form(*scalar, it) {
                *it = form;
            }
        }
        Shape::List(list) => {
            it.as_array_mut().into_iter().flatten().for_each(|item| value(list.items(), item, depth + 1));
        }
        Shape::Fields(all) => fields(all, it, depth),
        Shape::Anything | Shape::Opaque => {}
    }
}

fn fields(all: &Fields, it: &mut Value, depth: usize) {
    let Some(map) = it.as_object_mut() else { return };
    let counts = all.others().is_some_and(|it| matches!(it.shape(), Shape::Scalar(Scalar::Quantity)));
    map.retain(|name, it| match (all.declared(name), all.others()) {
        (Some(field), _) => keep(field, it, depth),
        (None, Some(_)) if counts => {
            if let Some(form) = amount(it, true) {
                *it = form;
            }
            true
        }
        (None, Some(schema)) => {
            // A null in a map is the zero value of its type.
            if it.is_null() {
                *it = zero(schema);
            }
            value(schema, it, depth + 1);
            true
        }
        (None, None) => false,
    });
    for field in all.known() {
        if !map.contains_key(&*field.name) && is_always_there(field) {
            let mut made = if field.pointer { Value::Null } else { zero(field.schema()) };
            value(field.schema(), &mut made, depth + 1);
            map.insert(field.name.to_string(), made);
        }
    }
}

/// Normalizes the value of a field; returns false if Go omits it.
fn keep(field: &Field, it: &mut Value, depth: usize) -> bool {
    if !it.is_null() {
        value(field.schema(), it, depth + 1);
        let emptied = matches!(it, Value::Array(items) if items.is_empty())
            && field.write_policy == WritePolicy::Always;
        if emptied {
            // Stored objects do not distinguish an empty list from null.
            *it = Value::Null;
            return true;
        }
        let dropped = match field.write_policy {
            WritePolicy::Always => false,
            WritePolicy::UnlessEmpty => it.is_array() || !(field.pointer || is_struct(field.schema())),
            WritePolicy::UnlessZero => !field.pointer,
        };
        return !(dropped && is_zero(it));
    }
    let stays = is_always_there(field);
    if stays && !field.pointer {
        *it = zero(field.schema());
        value(field.schema(), it, depth + 1);
    }
    stays
}

/// True if Go writes the field even if it is not set.
fn is_always_there(field: &Field) -> bool {
    match field.write_policy {
        WritePolicy::Always => true,
        WritePolicy::UnlessEmpty => !field.pointer && is_struct(field.schema()),
        WritePolicy::UnlessZero => false,
    }
}

/// True if the type is a struct in Go, which `omitempty` never omits.
fn is_struct(schema: &Schema) -> bool {
    match schema.shape() {
        Shape::Fields(fields) => !fields.known().is_empty(),
        Shape::Scalar(scalar) => matches!(
            scalar,
            Scalar::Time | Scalar::MicroTime | Scalar::Duration | Scalar::Quantity | Scalar::IntOrString
        ),
        Shape::List(_) | Shape::Anything | Shape::Opaque => false,
    }
}

fn is_zero(it: &Value) -> bool {
    match it {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Number(it) => it.as_f64() == Some(0.0),
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    }
}

/// Returns the zero value of a type that is no pointer, as Go writes it.
fn zero(schema: &Schema) -> Value {
    match schema.shape() {
        Shape::Scalar(Scalar::Boolean) => json!(false),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Number | Scalar::IntOrString) => json!(0),
        Shape::Scalar(Scalar::Quantity) => json!("0"),
        Shape::Scalar(Scalar::String | Scalar::Duration | Scalar::Formatted) => json!(""),
        Shape::Scalar(Scalar::Time | Scalar::MicroTime | Scalar::Bytes) | Shape::List(_) | Shape::Opaque => {
            Value::Null
        }
        Shape::Fields(fields) if fields.known().is_empty() => Value::Null,
        Shape::Fields(_) => Value::Object(Map::new()),
        Shape::Anything => Value::Null,
    }
}

/// Returns the canonical form of a scalar; `None` if it is canonical.
fn form(scalar: Scalar, it: &Value) -> Option<Value> {
    match scalar {
        Scalar::Quantity => amount(it, false),
        Scalar::Time => time(it, "%Y-%m-%dT%H:%M:%SZ"),
        Scalar::MicroTime => time(it, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        Scalar::Bytes => {
            let text = it.as_str()?;
            let clean: String = text.chars().filter(|char| !matches!(char, '\n' | '\r')).collect();
            (clean != text).then_some(Value::String(clean))
        }
        Scalar::String
        | Scalar::Int32
        | Scalar::Int64
        | Scalar::Number
        | Scalar::Boolean
        | Scalar::IntOrString
        | Scalar::Duration
        | Scalar::Formatted => None,
    }
}

fn amount(it: &Value, milli: bool) -> Option<Value> {
    let form = match it {
        Value::String(text) => quantity::canonical(text, milli),
        Value::Number(number) => quantity::canonical(&number.to_string(), milli),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    form.map(Value::String)
}

fn time(it: &Value, format: &str) -> Option<Value> {
    let moment: jiff::Timestamp = it.as_str()?.parse().ok()?;
    Some(Value::String(moment.strftime(format).to_string()))
}
