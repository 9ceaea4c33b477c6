//! Starts each reconcile, and handles its result.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::FutureExt as _;

use super::super::memory::SyncMemory;
use super::super::schedule::{ReconcileOutcome, ScheduleEvent, Uptime};
use super::chosen_revision::{apply_chosen, is_behind_newest};
use super::depends_on::{is_put_off, is_waiting, publish_applied, waiting_reason, waits_for_nothing};
use super::health::examine;
use super::held_revision::{HeldRender, ReconcileTarget, held, holds, record_of, says_lost, target};
use super::poll::begin_relating;
use super::rollback::{is_to_hold, note_health, rollback_target, try_out};
use super::{Context, Reconciler};
use crate::api::SyncName;
use crate::clock;
use crate::cluster::{CancelFlag, Cluster};
use crate::controller::reconcile::refused_commit::attempt_time_of;
use crate::controller::reconcile::request::ReconcileRequest;
use crate::controller::reconcile::unrendered_commit::UnrenderedCommit;
use crate::controller::reconcile::{Aim, ReconcileContext};
use crate::controller::status::events::repaired_drift;
use crate::controller::status::reconcile_result::ReconcileResult;
use crate::controller::status::worker_event::WorkerEvent;
use crate::plan::{Hold, Outcome};
use crate::report::{ErrorCause, ReconcileError, is_applied};
use crate::source::Revision;

/// Pause before a missing path is looked for again while the Git server has not answered yet.
const LOOK_FIRST: Duration = Duration::from_secs(2);

/// The memory, the result, and the revision that is held from now on.
pub(super) type FinishedReconcile = (Box<SyncMemory>, ReconcileResult, Option<HeldRender>);

/// Waits for the Lease and returns the cluster for the writes of one term. Nothing is decided
/// without the Lease; none if the reconcile was cancelled meanwhile.
async fn in_a_term(cluster: &Cluster, stop: &CancelFlag) -> Option<Cluster> {
    tokio::select! {
        biased;
        () = stop.wait_until_cancelled() => None,
        () = cluster.terms().wait_until_leading() => Some(cluster.in_current_term()),
    }
}

/// Selects the revision to apply now, and the newest one if that was rolled back.
pub(super) fn select_revision(
    worker: &mut Reconciler,
    newest: Revision,
) -> Result<(Revision, Option<Revision>), ReconcileError> {
    if let Some(instead) = rollback_target(worker, &newest) {
        waits_for_nothing(worker);
        worker.dependencies.past = Some(instead.clone());
        return Ok((instead, Some(newest)));
    }
    match (waiting_reason(worker, &newest), worker.dependencies.past.clone()) {
        (None, _) => {
            worker.dependencies.past = Some(newest.clone());
            Ok((newest, None))
        }
        // Meanwhile the applied revision is reconciled.
        (Some(_), Some(before)) => Ok((before, None)),
        (Some(reconcile_error), None) => Err(reconcile_error),
    }
}

/// True while the path is missing in a revision that may be older than the push of the path.
fn may_be_outdated(worker: &Reconciler, report: &ReconcileResult) -> bool {
    let refused = report.refused.as_ref().and_then(|refused| refused.reconcile_error.as_ref());
    let reconcile_error = report.reconcile_error.as_ref().or(refused);
    let is_missing =
        reconcile_error.is_some_and(|reconcile_error| reconcile_error.cause == ErrorCause::PathNotFound);
    is_missing && !report.stopped && worker.path_lag.is_outdated(clock::now())
}

/// Records the kinds that the server does not serve and that are expected to be installed.
/// Returns the end of the time limit of the first one.
fn bound_lags(worker: &mut Reconciler, report: &mut ReconcileResult) -> Option<Uptime> {
    if report.stopped || report.reconcile_error.is_some() {
        return None;
    }
    let is_unknown = |outcome: &Outcome| matches!(outcome, Outcome::Held(Hold::UnknownKind));
    let unknown = report.outcomes.iter().filter(|(_, outcome)| is_unknown(outcome));
    let unknown = unknown.map(|(id, _)| id.group_kind()).collect();
    let until;
    (report.tries.unserved_kinds, until) = worker.lags.bound_unknown(&unknown, worker.context.now());
    until
}

/// Takes the memory of the previous reconciles.
fn recalled(worker: &mut Reconciler) -> Box<SyncMemory> {
    let losses = worker.context.losses.of_passes();
    let lost = std::mem::replace(&mut worker.losses, losses) != losses;
    worker.memory.take().filter(|_| !lost).unwrap_or_default()
}

/// Returns the inputs of a reconcile to a revision, as of now.
fn inputs_for(worker: &Reconciler, revision: &Revision) -> ReconcileContext {
    ReconcileContext {
        context: worker.context.clone(),
        owner: worker.owner.clone(),
        resource_recorder: worker.resource_recorder.clone(),
        health_monitor: worker.health_monitor.clone(),
        followed: worker.followed.clone(),
        order: worker.order.clone(),
        rendered_order: worker.order.clone(),
        aim: Aim::Apply,
        revision: revision.clone(),
        newest: revision.clone(),
        record: record_of(&worker.order, revision),
        bytes: OnceLock::new(),
        digest: OnceLock::new(),
        has_new_values: false,
        stop: worker.stop.clone(),
        yield_flag: Some(worker.render_attempts.stop()),
    }
}

/// Publishes to the other Syncs of the repository the objects that an unapplied commit may claim.
async fn tell_unrendered(
    (context, owner, order): (&Context, &SyncName, &ReconcileRequest),
    memory: &SyncMemory,
    revision: Option<&Revision>,
) {
    if let Some(revision) = revision {
        UnrenderedCommit { context, owner, order, revision }.tell(memory.prepared.as_ref()).await;
    }
}

/// Removes from the memory all that does not count for this reconcile.
fn prepare_memory(worker: &mut Reconciler, target: &ReconcileTarget, memory: &mut SyncMemory) {
    if let ReconcileTarget::Apply { revision, .. } = target {
        is_to_hold(worker, revision, memory);
        let limit = attempt_time_of(memory, revision, worker.order.spec_revision);
        worker.render_attempts.begin(worker.context.now(), limit);
    }
    if let ReconcileTarget::Hold { revision, .. } = target {
        // Nothing that a person chose is rolled back.
        memory.rejection_limit = None;
        let limit = attempt_time_of(memory, revision, worker.order.spec_revision);
        worker.render_attempts.begin(worker.context.now(), limit);
    }
    if let ReconcileTarget::Keep { refused, .. } = target {
        worker.render_attempts.begin_none();
        // Nothing newer is tried here, so its retry time does not count.
        memory.refused_commit = None;
        if refused.newer.is_some() && refused.newer != worker.refused {
            // An approval that was given before the refusal does not count.
            memory.consented.clear();
        }
    }
    memory.rerun_failed_hooks |= std::mem::take(&mut worker.rerun_failed_hooks);
    if std::mem::take(&mut worker.retry_refused) {
        memory.refused_commit = None;
    }
    if std::mem::take(&mut worker.retry_failed) {
        memory.retries.clear();
        memory.replacements.clear();
    }
}

/// Returns what tells the objects of a reconcile from others.
fn applied_objects(report: &ReconcileResult) -> Option<Box<str>> {
    let digest = report.digest.as_ref().and_then(|digest| digest.recorded_hash());
    digest
        .map(|digest| digest.to_string().into())
        .or_else(|| Some(report.revision.as_ref()?.to_string().into()))
}

pub(super) fn start_reconcile(worker: &mut Reconciler) {
    let mut memory = recalled(worker);
    let target = target(worker);
    // A commit that waits for something which may come at any moment may claim objects that
    // other Syncs release.
    let lacks = worker.order.refused.as_ref().is_some_and(|reconcile_error| !reconcile_error.permanent);
    let is_held_back = target.as_ref().is_ok_and(is_behind_newest);
    let waiting =
        worker.revision.clone().filter(|newest| lacks || is_held_back || is_put_off(worker, newest));
    let target = match target {
        Ok(target) => target,
        Err(reconcile_error) => {
            let report = ReconcileResult {
                spec_revision: worker.order.spec_revision,
                reconcile_error: Some(reconcile_error),
                hold: worker.order.hold.clone(),
                ..ReconcileResult::default()
            };
            let (context, owner, order) =
                (worker.context.clone(), worker.owner.clone(), worker.order.clone());
            let pass = async move {
                tell_unrendered((&context, &owner, &order), &memory, waiting.as_ref()).await;
                (memory, report, None)
            };
            worker.running_reconcile = Some(pass.boxed());
            return;
        }
    };
    prepare_memory(worker, &target, &mut memory);
    // A verification belongs to the previous revision, and must be over before anything newer
    // is written.
    worker.verify_stop.cancel();
    let verifying = worker.verifying.take();
    worker.stop = CancelFlag::default();
    let inputs = inputs_for(worker, target.revision());
    let (held, answered) = (held(worker).cloned(), worker.answered.clone());
    worker.running_reconcile = Some(
        async move {
            let verified = match verifying {
                Some(verifying) => Some(verifying.await),
                None => None,
            };
            let Some(cluster) = in_a_term(inputs.cluster(), &inputs.stop).await else {
                return (memory, ReconcileResult { stopped: true, ..ReconcileResult::default() }, None);
            };
            let order = Arc::new(ReconcileRequest { cluster, ..ReconcileRequest::clone(&inputs.order) });
            let inputs = ReconcileContext { order: order.clone(), rendered_order: order, ..inputs };
            let of = (&*inputs.context, &inputs.owner, &*inputs.order);
            tell_unrendered(of, &memory, waiting.as_ref()).await;
            let (mut report, kept) = match target {
                ReconcileTarget::Apply { revision, rejected } => {
                    inputs.apply(&mut memory, (revision, rejected), held).await
                }
                ReconcileTarget::Hold { revision, newest } => {
                    apply_chosen(&inputs, &mut memory, (revision, newest), held).await
                }
                ReconcileTarget::Keep { held, refused } => inputs.keep(&mut memory, *held, refused).await,
            };
            report.request = answered;
            report.hold.clone_from(&inputs.order.hold);
            // For the reconcile the object was as desired; only this outcome reports that it
            // was repaired.
            if let Some((id, Some(outcome))) = verified.filter(|(id, _)| !report.outcomes.contains_key(id))
                && (repaired_drift(&outcome).is_some() || outcome == Outcome::Created)
            {
                report.restored.extend((outcome == Outcome::Created).then(|| id.clone()));
                report.outcomes.insert(id, outcome);
            }
            (memory, report, kept)
        }
        .boxed(),
    );
}

pub(super) fn on_reconciled(
    worker: &mut Reconciler,
    (mut memory, mut report, held): FinishedReconcile,
) -> ScheduleEvent {
    worker.running_reconcile = None;
    worker.render_attempts.end(report.stopped);
    if may_be_outdated(worker, &report) {
        memory.refused_commit = None;
        worker.memory = Some(memory);
        if !worker.path_lag.requests_poll() {
            return ScheduleEvent::Reconciled(ReconcileOutcome::RetryAfter(LOOK_FIRST));
        }
        worker.force_poll = true;
        worker.step(ScheduleEvent::Reconciled(ReconcileOutcome::RetryAfter(LOOK_FIRST)));
        return ScheduleEvent::PollRequested;
    }
    report.redact();
    if let Some(HeldRender { revision, order }) = held {
        holds(worker, &revision, &order);
    }
    report.reconcile_error.iter_mut().for_each(|reconcile_error| says_lost(worker, reconcile_error));
    worker.lags.bound_busy(report.reconcile_error.as_mut(), worker.context.now());
    if !report.stopped {
        worker.held.by_window = report.held_by_window.is_some();
    }
    if report.request_of_approval.is_some() || report.held_by_window.is_some() {
        // The time that a person takes is no time of the daemon.
        worker.seen_at = None;
    }
    worker.refused = report.refused.as_ref().and_then(|refused| refused.newer.clone());
    let now = worker.context.now();
    let next =
        memory.next(now, worker.order.valid_spec.timeout).into_iter().chain(bound_lags(worker, &mut report));
    let pass = match (&report.reconcile_error, next.min()) {
        _ if report.stopped => ReconcileOutcome::Stopped,
        (Some(reconcile_error), _) if reconcile_error.permanent || is_waiting(reconcile_error) => {
            ReconcileOutcome::Settled
        }
        (Some(_), _) => ReconcileOutcome::Failed,
        (None, Some(due)) => ReconcileOutcome::RetryAfter(due.saturating_sub(now)),
        (None, None) => ReconcileOutcome::Settled,
    };
    worker.memory = Some(memory);
    if report.reconcile_error.is_some() || worker.refused.is_some() {
        // Withdraw this Sync's claims: they come from an older commit or spec, and no object
        // may be handed over for them.
        worker.context.peers.mark_not_ready(&worker.owner);
        worker.context.peers.invalidate(&worker.owner);
    }
    let applied = !report.stopped
        && report.reconcile_error.is_none()
        && is_applied(&report.outcomes, |id| report.set.as_ref().is_some_and(|set| set.get(id).is_some()));
    if !report.stopped {
        worker.last_applied = report.revision.clone().filter(|_| applied);
        worker.dependencies.healthy_time.note_objects(applied_objects(&report), applied);
    }
    examine(worker, &mut report);
    try_out(worker, &report);
    note_health(worker);
    if !report.stopped {
        worker.unhealthy_gate = report.gate.take();
    }
    worker.memory.iter_mut().for_each(|memory| memory.completed.learn(&report.finished));
    worker.drop_old_identities();
    publish_applied(worker);
    // A revision that is superseded was observed at another time.
    report.took = worker.seen_at.map(clock::since).filter(|_| report.revision == worker.revision);
    if applied && !worker.order.valid_spec.suspend && report.revision == worker.revision {
        let seen = worker.seen_at.take();
        seen.inspect(|at| {
            worker.context.reporting.metrics.commit_to_applied(&worker.owner.to_string(), clock::since(*at))
        });
    }
    if !report.stopped {
        begin_relating(worker);
    }
    worker.record_event(WorkerEvent::Reconciled(Box::new(report)));
    ScheduleEvent::Reconciled(pass)
}
