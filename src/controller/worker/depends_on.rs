//! Waits for the Syncs of `spec.dependsOn`.
//!
//! In: the revision that is to be accepted. Out: the reason why it is not accepted yet. A waiting
//! Sync is woken by the Syncs that it waits for, or when they have been healthy for long enough.

use std::time::Instant;

use tokio::sync::Notify;

use super::Reconciler;
use super::health::is_well;
use super::healthy_time::HealthyTime;
use super::optional_future::sleep_until;
use crate::clock;
use crate::controller::peers::dependencies::{AppliedCommit, WaitReason};
use crate::controller::status::worker_event::WorkerEvent;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::Revision;

/// State of the waits of a Sync, and of the Syncs that depend on it.
#[derive(Default)]
pub(super) struct DependencyState {
    /// The last revision that did not have to wait for dependencies.
    pub(super) past: Option<Revision>,
    /// Since when the applied objects are healthy.
    pub(super) healthy_time: HealthyTime,
    /// End of the time for which a dependency has to be healthy, while the Sync waits for it.
    soak_end: Option<Instant>,
}

impl DependencyState {
    /// Waits until a dependency has changed, or was healthy for long enough.
    ///
    /// # Cancellation
    ///
    /// A dropped future loses nothing: the next call waits for the same.
    pub(super) async fn called(&mut self, changed: &Notify) {
        tokio::select! {
            () = changed.notified() => {}
            () = sleep_until(self.soak_end) => self.soak_end = None,
        }
    }
}

/// True for a condition that an event ends, so that no retry is needed.
pub(super) fn is_waiting(reconcile_error: &ReconcileError) -> bool {
    reconcile_error.cause == ErrorCause::DependencyNotReady
}

/// Returns the reason why a revision is not accepted yet. A revision that is already applied is
/// not checked again.
pub(super) fn waiting_reason(worker: &mut Reconciler, revision: &Revision) -> Option<ReconcileError> {
    let known = worker.dependencies.past.as_ref() == Some(revision) || worker.recorder.has_applied(revision);
    let waits = match known {
        true => None,
        false => worker.context.peers.waiting_reason(&worker.owner, &applied_at(worker, revision)),
    };
    worker.dependencies.soak_end = match &waits {
        Some(WaitReason::Until(_, end)) => Some(*end),
        Some(WaitReason::For(_) | WaitReason::Cycle(_)) | None => None,
    };
    let reconcile_error = waits.map(|waits| {
        let (cause, message, lasting) = match waits {
            WaitReason::For(message) | WaitReason::Until(message, _) => {
                (ErrorCause::DependencyNotReady, message, false)
            }
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
        worker.dependencies.past.as_ref() == Some(revision) || worker.recorder.has_applied(revision);
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

/// True if an applied revision is the newest one. One that a window holds is for later; one that is
/// refused, rolled back or held by a person is not what others wait for.
fn is_newest(worker: &Reconciler, applied: &Revision) -> bool {
    let has_newer = worker.revision.as_ref().is_some_and(|newest| !newest.has_same_files(applied));
    worker.held.by_window || worker.refused.is_none() && !has_newer
}

/// Publishes the applied revision to the Syncs that depend on this one, and since when its objects
/// are healthy.
pub(super) fn publish_applied(worker: &mut Reconciler) {
    let (summary, recorder) = (worker.health_monitor.summary(), worker.recorder.clone());
    let (suspended, now) = (worker.order.valid_spec.suspend, (clock::now(), clock::wall()));
    let healthy =
        worker.dependencies.healthy_time.observe(summary.as_ref(), suspended, now, || recorder.status());
    let applied = worker.last_applied.as_ref().filter(|applied| is_newest(worker, applied));
    let applied = applied.filter(|_| is_well(worker, summary.as_ref()));
    let applied = applied.map(|revision| applied_at(worker, revision));
    worker.context.peers.set_applied(&worker.owner, applied, healthy);
}
