//! Adds to a status that a person holds the Sync at a revision.
//!
//! In: a verdict, and the hold. Out: the verdict with the person and the reason in its message. A
//! Sync is not ready while it is held at another revision than the newest one.

use super::{ReadyVerdict, StatusInputs};
use crate::api::{ChosenRevision, HOLD_REVISION_ANNOTATION, Reason, RevisionHold};

/// The hold as the status records it.
pub(super) fn chosen(hold: &RevisionHold) -> ChosenRevision {
    let RevisionHold { revision, by, reason } = hold.clone();
    ChosenRevision { revision, by, reason }
}

/// Returns the verdict about a Sync that may be held.
pub(super) fn with_hold(verdict: ReadyVerdict, facts: &StatusInputs<'_>) -> ReadyVerdict {
    let Some(hold) = facts.hold else { return verdict };
    let who_and_why = hold.who_and_why();
    let pass = facts.reconcile.as_ref().filter(|_| facts.error.is_none());
    let Some(pass) = pass else {
        let chosen = &hold.revision;
        let message = format!("{}; {HOLD_REVISION_ANNOTATION} is {chosen}{who_and_why}", verdict.message);
        return ReadyVerdict { message, ..verdict };
    };
    let held = format!("held at {}{who_and_why}", pass.revision);
    let newest = facts.seen.as_ref().map(|seen| &seen.revision).filter(|seen| **seen != pass.revision);
    match newest.filter(|_| verdict.ready) {
        Some(newest) => ReadyVerdict {
            ready: false,
            reason: Reason::RevisionHeld.to_string(),
            message: format!(
                "{held}; {newest} is not applied until the hold is released; {}",
                verdict.message
            ),
            ..verdict
        },
        None => ReadyVerdict { message: format!("{}; {held}", verdict.message), ..verdict },
    }
}
