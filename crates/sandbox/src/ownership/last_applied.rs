//! What `kubectl apply` noted on an object before it learned server-side apply.
//!
//! In: the annotation with the configuration that was applied last. Out: whether the manager `kubectl` may take over what
//! it wrote that way without a conflict, and the annotation brought up to date. No other manager has these privileges.

use serde_json::Value;

use super::super::schema::Schema;
use super::Conflict;
use super::claim::claim;
use super::compare::compare;
use super::typed::check;
use moorline_managed_fields::{FieldSet, safe_for_html};

/// The manager of `kubectl apply --server-side`.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together have no more bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// The conflicts that are left when kubectl may take over what it applied before and what still stands so.
pub(super) fn left(
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

/// The fields of the last applied configuration whose values the live object has.
fn still_as_applied(schema: &Schema, live: &Value, api_version: &str) -> Option<FieldSet> {
    let annotation = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    // With items that stand twice nothing can be told.
    check(schema, live).and_then(|()| check(schema, &last)).ok()?;
    let change = compare(schema, &last, live);
    let fields = claim(schema, &last);
    Some(fields.minus(&change.modified).minus(&change.added).minus(&change.removed))
}

/// Brings the annotation up to date, if there is one.
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
