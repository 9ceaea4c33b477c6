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
    let found = match target.resource.builtin() {
        Some(_) => {
            if let Some(words) = schema.mismatch(new) {
                return Err(Refusal::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {words}",
                    target.resource.kind,
                    target.served().name,
                    target.resource.kind
                )));
            }
            if strictness == "Ignore" { Vec::new() } else { schema.unknown(new) }
        }
        None => schema.pruned(new),
    };
    match strictness {
        "Strict" if !found.is_empty() => {
            let words = format!("strict decoding error: {}", found.join(", "));
            Err(Refusal::bad_request(match target.resource.builtin() {
                Some(_) => format!(
                    "{} in version {:?} cannot be handled as a {}: {words}",
                    target.resource.kind,
                    target.served().name,
                    target.resource.kind
                ),
                None => words,
            }))
        }
        "Ignore" => Ok(Vec::new()),
        _ => Ok(found),
    }
}

/// Refuses what may not be kept.
pub(crate) fn refuse(target: &Target, old: Option<&Value>, new: &Value) -> Result<(), Refusal> {
    let cause = |reason: &str, message: &str, field: &str| json!({"reason": reason, "message": message, "field": field});
    let causes: Vec<Value> = match target.resource.builtin() {
        Some(kind) => kinds::validate(kind, &target.subresource, old, new)
            .iter()
            .map(|it| cause(it.reason, &it.message, &it.field))
            .collect(),
        None => {
            let problems = target.served().schema.problems_since(old, new, &mut |_, _, _, _| Vec::new());
            problems.iter().map(|it| cause(it.reason, &it.message, &it.field)).collect()
        }
    };
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(target.about(), &causes)) }
}
