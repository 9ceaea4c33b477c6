//! Answers about a Sync from its status alone.
//!
//! In: a name and a status. Out: values with texts of other people, which the envelope marks.

use serde_json::{Value, json};

use crate::api::{Reason, SyncName, SyncStatus};
use crate::report::board::{SyncState, advice};
use crate::report::{count_unlisted, ready, waiting};

/// True if the Sync is ready.
pub(crate) fn is_ready(status: &SyncStatus) -> bool {
    ready(status).0 == "True"
}

/// Returns a row of `list_syncs`.
pub(crate) fn summary(name: &SyncName, status: &SyncStatus, is_suspended: bool) -> Value {
    let (is_ready, reason, message) = ready(status);
    json!({
        "namespace": name.namespace, "name": name.name, "ready": is_ready,
        "state": SyncState::from_status(status).label(), "reason": reason, "message": message,
        "revision": status.revision.as_ref().and_then(|revision| revision.applied.as_ref()),
        "objects": status.objects,
        "suspended": is_suspended,
    })
}

/// Returns the answer of `why`.
pub(crate) fn why(name: &SyncName, status: &SyncStatus, is_suspended: bool) -> Value {
    let mut whole = summary(name, status, is_suspended);
    let (_, reason, _) = ready(status);
    whole["advice"] = json!(Reason::parse(reason).and_then(|reason| advice(reason, name)));
    whole["conditions"] = json!(status.conditions);
    whole["problems"] = json!(status.problems);
    whole["moreProblems"] = count_unlisted(status).into();
    whole["contested"] = json!(status.contested);
    whole["revisions"] = json!(status.revision);
    whole["pendingApproval"] = json!(waiting(status));
    whole
}

/// Returns the answer of `history`.
pub(crate) fn history(name: &SyncName, status: &SyncStatus) -> Value {
    json!({"sync": name.to_string(), "history": status.history})
}
