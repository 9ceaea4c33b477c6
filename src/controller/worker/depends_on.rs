//! Waits for the Syncs of `spec.dependsOn`.
//!
//! In: the revision that is to be accepted. Out: the reason why it is not accepted yet. A waiting
//! Sync is woken by the Syncs that it waits for.

use super::Reconciler;
use super::health::is_well;
use crate::controller::peers::dependencies::{AppliedCommit, WaitReason};
use crate::controller::status::worker_event::WorkerEvent;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::Revision;

/// True for a condition that an event ends, so that no retry is needed.
pub(super) fn is_waiting(reconcile_error: &ReconcileError) -> bool {
    reconcile_error.cause == ErrorCause::DependencyNotReady
}

/// Returns the reason why a revision is not accepted yet. A revision that is already applied is
/// not checked again.
pub(super) fn waiting_reason(worker: &Reconciler, revision: &Revision) -> Option<ReconcileError> {
    let known = worker.past_dependencies.as_ref() == Some(revision) || worker.recorder.has_applied(revision);
    let waits = match known {
        true => None,
        false => worker.context.peers.waiting_reason(&worker.owner, &applied_at(worker, revision)),
    };
    let reconcile_error = waits.map(|waits| {
        let (cause, message, lasting) = match waits {
            WaitReason::For(message) => (ErrorCause::DependencyNotReady, message, false),
            WaitReason::Cycle(message) => (ErrorCause::DependencyCycle, message, true),
        };
        ReconcileError { cause, message, problems: Vec::new(), permanent: lasting }
    });
    worker.record_event(WorkerEvent::Waiting(reconcile_error.clone()));
    reconcile_error
}

/// True if a revision is not accepted before other Syncs are ready.
pub(super) fn is_put_off(worker: &Reconciler, revision: &Revision) -> bool {
    let is_known =
        worker.past_dependencies.as_ref() == Some(revision) || worker.recorder.has_applied(revision);
    !is_known && worker.context.peers.waiting_reason(&worker.owner, &applied_at(worker, revision)).is_some()
}

/// Clears the waiting reason: the revision in place was accepted before, and waits for no Sync.
pub(super) fn waits_for_nothing(worker: &Reconciler) {
    worker.record_event(WorkerEvent::Waiting(None));
}

fn applied_at(worker: &Reconciler, revision: &Revision) -> AppliedCommit {
    let valid_spec = &worker.order.valid_spec;
    AppliedCommit {
        address: valid_spec.address.clone(),
        reference: valid_spec.reference.clone(),
        commit: revision.commit,
    }
}

/// Publishes the applied revision to the Syncs that depend on this one.
pub(super) fn publish_applied(worker: &Reconciler) {
    let applied = worker.last_applied.as_ref().filter(|_| is_well(worker));
    worker.context.peers.set_applied(&worker.owner, applied.map(|revision| applied_at(worker, revision)));
}
