//! Approvals that are missing, and messages about deletions that wait for one.
//!
//! In: the inputs of a reconcile. Out: the value that approves the deletion, and a note if the
//! annotation on the Sync has another value; [`PendingApproval`] for each question.

use super::ReconcileInputs;
use crate::api::{APPROVE_ANNOTATION, Approval, ApprovalSubject, PendingApproval};
use crate::plan::{Hold, RevisionRequest};

/// The most characters of the annotation's value that are shown: anyone may have written it.
const MAX_SHOWN: usize = 40;

/// Message of a deletion over budget, with the annotation that approves it.
pub(super) fn over_budget_message(pass: &ReconcileInputs<'_>, hold: &Hold) -> String {
    let approve = pass.approval.unwrap_or_default();
    let other = other_approval(pass);
    format!("{hold}; to delete them, annotate the Sync with {APPROVE_ANNOTATION}={approve}{other}")
}

/// Message about objects of protected kinds that wait.
pub(super) fn protected_message(pass: &ReconcileInputs<'_>, count: usize) -> String {
    let (objects, wait) = if count == 1 { ("object", "waits") } else { ("objects", "wait") };
    let other = other_approval(pass);
    format!("{count} {objects} removed from Git {wait} for approval to be deleted{other}")
}

/// Returns the approvals that are missing.
pub(super) fn pending_approvals(
    prune: Option<&Approval>,
    request: Option<&RevisionRequest>,
) -> Vec<PendingApproval> {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let prune = prune.map(|asked| PendingApproval {
        of: ApprovalSubject::Prune,
        hash: asked.hash.clone(),
        pruned: asked.objects,
        ..PendingApproval::default()
    });
    let revision = request.map(|asked| PendingApproval {
        of: ApprovalSubject::Revision,
        hash: asked.hash.clone(),
        revision: Some(asked.revision.clone()),
        created: number(asked.created),
        changed: number(asked.changed),
        pruned: number(asked.pruned),
        plan: asked.lines.clone(),
    });
    prune.into_iter().chain(revision).collect()
}

/// A note that the approval on the Sync does not match the pending one; empty without an approval.
fn other_approval(pass: &ReconcileInputs<'_>) -> String {
    match (pass.approved, pass.approval) {
        (Some(given), Some(asked)) if given != asked => {
            let given: String = given.chars().filter(|it| !it.is_control()).take(MAX_SHOWN).collect();
            format!(" ({APPROVE_ANNOTATION} is {given:?}, which does not match the pending approval {asked})")
        }
        _ => String::new(),
    }
}
