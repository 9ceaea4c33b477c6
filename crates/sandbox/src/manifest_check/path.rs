//! Field paths as error messages print them.
//!
//! In: text such as `spec.containers[0].image` or `metadata.labels["a.b/c"]`, and the object.
//! Out: the steps from the object to the field, as far as they exist. A key that contains dots is
//! found by trying the keys of the object.

use serde_json::Value;

/// One step of a field path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// Field of a map.
    Key(String),
    /// Item of a list, counted from 0.
    Item(usize),
}

/// Returns the steps to a field; they end where the object does not contain the rest of the path.
pub fn path_steps(object: &Value, field: &str) -> Vec<PathStep> {
    walk(object, field).0
}

/// Returns the value of a field.
pub(super) fn value<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    walk(object, field).1
}

/// Appends a field to a path; an ambiguous name is quoted.
pub(super) fn push_key(path: &mut String, key: &str) {
    if key.contains(['.', '/', '[']) {
        path.push_str(&format!("[{key:?}]"));
    } else {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
    }
}

fn walk<'a>(object: &'a Value, field: &str) -> (Vec<PathStep>, Option<&'a Value>) {
    let (mut value, mut rest, mut steps) = (object, field.trim_start_matches('.'), Vec::new());
    while !rest.is_empty() {
        let (step, after) = match value {
            Value::Object(map) => match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
                Some((key, after)) => (PathStep::Key(key.trim_matches('"').to_owned()), after),
                None => {
                    let fits = |key: &&String| {
                        rest.strip_prefix(key.as_str())
                            .is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
                    };
                    let Some(key) = map.keys().filter(fits).max_by_key(|key| key.len()) else {
                        return (steps, None);
                    };
                    (PathStep::Key(key.clone()), &rest[key.len()..])
                }
            },
            Value::Array(_) => {
                let inner = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
                let Some((Ok(at), after)) = inner.map(|(at, after)| (at.parse(), after)) else {
                    return (steps, None);
                };
                (PathStep::Item(at), after)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return (steps, None),
        };
        let inner = match &step {
            PathStep::Key(key) => value.get(key),
            PathStep::Item(at) => value.get(at),
        };
        let Some(inner) = inner else { return (steps, None) };
        steps.push(step);
        (value, rest) = (inner, after.strip_prefix('.').unwrap_or(after));
    }
    (steps, Some(value))
}
