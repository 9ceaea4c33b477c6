//! Client-side apply: the `last-applied-configuration` annotation of kubectl.
//!
//! In: the annotation.
//! Out: the conflicts that remain for the manager `kubectl`, which may take over the fields that it
//! applied before without a conflict; and the updated annotation. No other manager has this
//! privilege.

use serde_json::Value;

use super::super::schema::Schema;
use super::Conflict;
use super::applied_fields::applied_fields;
use super::compare::compare;
use super::type_check::check;
use moorline_managed_fields::{FieldSet, safe_for_html};

/// Manager of `kubectl apply --server-side`.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Maximum size of all annotations of an object together, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// Returns the conflicts that remain: kubectl may take over fields that it applied before and that
/// still have that value.
pub(super) fn remaining_conflicts(
    schema: &Schema,
    live: &Value,
    conflicts: Vec<Conflict>,
    api_version: &str,
) -> Vec<Conflict> {
    match still_as_applied(schema, live, api_version) {
        Some(allowed) => {
            conflicts.into_iter().filter(|conflict| !allowed.contains(conflict.path())).collect()
        }
        None => conflicts,
    }
}

/// Returns the fields of the last applied configuration that the live object still has unchanged.
fn still_as_applied(schema: &Schema, live: &Value, api_version: &str) -> Option<FieldSet> {
    let annotation = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    // With duplicate items the values cannot be compared.
    check(schema, live).and_then(|()| check(schema, &last)).ok()?;
    let change = compare(schema, &last, live);
    let fields = applied_fields(schema, &last);
    Some(fields.minus(&change.modified).minus(&change.added).minus(&change.removed))
}

/// Updates the annotation, if it exists.
pub(super) fn note(object: &mut Value, config: &Value) {
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    annotations
        .insert(ANNOTATION.to_owned(), Value::String(format!("{}\n", safe_for_html(&config.to_string()))));
    let length = |value: &Value| value.as_str().map_or(0, str::len);
    let size: usize = annotations.iter().map(|(name, value)| name.len() + length(value)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
