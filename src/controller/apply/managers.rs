//! Managed fields of a reply, by manager.
//!
//! In: an object. Out: our entry, and those of others.

use serde_json::Value;

use crate::fields::{FieldSet, ManagedFieldsEntry, entries};

/// Splits the managed fields into our entry and the entries of other managers.
pub(crate) fn own_and_foreign(
    object: &crate::object::Object,
    manager: &str,
) -> (FieldSet, Vec<ManagedFieldsEntry>) {
    let metadata = object.body.get("metadata").and_then(Value::as_object);
    let all = metadata.map(entries).unwrap_or_default();
    let (own, foreign): (Vec<_>, Vec<_>) = all.into_iter().partition(|entry| entry.is_applied_by(manager));
    (own.into_iter().next().map(|entry| entry.fields).unwrap_or_default(), foreign)
}
