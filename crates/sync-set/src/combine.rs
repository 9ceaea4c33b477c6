//! Combinations of sets of parameters: all pairs, and changes by keys.
//!
//! In: the answers of generators. Out: sets in which no parameter has two values. The order of the
//! sets of one answer changes nothing.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::generate::Parameters;

/// Returns every combination of two answers.
pub(crate) fn combine(first: &[Parameters], second: &[Parameters]) -> Result<Vec<Parameters>, String> {
    let mut all = Vec::with_capacity(first.len().saturating_mul(second.len()));
    for one in first {
        for other in second {
            let mut both = one.clone();
            for (name, value) in other {
                if both.insert(name.clone(), value.clone()).is_some_and(|known| known != *value) {
                    return Err(format!(
                        "both generators of matrix give the parameter {name}: rename one of them"
                    ));
                }
            }
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
                change.into_iter().for_each(|(name, value)| put(set, name, value));
            }
        }
    }
    Ok(base.into_values().collect())
}

/// Sets a parameter; mappings are merged.
fn put(set: &mut Parameters, name: String, value: Value) {
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
        let first = names.next().and_then(|name| set.get(name));
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
