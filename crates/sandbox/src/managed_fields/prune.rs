//! Removes the fields that an applier no longer applies, unless another manager owns them.
//!
//! In: the merged object, the former fields of its applier, and the fields of all managers, each in
//! one version.
//! Out: the object without the fields that only the applier owned and no longer applies. This is
//! done step by step, because the object may be converted in between.

use serde_json::Value;

use super::super::schema::Schema;
use super::applied_fields::applied_fields;
use super::schema_walk::{ValueShape, list_of, step, value_shape};
use moorline_managed_fields::{Element, FieldSet, Node};

/// Removes all fields that the applier owned before.
pub(super) fn without(schema: &Schema, merged: &Value, last: &FieldSet) -> Value {
    taken(schema, merged, &with_named(schema, last))
}

/// Restores the fields that any manager owns now, which includes those that are applied now.
pub(super) fn restore_owned(schema: &Schema, merged: &Value, without: &Value, managed: &FieldSet) -> Value {
    let mut kept = with_named(schema, &applied_fields(schema, without));
    kept.add(with_named(schema, managed));
    taken(schema, merged, &with_named(schema, &applied_fields(schema, merged)).minus(&kept))
}

/// Restores fields that the applier never owned but that were inside removed ones.
pub(super) fn restore_never_owned(
    schema: &Schema,
    merged: &Value,
    without: &Value,
    last: &FieldSet,
) -> Value {
    let left = with_named(schema, &applied_fields(schema, without));
    let gone = with_named(schema, &applied_fields(schema, merged)).minus(&left);
    taken(schema, merged, &gone.intersect(&with_named(schema, last)))
}

fn taken(schema: &Schema, merged: &Value, fields: &FieldSet) -> Value {
    let mut left = merged.clone();
    remove(schema, &mut left, &fields.root);
    left
}

/// Adds every declared field that contains an owned one: such a field exists because of its
/// content.
fn with_named(schema: &Schema, set: &FieldSet) -> FieldSet {
    let mut set = set.clone();
    name(Some(schema), &mut set.root);
    set
}

fn name(schema: Option<&Schema>, node: &mut Node) {
    for (element, inner) in &mut node.children {
        if inner.children.is_empty() {
            continue;
        }
        let below = schema.and_then(|schema| match element {
            Element::Field(name) => schema.field(name),
            Element::Key(_) => schema.items(),
            Element::Value(_) | Element::Index(_) | Element::Other(_) => None,
        });
        if let (Element::Field(name), Some(schema)) = (element, schema) {
            inner.owned |= schema.declared(name).is_some();
        }
        name(below, inner);
    }
}

/// Removes fields and items from a value. A container that becomes empty turns into null.
fn remove(schema: &Schema, value: &mut Value, fields: &Node) {
    let is_gone = |element: &Element| fields.children.get(element).is_some_and(|node| node.owned);
    let inside = |element: &Element| fields.children.get(element).filter(|node| !node.children.is_empty());
    match value_shape(schema, value) {
        ValueShape::Leaf if value.is_array() || value.is_object() => *value = Value::Null,
        ValueShape::Leaf => {}
        ValueShape::Map => {
            let Some(map) = value.as_object_mut() else { return };
            map.retain(|name, value| {
                let element = Element::Field(name.as_str().into());
                if is_gone(&element) {
                    return false;
                }
                if let (Some(fields), Some(schema)) = (inside(&element), schema.field(name)) {
                    remove(schema, value, fields);
                }
                true
            });
            if map.is_empty() {
                *value = Value::Null;
            }
        }
        ValueShape::List => {
            let (Some(list), Some(items)) = (list_of(schema), value.as_array_mut()) else { return };
            items.retain_mut(|item| {
                let Ok(element) = step(list, item) else { return true };
                if is_gone(&element) {
                    return false;
                }
                if let Some(fields) = inside(&element) {
                    remove(list.items(), item, fields);
                }
                true
            });
            if items.is_empty() {
                *value = Value::Null;
            }
        }
    }
}
