//! Traversal of a value: by its type, or by the value itself where the type leaves it open.
//!
//! In: a [`Schema`] and a value of it.
//! Out: [`ValueShape`]; the path elements of list items.

use serde_json::{Map, Value};

use super::super::schema::{Field, List, ListType, Scalar, Schema, Shape, WritePolicy};
use moorline_managed_fields::Element;

/// Shape in which a value is traversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueShape {
    /// A leaf: not traversed further.
    Leaf,
    /// Traversed by field names.
    Map,
    /// Traversed by the items of a granular list.
    List,
}

/// Returns the shape of a value.
pub(super) fn value_shape(schema: &Schema, value: &Value) -> ValueShape {
    match schema.shape() {
        Shape::Scalar(_) | Shape::Opaque => ValueShape::Leaf,
        Shape::Fields(fields) if fields.atomic => ValueShape::Leaf,
        Shape::Fields(_) => ValueShape::Map,
        Shape::List(list) if list.merge == ListType::Atomic => ValueShape::Leaf,
        Shape::List(_) => ValueShape::List,
        // Null counts as an empty map.
        Shape::Anything => match value {
            Value::Object(_) | Value::Null => ValueShape::Map,
            Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => ValueShape::Leaf,
        },
    }
}

/// Returns the list type of a schema, if it is one.
pub(super) fn list_of(schema: &Schema) -> Option<&List> {
    match schema.shape() {
        Shape::List(list) => Some(list),
        Shape::Scalar(_) | Shape::Fields(_) | Shape::Anything | Shape::Opaque => None,
    }
}

/// Returns the items of a list with their path elements; items without one are left out.
pub(super) fn items<'a>(list: &List, items: &'a [Value]) -> Vec<(Element, &'a Value)> {
    items.iter().filter_map(|item| Some((step(list, item).ok()?, item))).collect()
}

/// Returns the path element of an item of a granular list, or the error in the wording of the
/// server.
pub(super) fn step(list: &List, item: &Value) -> Result<Element, String> {
    let keys = match &list.merge {
        ListType::Keyed(keys) => keys,
        ListType::Set | ListType::Atomic => return value_step(item).map_err(str::to_owned),
    };
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err("associative list with keys may not have non-map elements".to_owned());
        }
    };
    let mut named = Map::new();
    for key in keys {
        let value = fields.get(&**key).cloned().or_else(|| absent(list.items().declared(key)?));
        if let Some(value) = value {
            named.insert(key.to_string(), value);
        }
    }
    if named.is_empty() && !keys.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(Element::Key(Value::Object(named).to_string().into()))
}

fn value_step(item: &Value) -> Result<Element, &'static str> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type"),
        Value::Array(_) => Err("not supported: associative list with lists as elements"),
        Value::Null => Err("associative list without keys has an element that's an explicit null"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Element::Value(item.to_string().into())),
    }
}

/// Returns the value of a key field that is absent: its default, or the zero value of Go.
fn absent(field: &Field) -> Option<Value> {
    if let Some(default) = &field.default {
        return Some(default.clone());
    }
    if field.pointer || field.write_policy != WritePolicy::Always {
        return None;
    }
    match field.schema().shape() {
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Number) => Some(Value::from(0)),
        Shape::Scalar(Scalar::Boolean) => Some(Value::Bool(false)),
        Shape::Scalar(Scalar::String) => Some(Value::from("")),
        Shape::Scalar(_) | Shape::Fields(_) | Shape::List(_) | Shape::Anything | Shape::Opaque => None,
    }
}

/// True if two values are equal; 1 equals 1.0.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| one.0 == other.0 && same(one.1, other.1))
        }
        (one, other) => one == other,
    }
}
