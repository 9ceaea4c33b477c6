//! Fields that an applied configuration contains.
//!
//! In: an applied object.
//! Out: the set of its leaf fields and of the items of its lists.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::schema::{List, Schema};
use super::schema_walk::{ValueShape, items, list_of, value_shape};
use moorline_managed_fields::{Element, FieldSet, Node};

/// Returns the set of fields that an object contains.
pub(super) fn applied_fields(schema: &Schema, object: &Value) -> FieldSet {
    FieldSet { root: Node { owned: false, ..walk(schema, object) } }
}

fn walk(schema: &Schema, value: &Value) -> Node {
    match value_shape(schema, value) {
        ValueShape::Leaf => Node::LEAF,
        ValueShape::Map => value.as_object().map(|fields| by_name(schema, fields)).unwrap_or_default(),
        ValueShape::List => match (list_of(schema), value.as_array()) {
            (Some(list), Some(values)) => by_item(list, values),
            _ => Node::default(),
        },
    }
}

fn by_name(schema: &Schema, fields: &Map<String, Value>) -> Node {
    let mut node = Node::default();
    for (name, value) in fields {
        let Some(inner) = schema.field(name) else { continue };
        let mut inner = walk(inner, value);
        // Null or an empty map is owned itself, and so is every key of a map.
        inner.owned |= value.is_null()
            || value.as_object().is_some_and(Map::is_empty)
            || schema.declared(name).is_none();
        node.insert_child(&Element::Field(name.as_str().into()), inner);
    }
    node
}

fn by_item(list: &List, values: &[Value]) -> Node {
    let mut node = Node::default();
    let mut twice = BTreeSet::new();
    for (element, item) in items(list, values) {
        if node.children.contains_key(&element) {
            twice.insert(element);
            continue;
        }
        let mut inner = walk(list.items(), item);
        inner.owned = true;
        node.insert_child(&element, inner);
    }
    // An item that occurs twice is owned as a whole.
    for element in twice {
        node.children.insert(element, Node::LEAF);
    }
    node
}
