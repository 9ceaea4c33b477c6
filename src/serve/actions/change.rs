//! Decides the change of a Sync that an action makes.
//!
//! In: the action, the Sync as the API server has it, and the name of the person. Out: one merge
//! patch that is valid for this resourceVersion only, and a sentence; or the reason why the Sync is
//! not as it was shown. The fields are those that the command line writes.

use serde_json::{Value, json};

use super::{Action, ActionError};
use crate::api::{
    APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION, DELETION_ANNOTATION, HOLD_BY_ANNOTATION,
    HOLD_REASON_ANNOTATION, HOLD_REVISION_ANNOTATION, REQUEST_ANNOTATION, REQUESTED_BY_ANNOTATION,
    RevisionHold, SUSPEND_BY_ANNOTATION, short_revision, signed_by,
};

/// A change of a Sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncChange {
    /// The merge patch.
    pub patch: Value,
    /// Its effect, without a subject: `approves the deletion of 3 objects`.
    pub deed: String,
    /// The approval that it gives.
    pub approval: Option<String>,
}

/// Returns the change. `request` is a new value for the request of a poll.
pub fn change_of(action: &Action, sync: &Value, by: &str, request: &str) -> Result<SyncChange, ActionError> {
    let changed = |why: String| Err(ActionError::Changed(why));
    let is_suspended = sync.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
    let (patch, deed, approval) = match action {
        Action::Sync | Action::Retry => {
            let marks = json!({REQUEST_ANNOTATION: request, REQUESTED_BY_ANNOTATION: signed_by(request, by)});
            let retries = matches!(action, Action::Retry);
            let deed =
                if retries { "tries again what was refused" } else { "requests a poll of its repository" };
            (annotations(marks), deed.to_owned(), None)
        }
        Action::Suspend if is_suspended => return changed("it is suspended already".to_owned()),
        Action::Resume if !is_suspended => return changed("it is not suspended".to_owned()),
        Action::Suspend | Action::Resume => {
            let suspends = matches!(action, Action::Suspend);
            let deed = if suspends { "suspends it" } else { "resumes it" };
            (suspension(suspends, sync, by), deed.to_owned(), None)
        }
        Action::Approve(hash) => {
            let Some(subject) = subject_of(sync, hash) else {
                return changed("something else waits for approval now, or nothing".to_owned());
            };
            let marks = json!({APPROVE_ANNOTATION: hash, APPROVED_BY_ANNOTATION: signed_by(hash, by)});
            (annotations(marks), format!("approves {subject} {hash}"), Some(hash.clone()))
        }
        Action::Rollback { revision, reason } => {
            if !history(sync).any(|known| known == revision) {
                return changed(format!("{revision} is not in its history"));
            }
            let marks = json!({
                HOLD_REVISION_ANNOTATION: revision, HOLD_BY_ANNOTATION: by, HOLD_REASON_ANNOTATION: reason,
            });
            (annotations(marks), format!("rolls it back to {}: {reason}", short_revision(revision)), None)
        }
        Action::Release(shown) => {
            let marks = sync.pointer("/metadata/annotations");
            let mark = |key: &str| marks.and_then(|all| all.get(key)).and_then(Value::as_str);
            let Some(RevisionHold { revision: held, .. }) = RevisionHold::of_annotations(mark) else {
                return changed("it is not held at a revision".to_owned());
            };
            if held != *shown {
                return changed(format!("it is held at {} now", short_revision(&held)));
            }
            let marks = json!({
                HOLD_REVISION_ANNOTATION: null, HOLD_BY_ANNOTATION: null, HOLD_REASON_ANNOTATION: null,
            });
            (annotations(marks), format!("releases it from {}", short_revision(&held)), None)
        }
        Action::Restart(id) => {
            return Err(ActionError::Invalid(format!(
                "use kubectl rollout restart for {id}: it changes this object, not the Sync"
            )));
        }
    };
    Ok(SyncChange { patch: guarded(patch, sync), deed, approval })
}

fn annotations(marks: Value) -> Value {
    json!({"metadata": {"annotations": marks}})
}

/// The change of `spec.suspend`, with the generation that it leads to beside the name.
fn suspension(suspends: bool, sync: &Value, by: &str) -> Value {
    let generation = sync.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default() + 1;
    let mut marks = json!({SUSPEND_BY_ANNOTATION: signed_by(&generation.to_string(), by)});
    if suspends {
        // An earlier answer to a deletion must not delete anything once the Sync is resumed.
        marks[DELETION_ANNOTATION] = Value::Null;
    }
    json!({"spec": {"suspend": suspends}, "metadata": {"annotations": marks}})
}

/// Restricts a patch to the Sync that was read.
fn guarded(mut patch: Value, sync: &Value) -> Value {
    for field in ["resourceVersion", "uid"] {
        patch["metadata"][field] = sync["metadata"][field].clone();
    }
    patch
}

/// The subject that waits for an approval with this hash.
fn subject_of(sync: &Value, hash: &str) -> Option<&'static str> {
    let mut asked = sync.pointer("/status/approvals").and_then(Value::as_array).into_iter().flatten();
    let is_it = |asked: &&Value| asked["hash"] == hash;
    let deletions = sync.pointer("/status/approval").filter(is_it).map(|_| "the pending deletions");
    deletions.or_else(|| {
        asked.find(is_it).map(|asked| match asked["of"] == "Revision" {
            true => "the revision",
            false => "the pending deletions",
        })
    })
}

/// Revisions that the Sync has had.
fn history(sync: &Value) -> impl Iterator<Item = &str> {
    let entries = sync.pointer("/status/history").and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| entry.get("revision")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_changes_the_sync_that_was_shown_and_names_the_person() {
        let sync = json!({
            "metadata": {"resourceVersion": "7", "uid": "u", "generation": 3,
                "annotations": {"moorline.dev/hold-revision": "main@2"}},
            "spec": {"suspend": false},
            "status": {"approval": {"hash": "abc", "objects": 2}, "approvals": [{"of": "Revision", "hash": "rev"}], "history": [{"revision": "main@1"}]},
        });
        let marks = |marks: Value| json!({"annotations": marks, "resourceVersion": "7", "uid": "u"});
        let rollback = |to: &str| Action::Rollback { revision: to.to_owned(), reason: "slow".to_owned() };
        for (action, expect) in [
            (
                Action::Sync,
                Ok(
                    json!({"metadata": marks(json!({"moorline.dev/requested-at": "r1", "moorline.dev/requested-by": "r1 ada"}))}),
                ),
            ),
            (
                Action::Suspend,
                Ok(json!({"spec": {"suspend": true}, "metadata": marks(json!({
                    "moorline.dev/suspend-by": "4 ada", "moorline.dev/deletion": null}))})),
            ),
            (Action::Resume, Err("not suspended")),
            (
                Action::Approve("abc".to_owned()),
                Ok(
                    json!({"metadata": marks(json!({"moorline.dev/approve": "abc", "moorline.dev/approved-by": "abc ada"}))}),
                ),
            ),
            (Action::Approve("old".to_owned()), Err("something else waits")),
            (
                Action::Approve("rev".to_owned()),
                Ok(
                    json!({"metadata": marks(json!({"moorline.dev/approve": "rev", "moorline.dev/approved-by": "rev ada"}))}),
                ),
            ),
            (
                rollback("main@1"),
                Ok(json!({"metadata": marks(json!({"moorline.dev/hold-revision": "main@1",
                    "moorline.dev/hold-by": "ada", "moorline.dev/hold-reason": "slow"}))})),
            ),
            (rollback("main@9"), Err("not in its history")),
            (Action::Release("main@1".to_owned()), Err("it is held at main@2 now")),
            (
                Action::Release("main@2".to_owned()),
                Ok(json!({"metadata": marks(json!({"moorline.dev/hold-revision": null,
                    "moorline.dev/hold-by": null, "moorline.dev/hold-reason": null}))})),
            ),
        ] {
            match (change_of(&action, &sync, "ada", "r1"), expect) {
                (Ok(change), Ok(expect)) => assert_eq!(change.patch, expect, "{action:?}"),
                (Err(refused), Err(part)) => assert!(refused.to_string().contains(part), "{refused}"),
                (found, expect) => panic!("{action:?}: {found:?} and not {expect:?}"),
            }
        }
    }
}
