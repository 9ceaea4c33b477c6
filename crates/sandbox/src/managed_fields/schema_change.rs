//! Adapts field sets to a changed schema of a definition.
//!
//! In: the fields of a manager, and the current schema.
//! Out: the fields by that schema: a list or map that is atomic now is owned as a whole, without
//! the fields in it.

use serde_json::{Map, Value};

use super::super::schema::{ListType, Schema, Shape};
use moorline_managed_fields::{Element, FieldSet, Node};

/// True if a serialized set matches the current schema, which is the usual case.
pub(super) fn matches_schema(schema: &Schema, fields: &Value) -> bool {
    fields.as_object().into_iter().flatten().all(|(key, inner)| {
        let schema = match key.split_at_checked(2) {
            Some(("f:", name)) => schema.field(name),
            Some(("k:" | "v:" | "i:", _)) => schema.items(),
            _ => None,
        };
        schema.is_none_or(|schema| match is_whole(schema) {
            Some(true) => inner.as_object().is_some_and(Map::is_empty),
            Some(false) => matches_schema(schema, inner),
            None => true,
        })
    })
}

/// Adapts a set to the current schema.
pub(super) fn reconcile(schema: &Schema, fields: &mut FieldSet) {
    below(schema, &mut fields.root);
}

fn below(schema: &Schema, node: &mut Node) {
    for (element, inner) in &mut node.children {
        let schema = match element {
            Element::Field(name) => schema.field(name),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => schema.items(),
            Element::Other(_) => None,
        };
        if let Some(schema) = schema {
            follow(schema, inner);
        }
    }
}

fn follow(schema: &Schema, node: &mut Node) {
    match is_whole(schema) {
        Some(true) if !node.children.is_empty() => *node = Node::LEAF,
        Some(false) => below(schema, node),
        Some(true) | None => {}
    }
}

/// True for an atomic list or map, false for a granular one; `None` for scalars and untyped values.
fn is_whole(schema: &Schema) -> Option<bool> {
    match schema.shape() {
        Shape::Fields(fields) => Some(fields.atomic),
        Shape::List(list) => Some(list.merge == ListType::Atomic),
        Shape::Scalar(_) | Shape::Anything | Shape::Opaque => None,
    }
}
