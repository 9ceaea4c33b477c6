//! Combinations of sets of parameters: all pairs, and changes by keys.
//!
//! In: the answers of generators. Out: sets in which no parameter has two values, and no Sync two
//! clusters. The order of the sets of one answer changes nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::parameters::Parameters;

/// Returns every combination of two answers.
pub(crate) fn combine(first: &[Parameters], second: &[Parameters]) -> Result<Vec<Parameters>, String> {
    let mut all = Vec::with_capacity(first.len().saturating_mul(second.len()));
    for one in first {
        for other in second {
            let mut both = one.clone();
            for (name, value) in &other.values {
                if both.values.insert(name.clone(), value.clone()).is_some_and(|known| known != *value) {
                    return Err(format!(
                        "both generators of matrix give the parameter {name}: rename one of them"
                    ));
                }
            }
            let is_other = |found| both.cluster.as_ref().is_some_and(|known| known != found);
            if other.cluster.as_ref().is_some_and(is_other) {
                return Err("both generators of matrix give a cluster: write clusters once".to_owned());
            }
            both.cluster = both.cluster.or_else(|| other.cluster.clone());
            all.push(both);
        }
    }
    Ok(all)
}

/// Changes the sets of the first answer by those of the others that have the same keys.
pub(crate) fn merge(keys: &[String], answers: Vec<Vec<Parameters>>) -> Result<Vec<Parameters>, String> {
    let mut answers = answers.into_iter();
    let mut base = BTreeMap::new();
    for set in answers.next().unwrap_or_default() {
        let key = key_of(keys, &set)?;
        if base.insert(key.clone(), set).is_some() {
            return Err(format!("two sets of the first generator have the same keys: {key}"));
        }
    }
    for (at, answer) in answers.enumerate() {
        let mut changes = BTreeMap::new();
        for set in answer {
            let key = key_of(keys, &set)?;
            if changes.insert(key.clone(), set).is_some() {
                return Err(format!("two sets of generator {} have the same keys: {key}", at + 1));
            }
        }
        for (key, change) in changes {
            if let Some(set) = base.get_mut(&key) {
                change.values.into_iter().for_each(|(name, value)| put(&mut set.values, name, value));
                set.cluster = change.cluster.or_else(|| set.cluster.take());
            }
        }
    }
    if let Some(set) = base.values().find(|set: &&Parameters| !set.agrees_with_cluster()) {
        let found = set.cluster.as_ref().map_or("", |cluster| &cluster.name);
        return Err(format!("a generator changes the parameter cluster.name of the Secret {found}"));
    }
    Ok(base.into_values().collect())
}

/// Sets a parameter; mappings are merged.
fn put(set: &mut Map<String, Value>, name: String, value: Value) {
    match (set.get_mut(&name), value) {
        (Some(Value::Object(known)), Value::Object(newer)) => {
            newer.into_iter().for_each(|(name, value)| put(known, name, value));
        }
        (_, value) => drop(set.insert(name, value)),
    }
}

/// Returns the values of the keys as text.
fn key_of(keys: &[String], set: &Parameters) -> Result<String, String> {
    let mut values = Vec::new();
    for key in keys {
        let mut names = key.split('.');
        let first = names.next().and_then(|name| set.values.get(name));
        match names.fold(first, |value, name| value?.get(name)) {
            Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => {
                values.push(value.clone());
            }
            Some(_) | None => {
                return Err(format!("a set of parameters has no text, number or boolean for the key {key}"));
            }
        }
    }
    Ok(Value::Array(values).to_string())
}
