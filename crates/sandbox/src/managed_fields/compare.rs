//! Comparison of two objects: added, modified and removed fields.
//!
//! In: two values of one type.
//! Out: [`FieldChange`], as sets of fields. Lists with keys are compared item by item, in any
//! order.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::schema::{List, Schema};
use super::schema_walk::{ValueShape, items, list_of, same, value_shape};
use moorline_managed_fields::{Element, FieldSet, Node};

/// Difference between two values. No field is in two of the sets.
#[derive(Debug, Default)]
pub(super) struct FieldChange {
    /// Fields only in the new value.
    pub(super) added: FieldSet,
    /// Fields with another value.
    pub(super) modified: FieldSet,
    /// Fields only in the old value.
    pub(super) removed: FieldSet,
}

/// Compares two objects.
pub(super) fn compare(schema: &Schema, old: &Value, new: &Value) -> FieldChange {
    let found = walk(schema, Some(old), Some(new));
    // No manager owns an object as a whole.
    let set = |root: Node| FieldSet { root: Node { owned: false, ..root } };
    FieldChange { added: set(found.added), modified: set(found.modified), removed: set(found.removed) }
}

impl FieldChange {
    /// Removes the fields that the writer cannot set.
    pub(super) fn without(mut self, fields: &FieldSet) -> Self {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.subtract_with_children(fields);
        }
        self
    }

    /// Returns the fields that the new value sets: added or modified.
    pub(super) fn set(self) -> FieldSet {
        let mut set = self.modified;
        set.add(self.added);
        set
    }
}

/// Difference at one place, including the place itself.
#[derive(Debug, Default)]
struct Found {
    added: Node,
    modified: Node,
    removed: Node,
}

impl Found {
    fn put(&mut self, element: &Element, inner: Self) {
        self.added.insert_child(element, inner.added);
        self.modified.insert_child(element, inner.modified);
        self.removed.insert_child(element, inner.removed);
    }

    /// Compares two leaf values; one that exists on one side only is added or removed.
    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.added.owned = true,
            (_, None) => self.removed.owned = true,
            (Some(old), Some(new)) => self.modified.owned |= !same(old, new),
        }
    }
}

fn walk(schema: &Schema, old: Option<&Value>, new: Option<&Value>) -> Found {
    let mut found = Found::default();
    let ways = (old.map(|old| value_shape(schema, old)), new.map(|new| value_shape(schema, new)));
    // A value that changes its shape is compared in both shapes.
    if let (Some(before), Some(after)) = ways
        && before != after
    {
        go(before, schema, old, new, &mut found);
    }
    let Some(last) = ways.1.or(ways.0) else { return found };
    let is_leaf = go(last, schema, old, new, &mut found);
    if !is_leaf {
        found.added.owned |= old.is_none();
        found.removed.owned |= new.is_none();
    }
    found
}

/// Compares in one shape; true if the value is a leaf.
fn go(way: ValueShape, schema: &Schema, old: Option<&Value>, new: Option<&Value>, found: &mut Found) -> bool {
    match way {
        ValueShape::Leaf => found.leaf(old, new),
        ValueShape::Map => {
            let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            if [before, after].iter().flatten().any(|fields| !fields.is_empty()) {
                by_name(schema, before, after, found);
                return false;
            }
            // Two empty maps are compared as leaves, so that null and an empty map differ.
            found.leaf(old, new);
        }
        ValueShape::List => {
            let (before, after) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
            if [before, after].iter().flatten().any(|items| !items.is_empty())
                && let Some(list) = list_of(schema)
            {
                by_item(list, before.map_or(&[], Vec::as_slice), after.map_or(&[], Vec::as_slice), found);
                return false;
            }
            found.leaf(old, new);
        }
    }
    true
}

fn by_name(
    schema: &Schema,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    found: &mut Found,
) {
    let empty = Map::new();
    let (old, new) = (old.unwrap_or(&empty), new.unwrap_or(&empty));
    let mut visit = |name: &str, before: Option<&Value>, after: Option<&Value>| {
        let Some(schema) = schema.field(name) else { return };
        let inner = walk(schema, before, after);
        if !(inner.added.is_empty() && inner.modified.is_empty() && inner.removed.is_empty()) {
            found.put(&Element::Field(name.into()), inner);
        }
    };
    for (name, before) in old {
        visit(name, Some(before), new.get(name));
    }
    for (name, after) in new {
        if !old.contains_key(name) {
            visit(name, None, Some(after));
        }
    }
}

/// Both sides of one item; several on a side where its key occurs more than once.
type Sides<'a> = (Vec<&'a Value>, Vec<&'a Value>);

fn by_item(list: &List, old: &[Value], new: &[Value], found: &mut Found) {
    if old == new {
        return;
    }
    let mut both: BTreeMap<Element, Sides<'_>> = BTreeMap::new();
    for (element, item) in items(list, old) {
        both.entry(element).or_default().0.push(item);
    }
    for (element, item) in items(list, new) {
        both.entry(element).or_default().1.push(item);
    }
    for (element, (before, after)) in both {
        let inner = match (&*before, &*after) {
            (_, []) | ([], _) | ([_], [_]) if before.len() < 2 && after.len() < 2 => {
                walk(list.items(), before.first().copied(), after.first().copied())
            }
            // An item that occurs twice is compared and owned as a whole.
            ([_, _, ..], [_, _, ..]) => {
                let equal = before.len() == after.len()
                    && before.iter().zip(&after).all(|(one, other)| same(one, other));
                let mut inner = Found::default();
                inner.modified.owned = !equal;
                inner
            }
            ([_, _, ..], rest) => {
                let first = rest.first().copied();
                let mut inner =
                    first.map_or_else(Found::default, |item| walk(list.items(), None, Some(item)));
                inner.removed.owned = true;
                inner
            }
            (rest, _) => {
                let first = rest.first().copied();
                let mut inner =
                    first.map_or_else(Found::default, |item| walk(list.items(), Some(item), None));
                inner.added.owned = true;
                inner
            }
        };
        // An item that is removed and added at once is reported as both.
        found.put(&element, inner);
    }
}
