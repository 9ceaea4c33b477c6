//! Decides if a deletion may delete objects, leaves them, or waits for a person.
//!
//! In: a Sync that is being deleted, and if its deletion has begun.
//! Out: the decision.
//!
//! The function is pure, so that the same Sync gets the same decision after a restart.

use serde_json::Value;

use crate::api::{ConditionType, DELETION_ANNOTATION, DeletionPolicy, Reason, parse_deletion_answer};

/// The decision about a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeletionDecision {
    /// The objects are deleted.
    Delete,
    /// The Sync has never asked to delete its objects.
    Orphan,
    /// A person answered that the objects stay.
    OrphanByPerson,
    /// Nothing is deleted until a person decides.
    Held(HeldReason),
}

/// Reason for a held deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldReason {
    /// The Sync is suspended.
    Suspended,
    /// The policy became `Orphan` after the deletion had begun.
    PolicyChanged,
}

impl DeletionDecision {
    /// Decides for a Sync as the API server has it.
    pub(crate) fn of(sync: &Value, has_begun: bool) -> Self {
        match answer(sync) {
            Some(DeletionPolicy::Delete) => return Self::Delete,
            Some(DeletionPolicy::Orphan) => return Self::OrphanByPerson,
            None => {}
        }
        let deletes = sync.pointer("/spec/deletionPolicy").and_then(Value::as_str) == Some("Delete");
        let awake = [None, Some(&Value::Null), Some(&Value::Bool(false))];
        match deletes {
            false if has_begun => Self::Held(HeldReason::PolicyChanged),
            false => Self::Orphan,
            true if awake.contains(&sync.pointer("/spec/suspend")) => Self::Delete,
            true => Self::Held(HeldReason::Suspended),
        }
    }
}

fn answer(sync: &Value) -> Option<DeletionPolicy> {
    let text = sync.get("metadata")?.get("annotations")?.get(DELETION_ANNOTATION)?.as_str()?;
    parse_deletion_answer(text, sync.pointer("/metadata/generation")?.as_i64()?)
}

/// Returns true if the status says that the deletion of objects has begun or is held.
pub(crate) fn has_begun(sync: &Value) -> bool {
    let conditions = sync.pointer("/status/conditions").and_then(Value::as_array);
    let is_ready = |it: &&Value| it["type"] == ConditionType::Ready.to_string();
    let ready = conditions.into_iter().flatten().find(is_ready);
    let reason = ready.and_then(|it| it["reason"].as_str()).and_then(Reason::parse);
    matches!(reason, Some(Reason::Deleting | Reason::DeletionHeld))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deletion_goes_by_the_newest_word_of_a_person() {
        let of = |policy: &str, suspend: Value, answer: Option<&str>, has_begun| {
            let sync = json!({
                "metadata": {"generation": 5, "annotations": {"moorline.dev/deletion": answer}},
                "spec": {"deletionPolicy": policy, "suspend": suspend},
            });
            DeletionDecision::of(&sync, has_begun)
        };
        let (on, off) = (json!(true), json!(false));
        for begun in [true, false] {
            assert_eq!(of("Delete", off.clone(), None, begun), DeletionDecision::Delete);
            assert_eq!(of("Delete", Value::Null, None, begun), DeletionDecision::Delete);
            assert_eq!(of("Delete", on.clone(), None, begun), DeletionDecision::Held(HeldReason::Suspended));
            assert_eq!(
                of("Delete", json!("planted"), None, begun),
                DeletionDecision::Held(HeldReason::Suspended)
            );
            assert_eq!(of("Delete", on.clone(), Some("Delete@5"), begun), DeletionDecision::Delete);
            assert_eq!(of("Orphan", on.clone(), Some("Delete@5"), begun), DeletionDecision::Delete);
            assert_eq!(of("Delete", off.clone(), Some("Orphan@5"), begun), DeletionDecision::OrphanByPerson);
            // An answer to an older generation is void.
            assert_eq!(
                of("Delete", on.clone(), Some("Delete@4"), begun),
                DeletionDecision::Held(HeldReason::Suspended)
            );
        }
        for suspend in [on, off] {
            assert_eq!(of("Orphan", suspend.clone(), None, false), DeletionDecision::Orphan);
            assert_eq!(of("Orphan", suspend, None, true), DeletionDecision::Held(HeldReason::PolicyChanged));
        }
        assert_eq!(DeletionDecision::of(&json!({}), false), DeletionDecision::Orphan);
    }

    #[test]
    fn the_status_remembers_that_a_deletion_has_begun() {
        let with = |reason: &str| json!({"status": {"conditions": [{"type": "Ready", "reason": reason}]}});
        assert!(has_begun(&with("Deleting")) && has_begun(&with("DeletionHeld")));
        assert!(!has_begun(&with("Suspended")) && !has_begun(&json!({})));
    }
}
