//! Field ownership of the replica count after a write to the scale subresource.
//!
//! In: the stored object, and the manager that scaled it.
//! Out: the object with updated `managedFields`. A write to the scale is a write to one field of
//! another kind, which has no other managers.

use serde_json::{Value, json};

/// Transfers the replica count from its managers to the one that scales. If no manager owned it,
/// none does afterwards; the same if the count is zero, which a `Scale` omits. A new entry has no
/// time.
pub(crate) fn transfer_replicas(
    object: &mut Value,
    path: &[Box<str>],
    manager: &str,
    version: &str,
    is_shown: bool,
) {
    let Some(Value::Array(managers)) = object.pointer_mut("/metadata/managedFields") else { return };
    let (mut was_owned, mut has_own) = (false, false);
    managers.retain_mut(|entry| {
        let owns = path.iter().try_fold(&entry["fieldsV1"], |place, name| place.get(format!("f:{name}")));
        was_owned |= owns.is_some();
        let is_own =
            entry["manager"] == manager && entry["operation"] == "Update" && entry["subresource"] == "scale";
        has_own |= is_own && is_shown && owns.is_some();
        if owns.is_none() || is_own && is_shown {
            return true;
        }
        disown(&mut entry["fieldsV1"], path);
        entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty())
    });
    if was_owned && !has_own && is_shown {
        let fields = path.iter().rev().fold(json!({}), |inner, name| json!({format!("f:{name}"): inner}));
        let applied = managers.iter().take_while(|entry| entry["operation"] == "Apply").count();
        managers.insert(
            applied,
            json!({
                "manager": manager, "operation": "Update", "subresource": "scale", "apiVersion": version,
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            }),
        );
    }
}

/// Removes a field from a set, and its parents if they become empty.
fn disown(fields: &mut Value, path: &[Box<str>]) {
    let ([name, rest @ ..], Some(fields)) = (path, fields.as_object_mut()) else { return };
    let name = format!("f:{name}");
    if let Some(inner) = fields.get_mut(&name).filter(|_| !rest.is_empty()) {
        disown(inner, rest);
        if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
            return;
        }
    }
    fields.remove(&name);
}
