//! Parts of a status that several outputs show.
//!
//! In: a status. Out: the condition Ready, and the approvals that are missing.

use crate::api::{ConditionType, PendingApproval, SyncStatus};

/// The status, reason and message of the Ready condition.
pub fn ready(status: &SyncStatus) -> (&str, &str, &str) {
    let ready = status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.to_string());
    ready.map_or(("Unknown", "", "no daemon has reconciled it yet"), |it| {
        (&it.status, &it.reason, &it.message)
    })
}

/// The approvals that are missing, also in the status of an older daemon.
pub fn waiting(status: &SyncStatus) -> Vec<PendingApproval> {
    let older = status.approval.as_ref().filter(|_| status.approvals.is_empty());
    let older = older.map(|asked| PendingApproval {
        hash: asked.hash.clone(),
        pruned: asked.objects,
        ..PendingApproval::default()
    });
    older.into_iter().chain(status.approvals.iter().cloned()).collect()
}
