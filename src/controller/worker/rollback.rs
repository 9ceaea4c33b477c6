//! Rolls a commit back to the last healthy one when its objects do not become healthy, if
//! `spec.rollback` asks for that.
//!
//! In: the health of the objects after a reconcile. Out: the revision to apply. A rolled-back
//! revision is recorded in the status, so that a daemon that restarts does not try it again; the
//! record counts until a newer revision is observed.

use std::collections::BTreeSet;

use super::super::memory::{RejectedManifests, SyncMemory};
use super::Reconciler;
use super::signature_check::source_id;
use crate::api::{Reason, SyncStatus};
use crate::controller::status::events::was_written;
use crate::controller::status::reconcile_result::ReconcileResult;
use crate::controller::status::worker_event::WorkerEvent;
use crate::object::ObjectId;
use crate::report;
use crate::source::Revision;

/// Revisions that were healthy, on trial, or rolled back.
#[derive(Default)]
pub(super) struct RollbackState {
    /// The last revision of which all objects were applied and healthy.
    healthy: Option<Revision>,
    /// The revision on trial, whose objects are not healthy yet, with the objects that had failed
    /// before it; these are `None` while they are unknown.
    trial: Option<(Revision, Option<BTreeSet<ObjectId>>)>,
    rejected: Option<RejectedRevision>,
    /// The objects that were refused already while the last healthy revision was applied.
    refused: RejectedManifests,
    /// The record of the status was read.
    restored: bool,
}

/// A revision that was rolled back, its replacement, and the reason.
#[derive(Clone)]
struct RejectedRevision {
    revision: Revision,
    instead: Revision,
    why: String,
}

/// Returns the revision to apply instead of this one, if this one was rolled back.
pub(super) fn rollback_target(worker: &mut Reconciler, revision: &Revision) -> Option<Revision> {
    if !std::mem::replace(&mut worker.rollback.restored, true) {
        restore_trials(worker, revision);
    }
    let is_rejected = worker.rollback.rejected.as_ref().is_some_and(|it| it.revision == *revision);
    if !is_rejected || !worker.order.valid_spec.rollback {
        worker.rollback.rejected = None;
    }
    let rejected = worker.rollback.rejected.clone();
    worker.record_event(WorkerEvent::RolledBack(rejected.as_ref().map(RejectedRevision::to_report)));
    rejected.map(|rejected| rejected.instead)
}

/// Restores the record that an earlier daemon wrote for the same source.
fn restore_trials(worker: &mut Reconciler, newest: &Revision) {
    let status = worker.recorder.status();
    let Some(known) = &status.revision else { return };
    if known.source.as_deref() != Some(&*source_id(&worker.order.valid_spec)) {
        return;
    }
    let tag = known.healthy_tag.as_deref();
    let read = |text: &String| Revision::parse(text, tag, &worker.order.valid_spec.reference);
    worker.rollback.healthy = known.healthy.as_ref().and_then(read);
    if let (Some(instead), Some(rejected)) = (&worker.rollback.healthy, &known.rejected)
        && *rejected == newest.to_string()
    {
        let (revision, instead) = (newest.clone(), instead.clone());
        worker.rollback.rejected = Some(RejectedRevision { why: why(&status, rejected), revision, instead });
    }
}

/// Prepares the trial of a revision: objects that are refused already do not count against it,
/// and objects that it gets refused have some time, if there is a healthy revision to go back
/// to.
pub(super) fn is_to_hold(worker: &mut Reconciler, revision: &Revision, memory: &mut SyncMemory) {
    let healthy = worker.rollback.healthy.as_ref();
    if healthy.is_some() && memory.held() == healthy && healthy != Some(revision) {
        worker.rollback.refused = memory.refused();
    }
    let is_tried = worker.order.valid_spec.rollback
        && healthy.is_some_and(|healthy| !healthy.has_same_files(revision))
        && !worker.recorder.has_applied(revision);
    let valid_spec = &worker.order.valid_spec;
    memory.rejection_limit = is_tried.then(|| valid_spec.health.timeout.unwrap_or(valid_spec.timeout));
}

/// Records the result of a reconcile for the trial: objects that were unhealthy before do not
/// count against the revision, unless it changed them.
pub(super) fn try_out(worker: &mut Reconciler, report: &ReconcileResult) {
    // A revision that a person chose is on no trial.
    let is_tried = worker.order.valid_spec.rollback && worker.order.hold.is_none();
    let Some(revision) = report.revision.as_ref().filter(|_| is_tried) else {
        return;
    };
    if report.stopped
        || report.reconcile_error.is_some()
        || worker.rollback.healthy.as_ref() == Some(revision)
    {
        return;
    }
    match &mut worker.rollback.trial {
        Some((tried, before)) if tried == revision => {
            let written = |id: &ObjectId| report.outcomes.get(id).is_some_and(was_written);
            before.iter_mut().for_each(|before| before.retain(|id| !written(id)));
        }
        trial => {
            // The previous daemon applied it: the objects that had failed by then have to be
            // determined first.
            let is_old = worker.recorder.has_applied(revision);
            *trial = Some((revision.clone(), (!is_old).then(|| worker.health_monitor.unwell().1)));
        }
    }
}

/// True if the revision on trial has just failed and is now rolled back.
pub(super) fn should_roll_back(worker: &mut Reconciler) -> bool {
    let valid_spec = &worker.order.valid_spec;
    let is_held = valid_spec.suspend || worker.order.hold.is_some();
    if !valid_spec.rollback || is_held || worker.rollback.rejected.is_some() {
        return false;
    }
    let Some((revision, before)) = &mut worker.rollback.trial else { return false };
    if worker.revision.as_ref() != Some(&*revision) {
        return false;
    }
    let Some(before) = before else {
        let is_known = worker.health_monitor.summary().is_some_and(|summary| summary.is_known());
        *before = is_known.then(|| worker.health_monitor.unwell().1);
        return false;
    };
    let instead = worker.rollback.healthy.clone().filter(|healthy| !healthy.has_same_files(revision));
    let refused = || worker.memory.as_ref()?.finally_rejected(&worker.rollback.refused);
    let why = worker.health_monitor.failed(before).or_else(refused);
    let (Some(instead), Some(why)) = (instead, why) else { return false };
    let (revision, _) = worker.rollback.trial.take().unwrap_or_else(|| (instead.clone(), None));
    worker.rollback.rejected = Some(RejectedRevision { revision, instead, why });
    true
}

/// Records the revision of which all objects are applied and healthy.
pub(super) fn note_health(worker: &mut Reconciler) {
    let well = worker.health_monitor.summary().is_some_and(|summary| summary.is_healthy());
    if let Some(applied) = worker.last_applied.as_ref().filter(|_| well && worker.rollback.restored) {
        worker.rollback.healthy = Some(applied.clone());
        if worker.rollback.trial.as_ref().is_some_and(|(tried, _)| tried == applied) {
            worker.rollback.trial = None;
        }
    }
}

/// Drops all records: a revision that was healthy in another source says nothing about this
/// one.
pub(super) fn forget_trials(worker: &mut Reconciler) {
    worker.rollback = RollbackState { restored: true, ..RollbackState::default() };
}

impl RejectedRevision {
    fn to_report(&self) -> report::RolledBackRevision {
        report::RolledBackRevision {
            revision: self.revision.to_string(),
            held: self.instead.to_string(),
            why: self.why.clone(),
        }
    }
}

/// Returns the reason of a rollback, from the history in the status.
fn why(status: &SyncStatus, rejected: &str) -> String {
    let result = Reason::RolledBack.to_string();
    let entry = status.history.iter().find(|it| it.revision == rejected && it.result == result);
    entry.map_or_else(|| "its objects did not become healthy".to_owned(), |entry| entry.message.clone())
}
