//! Status texts about the progress of a deletion, and about the reason why it is held.
//!
//! In: the objects that are left.
//! Out: a reconcile error for the status, which is written only if it has changed.

use super::decision::HeldReason;
use crate::api::SyncName;
use crate::object::ObjectId;
use crate::plan::{Hold, Plan};
use crate::report::{ErrorCause, ReconcileError};

/// Most objects that are named; a status has room for as many problems.
const MAX_NAMED: usize = 10;

/// Returns the text while objects are being deleted.
pub(super) fn deleting(plan: &Plan, left: &[ObjectId]) -> ReconcileError {
    // The first object that waits for something outside of the Sync says the most.
    let waits = plan.held.iter().find(|(_, hold)| !matches!(hold, Hold::WaitsFor(_)));
    let first = waits.map(|(id, hold)| format!("; {id}: {hold}")).unwrap_or_default();
    let message = format!("the Sync is being deleted; {}{first}", are_left(left));
    ReconcileError { cause: ErrorCause::Deleting, message, problems: named(left), permanent: false }
}

/// Returns the text while the deletion waits for a person. The remaining objects may be unknown.
pub(super) fn held(name: &SyncName, pause: HeldReason, left: Option<&[ObjectId]>) -> ReconcileError {
    let SyncName { namespace, name, .. } = name;
    let left_now = left.map(|left| format!(", and {}", are_left(left))).unwrap_or_default();
    let (why, outlook) = match pause {
        HeldReason::Suspended => {
            ("is suspended", format!("`moorline resume {name} -n {namespace}` continues"))
        }
        HeldReason::PolicyChanged => {
            ("now has deletionPolicy Orphan", "`spec.deletionPolicy: Delete` continues".to_owned())
        }
    };
    let message = format!(
        "the Sync is being deleted and {why}: nothing more is deleted{left_now}; {outlook}, \
         `moorline delete {name} -n {namespace} --orphan` keeps the objects, and `--delete` deletes them"
    );
    let problems = named(left.unwrap_or_default());
    ReconcileError { cause: ErrorCause::DeletionHeld, message, problems, permanent: true }
}

/// Returns the text while the other cluster does not let the objects be deleted.
pub(super) fn away(name: &SyncName, failure: &str) -> ReconcileError {
    let SyncName { namespace, name, .. } = name;
    let message = format!(
        "the Sync is being deleted and waits for the cluster of its objects: {failure}; if that cluster is gone for \
         ever, `moorline delete {name} -n {namespace} --abandon-cluster` leaves the objects there"
    );
    ReconcileError { cause: ErrorCause::Deleting, message, problems: Vec::new(), permanent: false }
}

fn are_left(left: &[ObjectId]) -> String {
    match left.len() {
        1 => "1 object is left".to_owned(),
        count => format!("{count} objects are left"),
    }
}

fn named(left: &[ObjectId]) -> Vec<String> {
    left.iter().take(MAX_NAMED).map(|id| format!("{id} is left")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_is_left_and_what_to_do() {
        let name = SyncName::new("ops", "shop");
        let left = [ObjectId::parse("/ConfigMap|shop/a").unwrap()];
        let told = held(&name, HeldReason::Suspended, Some(&left));
        assert_eq!(
            told.message,
            "the Sync is being deleted and is suspended: nothing more is deleted, and 1 object is left; \
             `moorline resume shop -n ops` continues, `moorline delete shop -n ops --orphan` keeps the objects, and \
             `--delete` deletes them"
        );
        assert_eq!((told.problems.len(), told.permanent), (1, true));
        let told = held(&name, HeldReason::PolicyChanged, None);
        assert!(told.message.contains("`spec.deletionPolicy: Delete` continues"), "{}", told.message);
        assert!(told.problems.is_empty());
    }
}
