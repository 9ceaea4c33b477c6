//! Compares a field set with the object whose apply should have given it, without a schema.
//!
//! In: the field set of our own entry, and the object as it would be applied.
//! Out: [`Agreement`]. The set itself shows the structure that the server saw: the keys of list
//! items, and which values are atomic. A set only ever loses paths to other managers, so a value
//! of the object that it does not cover is one that somebody changed or removed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Element, FieldSet, Node};

/// Result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The set is exactly that of an apply of the object.
    Exact,
    /// The set lacks a field of the object, or has one that the object does not have.
    Differs,
    /// Without the schema it cannot be decided.
    Unclear,
}

/// Meaning of a map that is owned as a whole, with no owned field below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareMap {
    /// It is atomic. True where every map of maps is declared field by field.
    Atomic,
    /// It is atomic, or others took or removed all of its fields.
    Unknown,
}

/// Fields of an object that no manager ever owns.
const NEVER_OWNED: [&str; 2] = ["apiVersion", "kind"];
/// The same in `metadata`.
const NEVER_OWNED_METADATA: [&str; 2] = ["name", "namespace"];
/// Maximum number of items of a list that is compared.
const MAX_ITEMS: usize = 10_000;
/// Maximum number of combinations of key fields that the items of a list write.
const MAX_KEY_FORMS: usize = 8;

/// Compares a set with the object whose apply should have given it.
pub fn compare_with_applied(set: &FieldSet, applied: &Map<String, Value>, bare: BareMap) -> Agreement {
    let fields = applied.iter().filter(|(name, _)| !NEVER_OWNED.contains(&name.as_str()));
    let metadata = |value: &Value| {
        let mut metadata = value.clone();
        if let Value::Object(fields) = &mut metadata {
            fields.retain(|name, _| !NEVER_OWNED_METADATA.contains(&name.as_str()));
        }
        metadata
    };
    let fields: Vec<(&str, Cow<'_, Value>)> = fields
        .map(|(name, value)| match name.as_str() {
            "metadata" => ("metadata", Cow::Owned(metadata(value))),
            name => (name, Cow::Borrowed(value)),
        })
        // Metadata with only name and namespace leave no path in the set.
        .filter(|(name, value)| *name != "metadata" || *value.as_ref() != Value::Object(Map::new()))
        .collect();
    compare_fields(&set.root, fields.iter().map(|(name, value)| (*name, value.as_ref())), bare)
}

impl Agreement {
    /// Returns the worse of two results: a difference is worse than doubt.
    fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Differs => Self::Differs,
            Self::Exact => other(),
            Self::Unclear => match other() {
                Self::Differs => Self::Differs,
                Self::Exact | Self::Unclear => Self::Unclear,
            },
        }
    }

    fn of(is_exact: bool) -> Self {
        if is_exact { Self::Exact } else { Self::Differs }
    }
}

fn compare_value(node: &Node, value: &Value, bare: BareMap) -> Agreement {
    let is_bare = node.owned && node.children.is_empty();
    match value {
        Value::Object(fields) if !fields.is_empty() => match (node.children.is_empty(), bare) {
            (false, _) => {
                compare_fields(node, fields.iter().map(|(name, value)| (name.as_str(), value)), bare)
            }
            (true, BareMap::Atomic) => Agreement::of(is_bare),
            (true, BareMap::Unknown) => Agreement::Unclear,
        },
        // An apply owns the items of a list or the whole list, never both.
        Value::Array(items) if !items.is_empty() && !node.children.is_empty() => {
            compare_items(node, items, bare)
        }
        _ => Agreement::of(is_bare),
    }
}

fn compare_fields<'a>(
    node: &Node,
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
    bare: BareMap,
) -> Agreement {
    let (mut agreement, mut found) = (Agreement::Exact, 0);
    for (name, value) in fields {
        let Some(inner) = node.children.get(&Element::Field(name.into())) else {
            let missing = if may_be_traceless(value) { Agreement::Unclear } else { Agreement::Differs };
            agreement = agreement.and(|| missing);
            continue;
        };
        found += 1;
        agreement = agreement.and(|| compare_value(inner, value, bare));
    }
    agreement.and(|| Agreement::of(found == node.children.len()))
}

fn compare_items(node: &Node, items: &[Value], bare: BareMap) -> Agreement {
    if items.len().max(node.children.len()) > MAX_ITEMS {
        return Agreement::Unclear;
    }
    let Some(mut owned) = OwnedItems::read(node) else { return Agreement::Unclear };
    let (mut agreement, mut found) = (Agreement::Exact, BTreeSet::new());
    for item in items {
        let (element, inner) = match owned.find(item) {
            Ok(found) => found,
            Err(reason) => return reason,
        };
        if !found.insert(element) {
            return Agreement::Unclear;
        }
        agreement = agreement.and(|| match item.as_object() {
            // Every item of a list is owned itself, also if others took its fields.
            Some(_) if inner.children.is_empty() => Agreement::Unclear,
            _ if !inner.owned => Agreement::Differs,
            Some(_) | None => compare_value(inner, item, bare),
        });
    }
    agreement.and(|| Agreement::of(found.len() == node.children.len()))
}

/// An owned item of a list.
type OwnedItem<'a> = (&'a Element, &'a Node);

/// The owned items of a list, found by the key fields that an item has.
struct OwnedItems<'a> {
    node: &'a Node,
    /// The items with keys, and the values of their keys.
    keyed: Vec<(Map<String, Value>, OwnedItem<'a>)>,
    /// For the key fields that an item writes: the owned item with these values, none for several.
    by_written: BTreeMap<Vec<String>, BTreeMap<String, Option<OwnedItem<'a>>>>,
}

impl<'a> OwnedItems<'a> {
    /// Reads the keys; none if they do not all have the same fields.
    fn read(node: &'a Node) -> Option<Self> {
        let keyed = node.children.iter().filter_map(|(element, inner)| match element {
            Element::Key(json) => Some((serde_json::from_str(json).ok()?, (element, inner))),
            Element::Field(_) | Element::Value(_) | Element::Index(_) | Element::Other(_) => None,
        });
        let keyed: Vec<(Map<String, Value>, OwnedItem<'a>)> = keyed.collect();
        let is_uniform = keyed.windows(2).all(|two| two[0].0.keys().eq(two[1].0.keys()));
        is_uniform.then_some(Self { node, keyed, by_written: BTreeMap::new() })
    }

    /// Finds the owned item that an item of the object names. A key field that it does not write
    /// has its default.
    fn find(&mut self, item: &Value) -> Result<OwnedItem<'a>, Agreement> {
        let (Some(fields), Some((key, _))) = (item.as_object(), self.keyed.first()) else {
            let element = Element::Value(item.to_string().into());
            return self.node.children.get_key_value(&element).ok_or(Agreement::Differs);
        };
        let written: Vec<String> = key.keys().filter(|name| fields.contains_key(*name)).cloned().collect();
        let value = values_of(fields, &written);
        if !self.by_written.contains_key(&written) {
            if self.by_written.len() >= MAX_KEY_FORMS {
                return Err(Agreement::Unclear);
            }
            let mut index = BTreeMap::new();
            for (key, owned) in &self.keyed {
                let several = |known: &mut Option<OwnedItem<'a>>| *known = None;
                index.entry(values_of(key, &written)).and_modify(several).or_insert(Some(*owned));
            }
            self.by_written.insert(written.clone(), index);
        }
        match self.by_written.get(&written).and_then(|index| index.get(&value)) {
            Some(Some(owned)) => Ok(*owned),
            // Several items differ only in keys that have defaults.
            Some(None) => Err(Agreement::Unclear),
            None => Err(Agreement::Differs),
        }
    }
}

/// Writes the values of these fields as one text.
fn values_of(fields: &Map<String, Value>, names: &[String]) -> String {
    names.iter().filter_map(|name| fields.get(name)).map(|value| format!("{value},")).collect()
}

/// True for a value that may leave no owned path: an empty list does, unless it is atomic.
fn may_be_traceless(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => !fields.is_empty() && fields.values().all(may_be_traceless),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{FieldPath, Operation, entries, pointer_of};

    /// Writes that were recorded from Kubernetes.
    const RECORDED: &str = include_str!("../../../tests/sandbox/ownership.jsonl");

    fn agreement(fields: &Value, applied: &Value) -> Agreement {
        compare_with_applied(&FieldSet::parse(fields), applied.as_object().unwrap(), BareMap::Atomic)
    }

    #[test]
    fn a_set_agrees_with_the_object_whose_apply_gave_it() {
        use Agreement::{Differs, Exact, Unclear};
        let applied = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "shop", "labels": {"app": "a"}, "finalizers": ["x"]},
            "spec": {"replicas": 2, "tolerations": [], "paused": null, "selector": {"matchLabels": {"app": "a"}}, "rules": [{"verbs": ["get"]}],
                "containers": [{"name": "app", "image": "a", "ports": [{"containerPort": 80}]}]},
        });
        let written = json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {"f:replicas": {}, "f:tolerations": {}, "f:paused": {}, "f:selector": {}, "f:rules": {}, "f:containers": {"k:{\"name\":\"app\"}": {
                ".": {}, "f:name": {}, "f:image": {}, "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
            }}},
        });
        assert_eq!(agreement(&written, &applied), Exact);
        let custom =
            compare_with_applied(&FieldSet::parse(&written), applied.as_object().unwrap(), BareMap::Unknown);
        assert_eq!(custom, Unclear, "the selector may be atomic, or emptied");
        let check = |pointer: &str, change: fn(&mut Map<String, Value>), expect| {
            let mut fields = written.clone();
            change(fields.pointer_mut(pointer).unwrap().as_object_mut().unwrap());
            assert_eq!(agreement(&fields, &applied), expect, "{pointer}");
        };
        const APP: &str = "/f:spec/f:containers/k:{\"name\":\"app\"}";
        check("/f:spec", |spec| drop(spec.remove("f:replicas")), Differs);
        check("/f:spec", |spec| drop(spec.remove("f:rules")), Differs);
        check("/f:spec", |spec| drop(spec.remove("f:paused")), Differs);
        check("/f:spec", |spec| drop(spec.remove("f:tolerations")), Unclear);
        check("/f:spec", |spec| drop(spec.remove("f:containers")), Differs);
        check("/f:spec", |spec| drop(spec.insert("f:more".into(), json!({}))), Differs);
        check("/f:metadata", |metadata| drop(metadata.remove("f:finalizers")), Differs);
        check("/f:metadata", |metadata| drop(metadata.remove("f:labels")), Differs);
        check("/f:metadata/f:finalizers", |values| drop(values.insert("v:\"y\"".into(), json!({}))), Differs);
        check(APP, |item| drop(item.remove("f:image")), Differs);
        check(APP, |item| drop(item.remove("f:ports")), Differs);
        check(APP, |item| drop(item.remove(".")), Differs);
        check(APP, |item| item.retain(|key, _| key == "."), Unclear);
        let udp = "k:{\"containerPort\":80,\"protocol\":\"UDP\"}";
        const PORTS: &str = "/f:spec/f:containers/k:{\"name\":\"app\"}/f:ports";
        check(
            APP,
            |item| drop(item.insert("f:ports".into(), json!({"k:{\"containerPort\":81}": {".": {}}}))),
            Differs,
        );
        let mut two = written.clone();
        two.pointer_mut(PORTS).unwrap()[udp] = json!({".": {}, "f:containerPort": {}});
        assert_eq!(agreement(&two, &applied), Unclear, "the protocol is not written");
        assert_eq!(agreement(&json!({}), &json!({"kind": "A", "metadata": {"name": "a"}})), Exact);
        assert_eq!(agreement(&json!({}), &applied), Differs);
    }

    /// A long list takes linear time, and a list beyond the bound is not read.
    #[test]
    fn a_long_list_is_compared_item_by_item() {
        let names: Vec<String> = (0..=MAX_ITEMS).map(|at| format!("item-{at}")).collect();
        let agreement_of = |count: usize, keyed: bool| {
            let (mut fields, mut items) = (Map::new(), Vec::new());
            for name in &names[..count] {
                let (key, item) = match keyed {
                    true => (format!("k:{}", json!({"name": name})), json!({"name": name, "value": 1})),
                    false => (format!("v:{}", json!(name)), json!(name)),
                };
                let below = if keyed { json!({".": {}, "f:name": {}, "f:value": {}}) } else { json!({}) };
                fields.insert(key, below);
                items.push(item);
            }
            agreement(&json!({"f:list": fields}), &json!({"list": items}))
        };
        let begun = std::time::Instant::now();
        for keyed in [true, false] {
            assert_eq!(agreement_of(MAX_ITEMS, keyed), Agreement::Exact);
            assert_eq!(agreement_of(MAX_ITEMS + 1, keyed), Agreement::Unclear);
        }
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    /// The fields of manager `one`, which only applies, in a recorded object.
    fn own(object: &Value) -> Option<FieldSet> {
        let all = entries(object["metadata"].as_object()?);
        let own = all.into_iter().find(|it| &*it.manager == "one" && it.operation == Operation::Apply);
        own.filter(|own| own.subresource.is_empty()).map(|own| own.fields)
    }

    /// The live values that an apply has set. Fields that others add to an empty map are no change.
    fn values(applied: &FieldSet, body: &Value, live: &Value) -> BTreeMap<String, Option<Value>> {
        let value =
            |path: &FieldPath, of: &Value| pointer_of(path, of).and_then(|at| of.pointer(&at).cloned());
        let is_set = |path: &&FieldPath| {
            value(path, body)
                .is_some_and(|it| !it.is_null() && it.as_object().is_none_or(|it| !it.is_empty()))
        };
        applied.leaf_paths().iter().filter(is_set).map(|path| (path.to_string(), value(path, live))).collect()
    }

    /// A real server and random writes: an apply is recognized, and after a change nothing is.
    #[test]
    fn recorded_applies_agree_and_recorded_changes_do_not() {
        let (mut exact, mut applies, mut changes) = (0, 0, 0);
        for line in RECORDED.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let bare = if case["kind"] == "Widget" { BareMap::Unknown } else { BareMap::Atomic };
            // The object that `one` applied last, and its values then.
            let mut last = None;
            for write in case["writes"].as_array().unwrap() {
                let Some(result) = write.get("result").filter(|result| result.is_object()) else { continue };
                let set = own(result).unwrap_or_default();
                let is_apply = write["operation"] == "apply" && write.get("subresource").is_none();
                if write["manager"] == "one" && is_apply {
                    let mut applied = write["object"].as_object().unwrap().clone();
                    applied.remove("status");
                    let found = compare_with_applied(&set, &applied, bare);
                    assert_ne!(found, Agreement::Differs, "{write}");
                    applies += 1;
                    exact += usize::from(found == Agreement::Exact);
                    let before = values(&set, &write["object"], result);
                    last = Some((applied, &write["object"], set, before));
                } else if let Some((applied, body, fields, before)) = &mut last {
                    let after = values(fields, body, result);
                    // The recorder let writes of the status change the spec, as no server does.
                    if write.get("subresource").is_some() {
                        *before = after;
                    } else if after != *before {
                        changes += 1;
                        assert_ne!(compare_with_applied(&set, applied, bare), Agreement::Exact, "{write}");
                    }
                }
            }
        }
        assert!(applies > 40 && changes > 20 && exact * 10 > applies * 7, "{exact} of {applies}, {changes}");
    }
}
