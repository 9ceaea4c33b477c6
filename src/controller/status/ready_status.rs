//! The status of a resource beside Sync: its Ready condition.
//!
//! In: the generation, and the parts of the condition. Out: the status as JSON.

use serde_json::{Value, json};

/// Parts of a Ready condition.
pub(in crate::controller) struct ReadyCondition<'a> {
    pub(in crate::controller) status: &'a str,
    pub(in crate::controller) reason: &'a str,
    pub(in crate::controller) message: &'a str,
    /// Time of the last transition.
    pub(in crate::controller) since: &'a str,
}

/// Builds a status with nothing but its Ready condition.
pub(in crate::controller) fn ready_status(generation: Option<i64>, condition: &ReadyCondition<'_>) -> Value {
    let ReadyCondition { status, reason, message, since } = condition;
    json!({
        "observedGeneration": generation,
        "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since, "observedGeneration": generation,
        }],
    })
}
