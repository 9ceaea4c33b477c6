//! Completion of Jobs and Pods, as far as metadata show it.
//!
//! In: metadata.
//! Out: [`Completion`]. Metadata watches show no status, but `managedFields` show which status
//! fields were written: a Job that succeeded has a completion time. Where that is not enough, the
//! status must be read once.

use serde_json::{Map, Value};

use super::baseline::{raw_entries, short_hash};
use moorline_core::object::{Object, ObjectId};

/// Completion of an object according to its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Completion {
    /// It is running, or its kind never completes.
    #[default]
    Running,
    /// The status must be read. The number changes with every visible write of the status.
    Unknown(u64),
    /// It has completed.
    Completed,
}

/// True for the kinds that run to completion and may be deleted by others afterwards.
pub fn runs_to_completion(id: &ObjectId) -> bool {
    id.is_kind("batch", "Job") || id.is_kind("", "Pod")
}

impl Completion {
    /// Reads the metadata of an object.
    pub(super) fn from_metadata(object: &Object) -> Self {
        if !runs_to_completion(&object.id) {
            return Self::Running;
        }
        let is_status =
            |entry: &&Map<String, Value>| entry.get("subresource").and_then(Value::as_str) == Some("status");
        let statuses: Vec<&Map<String, Value>> = raw_entries(object).filter(is_status).collect();
        let wrote = |field: &str| {
            let fields = |entry: &&Map<String, Value>| {
                entry.get("fieldsV1").and_then(|all| all.get("f:status")?.get(field)).is_some()
            };
            statuses.iter().any(fields)
        };
        if object.id.is_kind("batch", "Job") && wrote("f:completionTime") {
            return Self::Completed;
        }
        // A failed Job has conditions and no completion time, but so has a suspended one.
        if !wrote("f:conditions") && !wrote("f:phase") {
            return Self::Running;
        }
        let text = |entry: &&Map<String, Value>| serde_json::to_vec(entry).unwrap_or_default();
        Self::Unknown(statuses.iter().fold(0, |sum: u64, entry| sum.wrapping_add(short_hash(&text(entry)))))
    }
}

/// True if the status shows that the object has completed.
pub fn has_completed(id: &ObjectId, status: &Value) -> bool {
    has_failed(id, status) || says(id, status, "Succeeded", "Complete")
}

/// True if the status shows that the object has failed.
pub fn has_failed(id: &ObjectId, status: &Value) -> bool {
    says(id, status, "Failed", "Failed")
}

/// True for a Pod in this phase, or a Job with this condition.
fn says(id: &ObjectId, status: &Value, phase: &str, condition: &str) -> bool {
    let is = |value: Option<&Value>, text: &str| value.and_then(Value::as_str) == Some(text);
    if id.is_kind("", "Pod") {
        return is(status.get("phase"), phase);
    }
    let conditions = status.get("conditions").and_then(Value::as_array);
    let holds = |known: &Value| is(known.get("type"), condition) && is(known.get("status"), "True");
    id.is_kind("batch", "Job") && conditions.into_iter().flatten().any(holds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use moorline_core::object::Origin;

    fn ended(id: &str, entries: Value) -> Completion {
        let Value::Object(body) = json!({"metadata": {"managedFields": entries}}) else {
            unreachable!("a literal mapping")
        };
        let origin = Origin { file: "live".into(), document: 0, line: 1, item: None };
        Completion::from_metadata(&Object {
            id: ObjectId::parse(id).unwrap(),
            version: "v1".into(),
            body,
            origin,
        })
    }

    fn status(fields: Value) -> Value {
        json!({"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": fields}})
    }

    #[test]
    fn a_completion_time_is_an_end_and_conditions_may_be() {
        let job = "batch/Job|shop/migrate";
        let running = status(json!({"f:active": {}, "f:startTime": {}}));
        assert_eq!(ended(job, json!([])), Completion::Running);
        assert_eq!(ended(job, json!([running])), Completion::Running);
        let done = status(json!({"f:completionTime": {}, "f:conditions": {}}));
        assert_eq!(ended(job, json!([running, done])), Completion::Completed);
        let failed = ended(job, json!([status(json!({"f:conditions": {}}))]));
        assert!(matches!(failed, Completion::Unknown(_)));
        assert_ne!(failed, ended(job, json!([status(json!({"f:conditions": {}, "f:failed": {}}))])));
        assert!(matches!(
            ended("/Pod|shop/a", json!([status(json!({"f:phase": {}}))])),
            Completion::Unknown(_)
        ));
        assert_eq!(
            ended("apps/Deployment|shop/a", json!([status(json!({"f:conditions": {}}))])),
            Completion::Running
        );
    }

    #[test]
    fn a_status_says_whether_it_is_the_end() {
        let check = |id: &str, status: Value, expect| {
            assert_eq!(has_completed(&ObjectId::parse(id).unwrap(), &status), expect, "{id} {status}");
        };
        let condition = |kind: &str, is: &str| json!({"conditions": [{"type": kind, "status": is}]});
        check("batch/Job|a/a", condition("Complete", "True"), true);
        check("batch/Job|a/a", condition("Failed", "True"), true);
        check("batch/Job|a/a", condition("Failed", "False"), false);
        check("batch/Job|a/a", condition("Suspended", "True"), false);
        check("batch/Job|a/a", json!({}), false);
        check("/Pod|a/a", json!({"phase": "Succeeded"}), true);
        check("/Pod|a/a", json!({"phase": "Failed"}), true);
        check("/Pod|a/a", json!({"phase": "Running"}), false);
        check("apps/Deployment|a/a", condition("Complete", "True"), false);
    }
}
