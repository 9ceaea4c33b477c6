//! Merges an applied configuration into the live object.
//!
//! In: the live object and the applied configuration.
//! Out: the live object with every applied value. Nothing is removed here. The items of a list with
//! keys are in the order of the configuration; items of other managers stay next to their
//! neighbors.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::super::schema::{List, Schema};
use super::schema_walk::{ValueShape, list_of, step, value_shape};
use moorline_managed_fields::Element;

/// Merges a configuration into the live object.
pub(super) fn merge(schema: &Schema, live: &mut Value, config: &Value) {
    match value_shape(schema, config) {
        ValueShape::Leaf => live.clone_from(config),
        ValueShape::Map => match (live.as_object_mut(), config.as_object()) {
            (Some(into), Some(fields)) if !into.is_empty() => {
                for (name, value) in fields {
                    match (into.get_mut(name), schema.field(name)) {
                        (Some(inner), Some(schema)) => merge(schema, inner, value),
                        _ => drop(into.insert(name.clone(), value.clone())),
                    }
                }
            }
            // Applying null leaves the existing value.
            (Some(into), None) if !into.is_empty() => {}
            _ => live.clone_from(config),
        },
        ValueShape::List => match (list_of(schema), live.as_array_mut(), config.as_array()) {
            (Some(list), Some(into), Some(items)) if !into.is_empty() => {
                let old = std::mem::take(into);
                *into = merge_items(list, old, items);
            }
            (_, Some(into), None) if !into.is_empty() => {}
            _ => live.clone_from(config),
        },
    }
}

/// Merges the items of both lists. Both are walked at once: an item that only the live list has
/// keeps its place; an item of both lists is where the configuration has it.
fn merge_items(list: &List, live: Vec<Value>, config: &[Value]) -> Vec<Value> {
    let mut items = Items::of(list, live, config);
    let mut out = Vec::with_capacity(items.old.len().max(items.new.len()));
    let mut next = items.shared.pop_front();
    let (mut left, mut right) = (0, 0);
    while left < items.old.len() || right < items.new.len() {
        if left < items.old.len() && right < items.new.len() {
            let element = &items.old[left];
            if *element == items.new[right] {
                out.push(items.merged(list, right));
                items.done.insert(items.new[right].clone());
                (left, right) = (left + 1, right + 1);
                next = items.shared.pop_front();
                continue;
            }
            if items.is_new(element) && next.as_ref().is_some_and(|next| next != element) {
                // The item follows later, where the configuration has it.
                left += 1;
                continue;
            }
        }
        if left < items.old.len() {
            let element = &items.old[left];
            if !items.is_new(element) {
                out.extend(items.values[left].take());
                left += 1;
                continue;
            }
            if items.done.contains(element) {
                left += 1;
            }
        }
        if right < items.new.len() {
            out.push(items.merged(list, right));
            let element = items.new[right].clone();
            if next.as_ref() == Some(&element) {
                next = items.shared.pop_front();
            }
            items.done.insert(element);
            right += 1;
        }
    }
    out
}

/// Items of both lists with their keys.
struct Items<'a> {
    old: Vec<Element>,
    new: Vec<Element>,
    values: Vec<Option<Value>>,
    config: Vec<&'a Value>,
    /// Position of an item in the live list; `None` if it occurs twice.
    places: BTreeMap<Element, Option<usize>>,
    is_new: BTreeSet<Element>,
    /// Items of both lists, in the order of the configuration.
    shared: VecDeque<Element>,
    done: BTreeSet<Element>,
}

impl<'a> Items<'a> {
    fn of(list: &List, live: Vec<Value>, config: &'a [Value]) -> Self {
        let mut items = Self {
            old: Vec::with_capacity(live.len()),
            new: Vec::with_capacity(config.len()),
            values: Vec::with_capacity(live.len()),
            config: Vec::with_capacity(config.len()),
            places: BTreeMap::new(),
            is_new: BTreeSet::new(),
            shared: VecDeque::new(),
            done: BTreeSet::new(),
        };
        for value in live {
            let Ok(element) = step(list, &value) else { continue };
            let place = items.old.len();
            items.places.entry(element.clone()).and_modify(|place| *place = None).or_insert(Some(place));
            items.old.push(element);
            items.values.push(Some(value));
        }
        for value in config {
            let Ok(element) = step(list, value) else { continue };
            if items.places.contains_key(&element) {
                items.shared.push_back(element.clone());
            }
            items.is_new.insert(element.clone());
            items.new.push(element);
            items.config.push(value);
        }
        items
    }

    fn is_new(&self, element: &Element) -> bool {
        self.is_new.contains(element)
    }

    /// Returns an applied item, merged into the live one if that exists.
    fn merged(&mut self, list: &List, at: usize) -> Value {
        let place = self.places.get(&self.new[at]).copied().flatten();
        match place.and_then(|place| self.values[place].take()) {
            Some(mut value) => {
                merge(list.items(), &mut value, self.config[at]);
                value
            }
            None => self.config[at].clone(),
        }
    }
}
