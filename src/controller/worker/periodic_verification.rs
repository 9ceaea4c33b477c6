//! Verifies objects one by one that were not verified since the start, or not for long.
//!
//! In: the memory of a Sync. Out: one verification at a time while no reconcile is due, and an
//! event if it failed.

use std::sync::Arc;

use futures::future::FutureExt as _;

use super::super::chance;
use super::super::schedule::ScheduleEvent;
use super::Reconciler;
use super::held_revision::begins_to_hold;
use crate::cluster::CancelFlag;
use crate::controller::apply::change_cause::cause_of_revision;
use crate::controller::apply::delete_precondition::DeletePrecondition;
use crate::controller::apply::verify::{record_verification, verify};
use crate::controller::apply::{ApplyContext, DeletionLimits};
use crate::controller::status::worker_event::WorkerEvent;
use crate::journal::Reason;
use crate::object::ObjectId;
use crate::plan::Outcome;

/// Marks objects for verification that were last verified longer than `verify_every` ago.
pub(super) fn look_over(worker: &mut Reconciler) -> Option<ScheduleEvent> {
    // A repository that is silent for that long must not delay repairs.
    if worker.running_poll.is_some() && begins_to_hold(worker) {
        return Some(ScheduleEvent::HoldStarted);
    }
    let memory = worker.memory.as_mut()?;
    let stale = memory.due_for_verification(worker.context.now(), worker.context.settings().verify_every);
    if !stale.is_empty() {
        worker.order.cluster.mark_overdue(&worker.owner, &stale);
        // The plan decides by which method each is verified.
        return Some(ScheduleEvent::ObjectsChanged);
    }
    None
}

/// Marks objects without a valid proof for verification. While drift was only reported nothing
/// was written, so they have no proof.
pub(super) fn distrusts_unproven(worker: &Reconciler) {
    let cluster = &worker.order.cluster;
    let unproven: Vec<ObjectId> = cluster.read_observed(&worker.owner, |seen| {
        seen.iter().filter(|(_, seen)| !seen.proven).map(|(id, _)| id.clone()).collect()
    });
    cluster.mark_unverified(&worker.owner, &unproven);
}

/// Starts the next verification, if none runs and the memory is not in use by a reconcile.
pub(super) fn begin_verifying(worker: &mut Reconciler) {
    let cluster = worker.order.cluster.in_current_term();
    if !cluster.may_write() {
        return;
    }
    let Some(memory) = worker.memory.as_mut().filter(|_| worker.verifying.is_none()) else { return };
    let Some(prepared) = memory.prepared.clone() else { return };
    let Some((id, how)) = memory.unverified.pop_front() else { return };
    let (context, owner, order) = (worker.context.clone(), worker.owner.clone(), worker.order.clone());
    let (stop, field_conflicts) = (CancelFlag::default(), memory.field_conflicts.clone());
    let (contested, numbers) =
        (memory.contention.contested(context.now()), memory.autoscaled_replicas.numbers());
    let backends = memory.webhook_failures.shared(context.now());
    let (refused, resource_recorder) = (worker.refused.clone(), worker.resource_recorder.clone());
    let deletions = Arc::new(DeletionLimits {
        protected: order.valid_spec.protected.clone(),
        consented: memory.consented.clone(),
        ..DeletionLimits::default()
    });
    worker.verify_stop = stop.clone();
    worker.verifying = Some(
        async move {
            // An apply may find that the object must be recreated.
            let asked =
                DeletePrecondition::for_spec_revision(order.spec_revision, resource_recorder.as_ref());
            let cause = cause_of_revision(&owner, &order.valid_spec, &prepared, Reason::DriftRepaired);
            let cluster = cluster.caused_by(cause);
            let work = ApplyContext {
                context: &context,
                cluster: &cluster,
                owner: &owner,
                desired: &prepared.desired,
                conflicts: order.valid_spec.conflicts,
                predecessor: order.predecessor.as_ref(),
                field_conflicts: &field_conflicts,
                contested: Arc::new(contested),
                deletions,
                numbers,
                asked: &asked,
                backends: &backends,
                refused: refused.as_deref(),
                stop: &stop,
            };
            let outcome = verify(&work, &id, how).await;
            (id, outcome)
        }
        .boxed(),
    );
}

/// Waits for a verification in progress: a repair that is sent is written into the journal with its
/// reply. No reconcile runs beside one.
pub(super) async fn end_verifying(worker: &mut Reconciler) {
    worker.verify_stop.cancel();
    if let Some(verifying) = worker.verifying.take() {
        // A longer one is dropped, as when the process is killed.
        let _ = tokio::time::timeout(worker.context.process.grace, verifying).await;
    }
}

/// Leaves a failure to the next reconcile, which has the back-off.
pub(super) fn verified(
    worker: &mut Reconciler,
    id: ObjectId,
    outcome: Option<Outcome>,
) -> Option<ScheduleEvent> {
    worker.verifying = None;
    let mut outcome = outcome?;
    let (now, pauses) = (worker.context.now(), worker.context.pauses());
    let due = worker.memory.as_mut().is_some_and(|memory| {
        let desired = memory.prepared.as_ref().map(|prepared| prepared.desired.clone());
        desired.is_some_and(|set| record_verification(memory, &id, &outcome, &set, now, chance(), pauses))
    });
    let prepared = worker.memory.as_ref().and_then(|memory| memory.prepared.as_ref());
    if prepared.is_some_and(|prepared| prepared.desired.is_tainted(&id)) {
        outcome.redact();
    }
    if let Some(memory) = &mut worker.memory {
        memory.replied(std::iter::once(id.clone()), now);
    }
    worker.record_event(WorkerEvent::Verified(id, outcome));
    due.then_some(ScheduleEvent::ObjectsChanged)
}
