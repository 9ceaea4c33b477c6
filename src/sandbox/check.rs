//! What is wrong with an object that is written.
//!
//! In: the object before and after, and its type. Out: warnings, or the refusal with all that is wrong at once.

use serde_json::{Value, json};

use super::kinds;
use super::refusal::Refusal;
use super::write::Target;

/// Fields that nobody knows, as the writer wants to hear of them: not at all, as warnings, or as a refusal. A value of
/// another type than its field is refused, however it is asked for.
pub(crate) fn decode(target: &Target, new: &mut Value, strictness: &str) -> Result<Vec<String>, Refusal> {
    let schema = &target.served().schema;
    let kind = &target.resource.kind;
    let unreadable = |words: &str| {
        let version = &target.served().name;
        Refusal::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {words}"))
    };
    let found = match target.resource.builtin() {
        Some(_) => match schema.mismatch(new) {
            Some(words) => return Err(unreadable(&words)),
            None => schema.unknown(new),
        },
        None => schema.pruned(new).iter().map(|path| format!("unknown field {path:?}")).collect(),
    };
    match strictness {
        "Strict" if !found.is_empty() => {
            Err(unreadable(&format!("strict decoding error: {}", found.join(", "))))
        }
        "Ignore" => Ok(Vec::new()),
        _ => Ok(found),
    }
}

/// Refuses what may not be kept.
pub(crate) fn refuse(target: &Target, old: Option<&Value>, new: &Value) -> Result<(), Refusal> {
    let cause = |reason: &str, message: &str, field: &str| json!({"reason": reason, "message": message, "field": field});
    let mut causes: Vec<Value> = match target.resource.builtin() {
        Some(kind) => kinds::validate(kind, &target.subresource, old, new)
            .iter()
            .map(|it| cause(it.reason, &it.message, &it.field))
            .collect(),
        None => {
            let metadata = kinds::validate_custom(new);
            let metadata = metadata.iter().map(|it| cause(it.reason, &it.message, &it.field));
            let problems = target.served().schema.problems_since(old, new, &mut |_, _, _, _| Vec::new());
            metadata.chain(problems.iter().map(|it| cause(it.reason, &it.message, &it.field))).collect()
        }
    };
    causes.extend(late_finalizers(old, new));
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(target.about(), &causes)) }
}

/// What is to be deleted is not held by anybody new. The server looks twice, and says so twice.
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
