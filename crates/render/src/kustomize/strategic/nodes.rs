//! Values of a merge as nodes with an identity.
//!
//! In: the object and the patch. Out: nodes that refer to each other by [`NodeId`], and the merged
//! object. Kustomize merges in place: a part of the patch that the object takes over is one node in
//! both, and later changes on one side are visible on the other. Lists with several keys depend on
//! this, so it is reproduced.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

/// Identity of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(usize);

/// A value whose parts are nodes.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Null,
    Scalar(Value),
    Map(BTreeMap<String, Id>),
    List(Vec<Id>),
}

/// All nodes of a merge.
#[derive(Debug, Default)]
pub(super) struct Nodes(Vec<Node>);

impl Nodes {
    /// Adds a value. The recursion is bounded by the reader's limit on nesting.
    pub(super) fn take(&mut self, value: Value) -> Id {
        let node = match value {
            Value::Null => Node::Null,
            Value::Array(items) => Node::List(items.into_iter().map(|item| self.take(item)).collect()),
            Value::Object(fields) => {
                Node::Map(fields.into_iter().map(|(name, value)| (name, self.take(value))).collect())
            }
            scalar => Node::Scalar(scalar),
        };
        self.add(node)
    }

    pub(super) fn add(&mut self, node: Node) -> Id {
        self.0.push(node);
        Id(self.0.len() - 1)
    }

    pub(super) fn get(&self, id: Id) -> &Node {
        // Ids are made only by `add`, and nodes are never removed, so this cannot panic.
        &self.0[id.0]
    }

    /// Copies a node. The parts are then shared.
    pub(super) fn copy(&mut self, from: Id, to: Id) {
        if from != to {
            self.0[to.0] = self.0[from.0].clone();
        }
    }

    pub(super) fn field(&self, id: Id, name: &str) -> Option<Id> {
        match self.get(id) {
            Node::Map(fields) => fields.get(name).copied(),
            Node::Null | Node::Scalar(_) | Node::List(_) => None,
        }
    }

    pub(super) fn fields_mut(&mut self, id: Id) -> Option<&mut BTreeMap<String, Id>> {
        match &mut self.0[id.0] {
            Node::Map(fields) => Some(fields),
            Node::Null | Node::Scalar(_) | Node::List(_) => None,
        }
    }

    /// Returns the items of a list; empty for other nodes.
    pub(super) fn items(&self, id: Id) -> &[Id] {
        match self.get(id) {
            Node::List(items) => items,
            Node::Null | Node::Scalar(_) | Node::Map(_) => &[],
        }
    }

    pub(super) fn set(&mut self, id: Id, node: Node) {
        self.0[id.0] = node;
    }

    pub(super) fn is_null(&self, id: Id) -> bool {
        matches!(self.get(id), Node::Null)
    }

    pub(super) fn is_map(&self, id: Id) -> bool {
        matches!(self.get(id), Node::Map(_))
    }

    /// True if a field with this value counts as empty.
    pub(super) fn is_empty(&self, id: Id) -> bool {
        match self.get(id) {
            Node::Null => true,
            Node::Scalar(_) => false,
            Node::Map(fields) => fields.is_empty(),
            Node::List(items) => items.is_empty(),
        }
    }

    pub(super) fn is_empty_map(&self, id: Id) -> bool {
        self.is_map(id) && self.is_empty(id)
    }

    /// Returns the text of a scalar; maps and lists have an empty one. Keys are compared by it, so
    /// `80` and `"80"` are the same key.
    pub(super) fn text(&self, id: Id) -> Cow<'_, str> {
        match self.get(id) {
            Node::Null => "null".into(),
            Node::Scalar(Value::String(text)) => text.as_str().into(),
            Node::Scalar(scalar) => scalar.to_string().into(),
            Node::Map(_) | Node::List(_) => "".into(),
        }
    }

    /// Returns the value of a node; none if it has more than `left` nodes, because a node may be
    /// part of many.
    pub(super) fn value(&self, id: Id, left: &mut usize) -> Option<Value> {
        *left = left.checked_sub(1)?;
        Some(match self.get(id) {
            Node::Null => Value::Null,
            Node::Scalar(scalar) => scalar.clone(),
            Node::List(items) => items.iter().map(|item| self.value(*item, left)).collect::<Option<_>>()?,
            Node::Map(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| Some((name.clone(), self.value(*value, left)?)));
                Value::Object(fields.collect::<Option<_>>()?)
            }
        })
    }
}
