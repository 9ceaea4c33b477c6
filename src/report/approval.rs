//! Sentences about a deletion that waits for approval.
//!
//! In: the facts of a pass. Out: the value that approves it; and where the Sync has another one, that this one approves something
//! else.

use super::PassFacts;
use crate::api::APPROVE_ANNOTATION;
use crate::plan::Hold;

/// The most characters of a value that somebody else wrote.
const MAX_SHOWN: usize = 40;

/// The deletion is over budget: the hold, and how it is approved.
pub(super) fn approvable(pass: &PassFacts<'_>, hold: &Hold) -> String {
    let approve = pass.approval.unwrap_or_default();
    let other = other_approval(pass);
    format!("{hold}; to delete them, annotate the Sync with {APPROVE_ANNOTATION}={approve}{other}")
}

/// So many objects of protected kinds wait.
pub(super) fn protected(pass: &PassFacts<'_>, count: usize) -> String {
    let (objects, wait) = if count == 1 { ("object", "waits") } else { ("objects", "wait") };
    let other = other_approval(pass);
    format!("{count} {objects} that Git has no more {wait} for approval to be deleted{other}")
}

/// Says that the approval on the Sync is not the one that is asked for; nothing where there is none.
fn other_approval(pass: &PassFacts<'_>) -> String {
    match (pass.approved, pass.approval) {
        (Some(given), Some(asked)) if given != asked => {
            let given: String = given.chars().filter(|it| !it.is_control()).take(MAX_SHOWN).collect();
            format!(
                " ({APPROVE_ANNOTATION} is {given:?}, which does not approve what waits now: {asked} does)"
            )
        }
        _ => String::new(),
    }
}
