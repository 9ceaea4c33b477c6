//! Messages about deletions that wait for approval.
//!
//! In: the inputs of a reconcile. Out: the value that approves the deletion, and a note if the
//! annotation on the Sync has another value.

use super::ReconcileInputs;
use crate::api::APPROVE_ANNOTATION;
use crate::plan::Hold;

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
