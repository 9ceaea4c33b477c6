//! What an applier no longer applies goes, unless somebody else owns it.
//!
//! In: the merged object, what its applier owned, and what everybody owns now, each in one version. Out: the object without
//! what only the applier owned and no longer names, step by step: in between, it may go over to another version.

use serde_json::Value;

use super::super::schema::Schema;
use super::claim::claim;
use super::way::{Way, list_of, step, way};
use moorline_managed_fields::{Element, FieldSet, Node};

/// Without all that the applier owned before.
pub(super) fn without(schema: &Schema, merged: &Value, last: &FieldSet) -> Value {
    taken(schema, merged, &with_named(schema, last))
}

/// What others own comes back, with all around it; what is applied now is among it.
pub(super) fn owned_back(schema: &Schema, merged: &Value, without: &Value, managed: &FieldSet) -> Value {
    let mut kept = with_named(schema, &claim(schema, without));
    kept.add(with_named(schema, managed));
    taken(schema, merged, &with_named(schema, &claim(schema, merged)).minus(&kept))
}

/// What the applier never owned comes back, too, even if it stood in what went.
pub(super) fn never_owned_back(schema: &Schema, merged: &Value, without: &Value, last: &FieldSet) -> Value {
    let left = with_named(schema, &claim(schema, without));
    let gone = with_named(schema, &claim(schema, merged)).minus(&left);
    taken(schema, merged, &gone.intersect(&with_named(schema, last)))
}

fn taken(schema: &Schema, merged: &Value, fields: &FieldSet) -> Value {
    let mut left = merged.clone();
    remove(schema, &mut left, &fields.root);
    left
}

/// The set with every declared field in which something is owned: such a field is there because of what is in it.
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

/// Takes fields and items out of a value. What is left empty by that is nothing.
fn remove(schema: &Schema, value: &mut Value, fields: &Node) {
    let is_gone = |element: &Element| fields.children.get(element).is_some_and(|node| node.owned);
    let inside = |element: &Element| fields.children.get(element).filter(|node| !node.children.is_empty());
    match way(schema, value) {
        Way::Leaf if value.is_array() || value.is_object() => *value = Value::Null,
        Way::Leaf => {}
        Way::Map => {
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
        Way::List => {
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
