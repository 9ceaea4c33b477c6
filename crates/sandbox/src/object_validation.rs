//! Validates an object that is about to be written.
//!
//! In: the object before and after the write, and its type.
//! Out: warnings, or a [`StatusError`] with all problems at once.

use serde_json::{Value, json};

use super::kinds;
use super::write::RequestTarget;
use crate::cel_rules;
use crate::status_error::{ErrorSubject, StatusError};

/// Reasons after which CEL rules are not evaluated: the object does not have the types that they
/// expect.
const BLIND: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];
const UNCHECKED: &str = "Invalid value: null: some validation rules were not checked because the object was invalid; \
                         correct the existing errors to complete validation";

/// Handles unknown fields as `fieldValidation` demands: ignores them, warns, or refuses the write.
/// A value of the wrong type is always refused.
pub(crate) fn check_decoding(
    target: &RequestTarget,
    new: &mut Value,
    strictness: &str,
) -> Result<Vec<String>, StatusError> {
    let schema = &target.served().schema;
    let kind = &target.resource.kind;
    let unreadable = |words: &str| {
        let version = &target.served().name;
        StatusError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {words}"
        ))
    };
    let found = match target.resource.builtin() {
        Some(_) => match schema.type_mismatch(new) {
            Some(words) => return Err(unreadable(&words)),
            None => schema.unknown_fields(new),
        },
        None => schema.prune(new).iter().map(|path| format!("unknown field {path:?}")).collect(),
    };
    match strictness {
        "Strict" if !found.is_empty() => {
            Err(unreadable(&format!("strict decoding error: {}", found.join(", "))))
        }
        "Ignore" => Ok(Vec::new()),
        _ => Ok(found),
    }
}

/// Refuses an invalid object; returns warnings for problems that existed before the write.
pub(crate) fn validate_object(
    target: &RequestTarget,
    old: Option<&Value>,
    new: &Value,
    asks_rules: bool,
) -> Result<Vec<String>, StatusError> {
    let cause = |reason: &str, message: &str, field: &str| json!({"reason": reason, "message": message, "field": field});
    let mut causes: Vec<Value> = match target.resource.builtin() {
        Some(kind) => kinds::validate(kind, &target.subresource, old, new)
            .iter()
            .map(|it| cause(it.reason, &it.message, &it.field))
            .collect(),
        None => {
            let metadata = kinds::validate_custom(new);
            let metadata = metadata.iter().map(|it| cause(it.reason, &it.message, &it.field));
            let problems = target.served().schema.validate(old, new);
            metadata.chain(problems.iter().map(|it| cause(it.reason, &it.message, &it.field))).collect()
        }
    };
    let mut warnings = Vec::new();
    if let Some(rules) = target.served().rules.as_ref().filter(|rules| asks_rules && !rules.is_empty()) {
        if causes.iter().any(|cause| BLIND.iter().any(|reason| cause["reason"] == *reason)) {
            causes.push(cause("FieldValueInvalid", UNCHECKED, "<nil>"));
        } else {
            let broken = rules.evaluate(old, new);
            causes.extend(broken.problems.iter().map(|it| cause(it.reason, &it.message, &it.field)));
            warnings = broken.warnings;
        }
    } else if causes.is_empty()
        && target.resource.builtin().is_some_and(|it| it.kind == "CustomResourceDefinition")
    {
        let problems = cel_rules::validate_definition(new);
        causes.extend(problems.iter().map(|it| cause(it.reason, &it.message, &it.field)));
    }
    causes.extend(late_finalizers(old, new));
    if causes.is_empty() {
        return Ok(warnings);
    }
    // The error of a kind that has moved to another API group names its first group.
    let group = target.resource.builtin().map_or(&*target.resource.group, |kind| kind.storage_group());
    Err(StatusError { warnings, ..StatusError::invalid(ErrorSubject { group, ..target.about() }, &causes) })
}

/// Refuses finalizers that are added to an object that is being deleted. A real server checks this
/// twice and reports it twice, and so does this.
fn late_finalizers(old: Option<&Value>, new: &Value) -> Vec<Value> {
    let Some(old) = old.filter(|old| !old["metadata"]["deletionTimestamp"].is_null()) else {
        return Vec::new();
    };
    let held = |of: &Value| of["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let before = held(old);
    let late: Vec<String> =
        held(new).iter().filter(|one| !before.contains(one)).map(Value::to_string).collect();
    if late.is_empty() {
        return Vec::new();
    }
    let message = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        late.join(", ")
    );
    let cause = json!({"reason": "FieldValueForbidden", "message": message, "field": "metadata.finalizers"});
    vec![cause.clone(), cause]
}
