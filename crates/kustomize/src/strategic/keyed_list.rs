//! Merges keyed lists: items with the same values of the keys are one item.
//!
//! In: the list of the object, that of the patch, and the keys. Out: one list, the patch's items
//! first. A list without keys holds scalars, each once.
//!
//! In a list with several keys (a port's number and protocol), an item may lack some of them.
//! Matching then takes three steps over the whole list: keys that no item has are left out; values
//! that agree in one key and differ only where one is missing are made equal; and an item is looked
//! up by the remaining values.

use std::collections::HashSet;

use super::super::schema::MergeSchema;
use super::directive::{Directive, take_list_directive};
use super::nodes::{MergeNode, NodeId};
use super::{MergeState, Outcome, StrategicMergeError};

/// Values of an item's keys; empty for a missing key.
type Values = Vec<String>;

impl<'a> MergeState<'a> {
    /// Merges a list; none if it is removed.
    pub(super) fn keyed_list(
        &mut self,
        target: Option<NodeId>,
        patch: Option<NodeId>,
        schema: MergeSchema<'a>,
    ) -> Result<Option<NodeId>, StrategicMergeError> {
        let target = match target.filter(|target| !self.nodes.is_null(*target)) {
            // Without an existing list, the directive has no meaning and its marker stays an item.
            None => patch,
            Some(_) if patch.is_some_and(|patch| self.nodes.is_null(patch)) => None,
            Some(target) => match take_list_directive(self, patch)? {
                Directive::Delete => None,
                Directive::Replace => patch,
                Directive::Merge => Some(target),
            },
        };
        let Some(target) = target else { return Ok(None) };
        let keys: Vec<&str> = schema.merge_keys().iter().map(String::as_str).collect();
        let values = self.all_values(patch, target, &keys)?;
        match keys.is_empty() {
            true => self.items(target, patch, schema, &[""], values).map(Some),
            false => self.items(target, patch, schema, &keys, values).map(Some),
        }
    }

    /// Returns the key values of all items, each once, the patch's first.
    fn all_values(
        &mut self,
        patch: Option<NodeId>,
        target: NodeId,
        keys: &[&str],
    ) -> Result<Vec<Values>, StrategicMergeError> {
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        for list in patch.into_iter().chain([target]) {
            for item in self.nodes.items(list) {
                let value = |key: &&str| match self.nodes.field(*item, key) {
                    Some(field) if !self.nodes.is_empty(field) => self.nodes.text(field).into_owned(),
                    _ => String::new(),
                };
                let values = match keys {
                    [] => vec![self.nodes.text(*item).into_owned()],
                    keys => keys.iter().map(value).collect(),
                };
                if seen.insert(values.clone()) {
                    all.push(values);
                }
            }
        }
        self.step(all.len())?;
        Ok(all)
    }

    fn items(
        &mut self,
        target: NodeId,
        patch: Option<NodeId>,
        schema: MergeSchema<'a>,
        keys: &[&str],
        mut all: Vec<Values>,
    ) -> Result<NodeId, StrategicMergeError> {
        if keys.len() > 1 {
            self.step(all.len().saturating_mul(all.len()))?;
            complete(&mut all);
        }
        if all.is_empty() {
            return Ok(target);
        }
        let used = used(&all, keys.len());
        let keys = chosen(keys, &used);
        let merged = self.nodes.add(MergeNode::List(Vec::new()));
        for values in all {
            let values = chosen(&values, &used);
            let old = self.item(Some(target), &keys, &values)?;
            let new = self.item(patch, &keys, &values)?;
            self.path.push(format!("[{}]", values.join(",")));
            let outcome = self.walk(old, new, schema.items())?;
            match outcome {
                Some(Outcome::Is(item)) if !self.nodes.is_null(item) && !self.nodes.is_empty_map(item) => {
                    self.give_keys(item, &keys, &values);
                    self.set_item(merged, Some(item), &keys, &values)?;
                }
                _ => self.set_item(target, None, &keys, &values)?,
            }
            self.path.pop();
        }
        self.append(merged, target, &keys)?;
        Ok(merged)
    }

    /// Returns the first item with these values. Keys without a value are ignored, unless all are.
    fn item(
        &mut self,
        list: Option<NodeId>,
        keys: &[&str],
        values: &[String],
    ) -> Result<Option<NodeId>, StrategicMergeError> {
        let Some(list) = list else { return Ok(None) };
        self.step(self.nodes.items(list).len())?;
        let lacking = values.iter().all(String::is_empty);
        let wanted: Vec<_> =
            keys.iter().zip(values).filter(|(_, value)| lacking || !value.is_empty()).collect();
        let fits = |item: &&NodeId| {
            wanted.iter().all(|(key, value)| match **key {
                "" => self.nodes.text(**item) == value.as_str(),
                key => self.nodes.field(**item, key).is_some_and(|f| self.nodes.text(f) == value.as_str()),
            })
        };
        Ok(self.nodes.items(list).iter().find(fits).copied())
    }

    /// Adds the keys by which an item was found, if they are missing.
    fn give_keys(&mut self, item: NodeId, keys: &[&str], values: &[String]) {
        for (key, value) in keys.iter().zip(values) {
            if !key.is_empty() && !value.is_empty() && self.nodes.field(item, key).is_none() {
                let value = self.nodes.add(MergeNode::Scalar(value.clone().into()));
                self.set(item, (*key).to_owned(), Some(Outcome::Is(value)));
            }
        }
    }

    /// Appends the items of another list; an item with the same keys is replaced.
    fn append(&mut self, merged: NodeId, rest: NodeId, keys: &[&str]) -> Result<(), StrategicMergeError> {
        for item in self.nodes.items(rest).to_vec() {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                if key.is_empty() {
                    values.push(self.nodes.text(item).into_owned());
                    continue;
                }
                if !self.nodes.is_map(item) && !self.nodes.is_null(item) {
                    return Err(self.misfit(item, keys));
                }
                match self.nodes.field(item, key) {
                    Some(field) => values.push(self.nodes.text(field).into_owned()),
                    // As in kustomize, once for each missing key, and once more below.
                    None => {
                        let mut items = self.nodes.items(merged).to_vec();
                        items.push(item);
                        self.step(items.len())?;
                        self.nodes.set(merged, MergeNode::List(items));
                    }
                }
            }
            if keys.len() > 1 {
                self.set_item(merged, None, keys, &values)?;
            }
            self.set_item(merged, Some(item), keys, &values)?;
        }
        Ok(())
    }

    /// Replaces the items with the same values, or appends if there are none; without an item, they
    /// are removed. Empty items are removed as well.
    pub(super) fn set_item(
        &mut self,
        list: NodeId,
        item: Option<NodeId>,
        keys: &[&str],
        values: &[String],
    ) -> Result<(), StrategicMergeError> {
        let items = self.nodes.items(list).to_vec();
        self.step(items.len())?;
        let by_fields = keys.first().is_some_and(|key| !key.is_empty())
            && values.first().is_some_and(|value| !value.is_empty());
        let mut kept = Vec::with_capacity(items.len() + 1);
        let mut found = false;
        for old in items {
            if self.nodes.is_null(old) || self.nodes.is_empty_map(old) {
                continue;
            }
            if by_fields && !self.nodes.is_map(old) {
                kept.push(old);
            } else if self.has(old, keys, values)? {
                found = true;
                kept.extend(item);
            } else if !values.is_empty() {
                kept.push(old);
            }
        }
        if let Some(item) = item
            && !found
            && !self.nodes.is_null(item)
        {
            kept.push(item);
        }
        self.nodes.set(list, MergeNode::List(kept));
        Ok(())
    }

    /// True if an item has these values. An empty value matches any; a key beyond the values
    /// matches if the key before it does.
    fn has(&self, item: NodeId, keys: &[&str], values: &[String]) -> Result<bool, StrategicMergeError> {
        let mut fits = false;
        for (at, key) in keys.iter().enumerate() {
            if let Some(value) = values.get(at) {
                fits = match (*key, self.nodes.get(item)) {
                    ("", MergeNode::Scalar(_) | MergeNode::Null) => self.nodes.text(item) == value.as_str(),
                    ("", MergeNode::Map(_) | MergeNode::List(_)) => return Err(self.misfit(item, keys)),
                    (key, MergeNode::Map(fields)) => fields
                        .get(key)
                        .is_some_and(|field| value.is_empty() || self.nodes.text(*field) == value.as_str()),
                    (_, MergeNode::Null | MergeNode::Scalar(_) | MergeNode::List(_)) => {
                        return Err(self.misfit(item, keys));
                    }
                };
            }
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn misfit(&self, item: NodeId, keys: &[&str]) -> StrategicMergeError {
        let by = match keys {
            [""] => "its values".to_owned(),
            keys => keys.join(" and "),
        };
        StrategicMergeError::Item { path: self.list_place(), by, item: self.type_name(item) }
    }
}

/// Makes values equal that agree in one key and differ only where one is missing. The order affects
/// the result, so it is that of kustomize.
fn complete(all: &mut [Values]) {
    for one in 0..all.len() {
        let first = all[one].clone();
        for other in 0..all.len() {
            if let Some(both) = joined(&first, &all[other]) {
                all[one].clone_from(&both);
                all[other] = both;
            }
        }
    }
}

fn joined(one: &[String], other: &[String]) -> Option<Values> {
    let pairs = || one.iter().zip(other);
    let agree = pairs().any(|(one, other)| one == other);
    let differ = pairs().any(|(one, other)| one != other && !one.is_empty() && !other.is_empty());
    let join = |(one, other): (&String, &String)| if one.is_empty() { other.clone() } else { one.clone() };
    (agree && !differ).then(|| pairs().map(join).collect())
}

/// Returns the keys that some item has; all of them if no item has any.
fn used(all: &[Values], keys: usize) -> Vec<bool> {
    let used: Vec<bool> = (0..keys)
        .map(|at| all.iter().any(|values| values.get(at).is_some_and(|it| !it.is_empty())))
        .collect();
    match used.contains(&true) {
        true => used,
        false => vec![true; keys],
    }
}

fn chosen<T: Clone>(all: &[T], used: &[bool]) -> Vec<T> {
    all.iter().zip(used).filter(|(_, used)| **used).map(|(one, _)| one.clone()).collect()
}
