//! Sets of fields follow the schema of a definition when it changes.
//!
//! In: what a manager owns, and the schema as it is now. Out: what it owns by that schema: of a list or mapping that is
//! replaced whole since then, the whole and nothing in it.

use super::super::schema::{ListType, Schema, Shape};
use crate::fields::{Element, FieldSet, Node};

/// Brings a set to the schema as it is now.
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
    let is_whole = match schema.shape() {
        Shape::Fields(fields) => fields.atomic,
        Shape::List(list) => list.merge == ListType::Atomic,
        // What is open keeps what it has.
        Shape::Scalar(_) | Shape::Anything | Shape::Opaque => return,
    };
    if !is_whole {
        below(schema, node);
    } else if !node.children.is_empty() {
        *node = Node::LEAF;
    }
}
