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
pub(super) struct NodeId(usize);

/// A value whose parts are nodes.
#[derive(Debug, Clone)]
pub(super) enum MergeNode {
    Null,
    Scalar(Value),
    Map(BTreeMap<String, NodeId>),
    List(Vec<NodeId>),
}

/// All nodes of a merge.
#[derive(Debug, Default)]
pub(super) struct Nodes(Vec<MergeNode>);

impl Nodes {
    /// Adds a value. The recursion is bounded by the reader's limit on nesting.
    pub(super) fn insert_value(&mut self, value: Value) -> NodeId {
        let node = match value {
            Value::Null => MergeNode::Null,
            Value::Array(items) => {
                MergeNode::List(items.into_iter().map(|item| self.insert_value(item)).collect())
            }
            Value::Object(fields) => MergeNode::Map(
                fields.into_iter().map(|(name, value)| (name, self.insert_value(value))).collect(),
            ),
            scalar => MergeNode::Scalar(scalar),
        };
        self.add(node)
    }

    pub(super) fn add(&mut self, node: MergeNode) -> NodeId {
        self.0.push(node);
        NodeId(self.0.len() - 1)
    }

    pub(super) fn get(&self, id: NodeId) -> &MergeNode {
        // Ids are made only by `add`, and nodes are never removed, so this cannot panic.
        &self.0[id.0]
    }

    /// Copies a node. The parts are then shared.
    pub(super) fn copy(&mut self, from: NodeId, to: NodeId) {
        if from != to {
            self.0[to.0] = self.0[from.0].clone();
        }
    }

    pub(super) fn field(&self, id: NodeId, name: &str) -> Option<NodeId> {
        match self.get(id) {
            MergeNode::Map(fields) => fields.get(name).copied(),
            MergeNode::Null | MergeNode::Scalar(_) | MergeNode::List(_) => None,
        }
    }

    pub(super) fn fields_mut(&mut self, id: NodeId) -> Option<&mut BTreeMap<String, NodeId>> {
        match &mut self.0[id.0] {
            MergeNode::Map(fields) => Some(fields),
            MergeNode::Null | MergeNode::Scalar(_) | MergeNode::List(_) => None,
        }
    }

    /// Returns the items of a list; empty for other nodes.
    pub(super) fn items(&self, id: NodeId) -> &[NodeId] {
        match self.get(id) {
            MergeNode::List(items) => items,
            MergeNode::Null | MergeNode::Scalar(_) | MergeNode::Map(_) => &[],
        }
    }

    pub(super) fn set(&mut self, id: NodeId, node: MergeNode) {
        self.0[id.0] = node;
    }

    pub(super) fn is_null(&self, id: NodeId) -> bool {
        matches!(self.get(id), MergeNode::Null)
    }

    pub(super) fn is_map(&self, id: NodeId) -> bool {
        matches!(self.get(id), MergeNode::Map(_))
    }

    /// True if a field with this value counts as empty.
    pub(super) fn is_empty(&self, id: NodeId) -> bool {
        match self.get(id) {
            MergeNode::Null => true,
            MergeNode::Scalar(_) => false,
            MergeNode::Map(fields) => fields.is_empty(),
            MergeNode::List(items) => items.is_empty(),
        }
    }

    pub(super) fn is_empty_map(&self, id: NodeId) -> bool {
        self.is_map(id) && self.is_empty(id)
    }

    /// Returns the text of a scalar; maps and lists have an empty one. Keys are compared by it, so
    /// `80` and `"80"` are the same key.
    pub(super) fn text(&self, id: NodeId) -> Cow<'_, str> {
        match self.get(id) {
            MergeNode::Null => "null".into(),
            MergeNode::Scalar(Value::String(text)) => text.as_str().into(),
            MergeNode::Scalar(scalar) => scalar.to_string().into(),
            MergeNode::Map(_) | MergeNode::List(_) => "".into(),
        }
    }

    /// Returns the value of a node; none if it has more than `left` nodes, because a node may be
    /// part of many.
    pub(super) fn value(&self, id: NodeId, left: &mut usize) -> Option<Value> {
        *left = left.checked_sub(1)?;
        Some(match self.get(id) {
            MergeNode::Null => Value::Null,
            MergeNode::Scalar(scalar) => scalar.clone(),
            MergeNode::List(items) => {
                items.iter().map(|item| self.value(*item, left)).collect::<Option<_>>()?
            }
            MergeNode::Map(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| Some((name.clone(), self.value(*value, left)?)));
                Value::Object(fields.collect::<Option<_>>()?)
            }
        })
    }
}
