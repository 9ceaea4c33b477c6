//! Field ownership of Kubernetes objects: `managedFields` as sets of paths.
//!
//! In: the `fieldsV1` of an entry, or the compressed bytes of a set.
//! Out: [`FieldSet`], with digests and set operations. The API server decides ownership; this crate
//! only reads its records; the order of their keys does not matter.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod applied_body;
mod bytes;
mod entry;
mod fields_v1;
mod order;
mod path;
mod pointer;
mod retained_field;

use std::collections::BTreeMap;

use serde_json::Value;

pub use crate::retained_field::{RetainedField, retained_fields};
pub use applied_body::{Agreement, BareMap, compare_with_applied};
pub use bytes::Digest;
pub use entry::{ManagedFieldsEntry, Operation, entries};
pub use path::safe_for_html;
pub use path::{Element, FieldPath};
pub use pointer::{
    excerpt, find_by_display_form, find_by_server_form, is_inside, overlaps, pointer_of, pointer_of_fields,
    removal_order, remove_value, remove_values,
};

/// Maximum depth of a path; deeper paths are cut. JSON from the API server is never deeper.
const MAX_DEPTH: usize = 128;

/// The paths that a manager owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSet {
    /// The root of the object, which is never owned itself.
    pub root: Node,
}

/// A position in an object: its own ownership and the owned fields below it. Except for the root, a
/// node without either is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// True if the position itself is owned.
    pub owned: bool,
    /// Positions below it with owned fields.
    pub children: BTreeMap<Element, Node>,
}

impl FieldSet {
    /// Reads `fieldsV1`. Keys that cannot be understood are kept verbatim, so that a change of them
    /// is detected.
    pub fn parse(fields: &Value) -> Self {
        let root = Node::read(fields, MAX_DEPTH);
        Self { root: Node { owned: false, ..root } }
    }

    /// Returns the fields that only this set owns.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self { root: self.root.minus(Some(&other.root)).unwrap_or_default() }
    }

    /// Returns the fields that both sets own.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self { root: self.root.intersect(&other.root).unwrap_or_default() }
    }

    /// Returns the fields that either set owns.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.root.merge(other.root.clone());
        both
    }

    /// Removes the fields that the other set owns.
    pub fn subtract(&mut self, other: &Self) {
        self.root.take_off(&other.root);
    }

    /// Removes the fields that the other set owns, and everything below them.
    pub fn subtract_with_children(&mut self, other: &Self) {
        self.root.take_off_whole(&other.root);
    }

    /// Adds the fields of the other set.
    pub fn add(&mut self, other: Self) {
        self.root.merge(other.root);
    }

    /// True if no field is owned.
    pub fn is_empty(&self) -> bool {
        self.root.children.is_empty()
    }

    /// True if the path itself is owned.
    pub fn contains(&self, path: &FieldPath) -> bool {
        self.node(path).is_some_and(|node| node.owned)
    }

    /// True if the path or anything below it is owned.
    pub fn contains_or_below(&self, path: &FieldPath) -> bool {
        self.node(path).is_some()
    }

    /// Returns the owned paths without owned fields below them, in order.
    pub fn leaf_paths(&self) -> Vec<FieldPath> {
        self.walk(|node| node.children.is_empty())
    }

    /// Returns the owned paths that are below no other owned path, in order.
    pub fn outermost(&self) -> Vec<FieldPath> {
        let mut found = Vec::new();
        self.root.walk(&mut Vec::new(), &mut |node, path| {
            if node.owned {
                found.push(FieldPath::new(path));
            }
            !node.owned
        });
        found
    }

    /// Returns every owned path, in order: parents before their children.
    pub fn owned_paths(&self) -> Vec<FieldPath> {
        self.walk(|node| node.owned)
    }

    /// Creates a set of these paths.
    pub fn from_paths<'a>(paths: impl IntoIterator<Item = &'a FieldPath>) -> Self {
        let mut set = Self::default();
        for path in paths.into_iter().filter(|path| !path.elements().is_empty()) {
            let place = path
                .elements()
                .iter()
                .take(MAX_DEPTH)
                .fold(&mut set.root, |node, element| node.children.entry(element.clone()).or_default());
            place.owned = true;
        }
        set
    }

    fn node(&self, path: &FieldPath) -> Option<&Node> {
        path.elements().iter().try_fold(&self.root, |node, element| node.children.get(element))
    }

    fn walk(&self, wanted: impl Fn(&Node) -> bool) -> Vec<FieldPath> {
        let mut found = Vec::new();
        self.root.walk(&mut Vec::new(), &mut |node, path| {
            if !path.is_empty() && wanted(node) {
                found.push(FieldPath::new(path));
            }
            true
        });
        found
    }

    /// Returns the set as `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(fields_v1::fields_of(&self.root))
    }

    /// True if `fields` is `fieldsV1` of exactly this set. Does not allocate.
    pub fn equals_fields_v1(&self, fields: &Value) -> bool {
        fields_v1::is_written(&self.root, fields, true, &mut String::new())
    }

    /// True if this set and a `fieldsV1` share an owned field.
    pub fn shares_fields_with(&self, fields: &Value) -> bool {
        fields_v1::meets(&self.root, fields, &mut String::new())
    }

    /// Returns every owned path, in the server's order.
    pub fn in_server_order(&self) -> Vec<FieldPath> {
        let mut found = Vec::new();
        order::collect_in_order(&self.root, &mut Vec::new(), &mut found);
        found
    }
}

impl Node {
    /// A node that is owned and has no children.
    pub const LEAF: Self = Self { owned: true, children: BTreeMap::new() };

    /// True if neither the node nor anything below it is owned.
    pub fn is_empty(&self) -> bool {
        !self.owned && self.children.is_empty()
    }

    /// Inserts a child, unless it is empty.
    pub fn insert_child(&mut self, element: &Element, inner: Self) {
        if !inner.is_empty() {
            self.children.insert(element.clone(), inner);
        }
    }

    fn read(fields: &Value, depth: usize) -> Self {
        let Some(fields) = fields.as_object().filter(|_| depth > 0) else { return Self::LEAF };
        let mut node = Self { owned: fields.is_empty(), children: BTreeMap::new() };
        for (key, inner) in fields {
            match key.as_str() {
                "." => node.owned = true,
                key => {
                    // Two spellings of one key are one element.
                    node.children.entry(Element::read(key)).or_default().merge(Self::read(inner, depth - 1));
                }
            }
        }
        node
    }

    /// Adds the fields of the other node.
    pub fn merge(&mut self, other: Self) {
        self.owned |= other.owned;
        for (element, node) in other.children {
            self.children.entry(element).or_default().merge(node);
        }
    }

    /// Returns a node, unless it would be empty.
    fn kept(owned: bool, children: BTreeMap<Element, Self>) -> Option<Self> {
        (owned || !children.is_empty()).then_some(Self { owned, children })
    }

    fn minus(&self, other: Option<&Self>) -> Option<Self> {
        let inner = |(element, node): (&Element, &Self)| {
            let other = other.and_then(|other| other.children.get(element));
            Some((element.clone(), node.minus(other)?))
        };
        let owned = self.owned && !other.is_some_and(|other| other.owned);
        Self::kept(owned, self.children.iter().filter_map(inner).collect())
    }

    fn take_off(&mut self, other: &Self) {
        self.owned &= !other.owned;
        for (element, other) in &other.children {
            if let Some(inner) = self.children.get_mut(element) {
                inner.take_off(other);
                if inner.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    fn take_off_whole(&mut self, other: &Self) {
        for (element, other) in &other.children {
            let Some(inner) = self.children.get_mut(element) else { continue };
            if !other.owned {
                inner.take_off_whole(other);
            }
            if other.owned || inner.is_empty() {
                self.children.remove(element);
            }
        }
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        let inner = |(element, node): (&Element, &Self)| {
            Some((element.clone(), node.intersect(other.children.get(element)?)?))
        };
        Self::kept(self.owned && other.owned, self.children.iter().filter_map(inner).collect())
    }

    /// Calls `show` for every node with its path, and descends where it returns true.
    fn walk<'a>(&'a self, path: &mut Vec<&'a Element>, show: &mut impl FnMut(&Self, &[&Element]) -> bool) {
        if !show(self, path) {
            return;
        }
        for (element, node) in &self.children {
            path.push(element);
            node.walk(path, show);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(paths: &[FieldPath]) -> Vec<String> {
        paths.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_are_read_from_an_entry() {
        let set = FieldSet::parse(&json!({
            "f:metadata": {"f:annotations": {".": {}, "f:moorline.dev/id": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:image": {}, "f:name": {}}}, "f:args": {"i:0": {}}},
        }));
        assert_eq!(
            shown(&set.leaf_paths()),
            [
                "metadata.annotations[\"moorline.dev/id\"]",
                "metadata.finalizers[\"x\"]",
                "spec.args[0]",
                "spec.containers[name=app].image",
                "spec.containers[name=app].name",
            ]
        );
        assert_eq!(set.owned_paths().len(), 7);
        assert_eq!(
            shown(&set.outermost()),
            [
                "metadata.annotations",
                "metadata.finalizers[\"x\"]",
                "spec.args[0]",
                "spec.containers[name=app]"
            ]
        );
        assert!(set.owned_paths().iter().all(|path| set.contains(path) && set.contains_or_below(path)));
        assert_eq!(FieldSet::from_paths(&set.owned_paths()), set);
    }

    #[test]
    fn an_item_is_one_however_its_key_is_written() {
        let item = |key: &str| FieldSet::parse(&json!({"f:ports": {key: {".": {}}}}));
        let (one, two) = (r#"k:{"port":80,"protocol":"TCP"}"#, r#"k:{ "protocol":"TCP", "port": 80 }"#);
        assert_eq!(item(one), item(two));
        let both = FieldSet::parse(&json!({"f:ports": {one: {"f:port": {}}, two: {"f:protocol": {}}}}));
        assert_eq!(both.leaf_paths().len(), 2);
    }

    #[test]
    fn what_is_malformed_is_kept_and_compared() {
        let sets: Vec<FieldSet> = [
            json!({"f:a": 1}),
            json!({"f:a": {}, "x:new": {}}),
            json!({"f:a": {}, "k:{nonsense": {}}),
            json!({"f:a": {}, "v:": {}, "i:x": {}}),
            json!({"f:a": {}, "": {}}),
        ]
        .iter()
        .map(FieldSet::parse)
        .collect();
        for (at, set) in sets.iter().enumerate() {
            assert!(sets[..at].iter().all(|other| other != set), "{set:?}");
            assert!(shown(&set.leaf_paths()).contains(&"a".to_owned()));
        }
        for nothing in [json!({}), json!(null), json!([1]), json!("f:a"), json!({".": {}})] {
            assert!(FieldSet::parse(&nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = (0..10 * MAX_DEPTH).fold(json!({}), |inner, _| json!({"f:a": inner}));
        let set = FieldSet::parse(&deep);
        assert_eq!(set.leaf_paths()[0].elements().len(), MAX_DEPTH);
        assert_eq!(FieldSet::from_bytes(&set.to_bytes()), Some(set));
    }

    #[test]
    fn what_is_lost_is_one_set_minus_the_other() {
        let old = FieldSet::parse(
            &json!({"f:a": {}, "f:e": {".": {}, "f:m": {}}, "f:c": {"k:{\"name\":\"x\"}": {".": {}, "f:i": {}}}}),
        );
        let new = FieldSet::parse(&json!({"f:e": {"f:m": {}}, "f:n": {}}));
        let lost = old.minus(&new);
        assert_eq!(shown(&lost.leaf_paths()), ["a", "c[name=x].i", "e"]);
        assert_eq!(shown(&lost.outermost()), ["a", "c[name=x]", "e"]);
        assert_eq!(shown(&old.intersect(&new).leaf_paths()), ["e.m"]);
        assert_eq!(shown(&new.minus(&old).leaf_paths()), ["n"]);
        let wholes = FieldSet::parse(&json!({"f:c": {}, "f:e": {"f:m": {}}}));
        let mut left = old.clone();
        left.subtract_with_children(&wholes);
        assert_eq!(shown(&left.owned_paths()), ["a", "e"]);
        left.subtract(&FieldSet::parse(&json!({"f:e": {}, "f:m": {}})));
        assert_eq!(shown(&left.owned_paths()), ["a"]);
        let mut same = old;
        same.subtract(&new);
        assert_eq!(same, lost);
    }
}
