//! Polls the repository, receives revisions that peers have polled, and decides what follows.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::future::FutureExt as _;

use super::super::schedule::{PollResult, ScheduleEvent};
use super::Reconciler;
use super::chart_poll::{ChartPoll, still_trusted};
use super::held_revision::{begins_to_hold, restore_held, says_lost};
use super::mount_poll::{MountPoll, add_mounts};
use super::signature_check::{source_id, trust};
use crate::api::WEBHOOK_REQUEST;
use crate::clock;
use crate::controller::peers::latest_revisions;
use crate::controller::peers::latest_revisions::TimedRevision;
use crate::controller::reconcile::remote_bases::RemoteBaseContext;
use crate::controller::reconcile::request::ReconcileRequest;
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::ValidatedSpec;
use crate::controller::status::StatusRecorder;
use crate::controller::status::revision_change::RevisionChange;
use crate::controller::status::worker_event::WorkerEvent;
use crate::metrics::GitOperation;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Error, Repository, Revision};

/// Result of a poll.
pub(super) struct FinishedPoll {
    found: Result<Revision, ReconcileError>,
    /// The revision that stays in place when the newest one is not accepted.
    held: Option<Revision>,
    /// A remote base refers to another commit now.
    moved: bool,
    /// The revision comes from a poll of another Sync.
    hearsay: bool,
    /// The request that this poll answers.
    request: Option<String>,
    /// Time at which the repository was polled.
    asked: Instant,
}

/// True if this Sync has no access to a repository that others may read, and waiting does not help.
fn is_shut_out(reconcile_error: &ReconcileError) -> bool {
    let is_denied = matches!(
        reconcile_error.cause,
        ErrorCause::RepositoryAccessDenied
            | ErrorCause::RepositoryNotFound
            | ErrorCause::RepositoryUntrusted
            | ErrorCause::ReferenceNotFound
            | ErrorCause::SecretNotAllowed
    );
    let is_distrusted = matches!(
        reconcile_error.cause,
        ErrorCause::Input("SignatureMissing" | "SignerUnknown" | "SignatureInvalid")
    );
    reconcile_error.permanent || is_denied || is_distrusted
}

/// After this time the status reports that the poll waits for a free worker.
const SAYS_THAT_IT_WAITS: Duration = Duration::from_secs(5);

/// Polls the repository, and reports if that has to wait for long.
async fn look(
    repository: &Repository,
    valid_spec: &ValidatedSpec,
    recorder: &StatusRecorder,
    begun: Instant,
) -> Result<Revision, Error> {
    let mut look = pin!(repository.resolve(&valid_spec.reference, begun + valid_spec.timeout));
    if let Ok(polled) = tokio::time::timeout(SAYS_THAT_IT_WAITS, &mut look).await {
        return polled;
    }
    if let Some(waits) = repository.waiting_reason() {
        recorder.record_event(WorkerEvent::Polled {
            found: Err(source_error(waits)),
            source: source_id(valid_spec),
            request: None,
        });
    }
    look.await
}

/// Handles a revision that another Sync of the same repository has polled.
pub(super) fn on_peer_revision(worker: &mut Reconciler) -> Option<ScheduleEvent> {
    let seen = worker.peer_revision.borrow_and_update().clone()?;
    let current = worker.revision.as_ref().map(Revision::of_repository);
    if current.as_ref() == Some(&seen.revision) || worker.order.valid_spec.suspend {
        return None;
    }
    if ChartPoll::of(worker).is_some() || !worker.order.mounts.is_empty() {
        // The version of the chart and the mounts are looked up together with the commit.
        return Some(ScheduleEvent::PollRequested);
    }
    if worker.order.keys.is_some() || worker.order.permission.as_ref().is_some_and(|it| it.is_old()) {
        // Each Sync checks for itself that it trusts the revision, and that its credentials may
        // still be sent.
        return Some(ScheduleEvent::PollRequested);
    }
    worker.path_lag.begin(clock::now());
    worker.context.peers.on_polled(&worker.owner, seen.asked, seen.revision.commit);
    is_new(worker, &seen.revision);
    accept_revision(worker, &seen.revision);
    tell_seen(worker, Ok(seen.revision), None);
    Some(ScheduleEvent::PeerPolled)
}

/// Returns a revision that a peer has polled within half of the interval, unless a poll was
/// requested.
fn known(worker: &Reconciler) -> Option<TimedRevision> {
    if worker.force_poll {
        return None;
    }
    let seen = worker.head.borrow().clone()?;
    (clock::since(seen.at) < worker.order.valid_spec.interval / 2).then_some(seen)
}

pub(super) fn start_poll(worker: &mut Reconciler) {
    let ReconcileRequest { repository, valid_spec, request, permission, home, .. } =
        ReconcileRequest::clone(&worker.order);
    let (known, trust) = (known(worker), trust(worker));
    let hearsay = known.is_some();
    let (followed, current) =
        (worker.followed.clone(), worker.revision.as_ref().map(Revision::of_repository));
    let (chart, mounts) = (ChartPoll::of(worker), MountPoll::all_of(worker));
    let fresh = if worker.force_poll { Duration::ZERO } else { valid_spec.interval / 2 };
    worker.force_poll = false;
    let (context, owner, recorder) = (worker.context.clone(), worker.owner.clone(), worker.recorder.clone());
    worker.running_poll = Some(
        async move {
            let begun = clock::now();
            let asked = known.as_ref().map_or(begun, |known| known.asked);
            if let Some(permission) = permission
                && let Err(reconcile_error) = permission.holds(&home, &owner).await
            {
                let (found, held, moved) = (Err(reconcile_error), None, false);
                return FinishedPoll { found, held, moved, hearsay, request, asked };
            }
            let polled = match known {
                Some(known) => Ok(known.revision),
                None => {
                    let polled = look(&repository, &valid_spec, &recorder, begun).await;
                    context.reporting.metrics.git_operation(
                        GitOperation::Resolve,
                        clock::since(begun),
                        polled.as_ref().err().map(Error::reason),
                    );
                    polled
                }
            };
            let (found, held) = match polled {
                Ok(revision) => trust.check(&repository, revision, begun + valid_spec.timeout).await,
                Err(error) => (Err(error), None),
            };
            let held =
                still_trusted(held, chart.as_ref(), (&context, &owner), begun + valid_spec.timeout).await;
            let mut found = found.map_err(source_error);
            let base_context = RemoteBaseContext::of_sync(&context, &owner, &valid_spec, &followed, fresh);
            let moved = match followed.have_moved(&base_context, begun + valid_spec.timeout).await {
                Ok(moved) => moved,
                Err(reconcile_error) => {
                    // A new revision may not need the base that cannot be reached, and its
                    // render finds that out.
                    if found.as_ref().ok() == current.as_ref() {
                        found = Err(reconcile_error);
                    }
                    false
                }
            };
            if let (Ok(revision), Some(chart)) = (&found, chart) {
                let is_new = current.as_ref() != Some(revision);
                let by = begun + valid_spec.timeout;
                found = chart.add_to(revision, is_new, (&context, &home, &owner), fresh, by).await;
            }
            if let Some(revision) = found.as_ref().ok().filter(|_| !mounts.is_empty()) {
                let (of, by) = ((&*context, &home, &owner), begun + valid_spec.timeout);
                found = add_mounts(mounts, revision.clone(), of, fresh, by).await;
            }
            FinishedPoll { found, held, moved, hearsay, request, asked }
        }
        .boxed(),
    );
}

pub(super) fn on_polled(worker: &mut Reconciler, polled: FinishedPoll) -> ScheduleEvent {
    let FinishedPoll { mut found, held, moved, hearsay, request, asked } = polled;
    worker.running_poll = None;
    match hearsay {
        true => worker.path_lag.begin(clock::now()),
        false if found.is_ok() => worker.path_lag.answered(asked),
        false => {}
    }
    if moved {
        tracing::info!(sync = %worker.owner, "a remote base refers to another commit now");
    }
    let is_known = found.as_ref().is_ok_and(|revision| worker.revision.as_ref() == Some(revision));
    let look = match &found {
        Ok(_) if is_known && !moved => PollResult::Same,
        Ok(_) => PollResult::New,
        Err(_) if held.is_some() => PollResult::FailedWithFallback,
        Err(reconcile_error) if reconcile_error.permanent => PollResult::FailedPermanently,
        Err(_) => PollResult::Failed,
    };
    worker.context.peers.set_shut_out(&worker.owner, found.as_ref().is_err_and(is_shut_out));
    if let Ok(revision) = &found {
        if known(worker).is_none_or(|known| known.revision != revision.of_repository()) {
            latest_revisions::publish(&worker.head, revision, asked);
        }
        worker.context.peers.on_polled(&worker.owner, asked, revision.commit);
        if !is_known {
            is_new(worker, revision);
        }
        accept_revision(worker, revision);
    }
    if let Some(held) = &held {
        accept_revision(worker, held);
    }
    let is_person = request.as_ref().is_some_and(|request| !request.starts_with(WEBHOOK_REQUEST));
    let is_asked =
        is_person && request != worker.answered && !worker.recorder.has_handled(request.as_deref());
    worker.retry_refused |= is_asked || moved;
    if is_asked {
        // A person who requests a reconcile wants everything that has failed to be tried again.
        worker.rerun_failed_hooks = worker.unhealthy_gate.is_some();
        worker.retry_failed = worker.memory.as_ref().is_none_or(|memory| !memory.retries.is_empty());
        if worker.rerun_failed_hooks || worker.retry_failed || worker.refused.is_some() {
            worker.changed_notify.notify_one();
        }
    }
    worker.answered.clone_from(&request);
    if let Err(reconcile_error) = &mut found
        && worker.revision.is_none()
    {
        restore_held(worker);
        says_lost(worker, reconcile_error);
    }
    let has_failed = found.is_err();
    // The request is answered after the objects were tried again, not before.
    let request = request.filter(|_| has_failed || !worker.retry_failed);
    tell_seen(worker, found, request);
    if has_failed && begins_to_hold(worker) {
        worker.step(ScheduleEvent::HoldStarted);
    }
    ScheduleEvent::Polled(look)
}

fn accept_revision(worker: &mut Reconciler, revision: &Revision) {
    (worker.revision, worker.last_accepted) = (Some(revision.clone()), Some(revision.clone()));
}

fn tell_seen(worker: &Reconciler, found: Result<Revision, ReconcileError>, request: Option<String>) {
    worker.record_event(WorkerEvent::Polled { found, source: source_id(&worker.order.valid_spec), request });
}

/// Records the time at which a commit was observed, unless it is already applied, and the
/// previous revision.
fn is_new(worker: &mut Reconciler, revision: &Revision) {
    worker.seen_at = (!worker.recorder.has_applied(revision)).then(clock::now);
    let before = match &worker.revision {
        Some(before) => Some(before.clone()),
        None if worker.is_first => worker
            .recorder
            .last_seen(&source_id(&worker.order.valid_spec), &worker.order.valid_spec.reference),
        None => None,
    };
    worker.is_first = false;
    // Of several successive revisions the first is compared: those in between were never
    // applied.
    worker.previous = worker.previous.take().or(before).filter(|before| before.name == revision.name);
}

/// Starts the comparison with the previous commit: the newest one is reconciled, so there is
/// time for it.
pub(super) fn begin_relating(worker: &mut Reconciler) {
    let (Some(before), Some(now)) = (worker.previous.take(), &worker.revision) else { return };
    if before.commit != now.commit {
        let (before, now) = (before.of_repository(), now.of_repository());
        worker.history_request =
            Some(RevisionChange::find(worker.order.repository.clone(), before, now).boxed());
    }
}

/// Records the relation of a commit to the previous one.
pub(super) fn related(worker: &mut Reconciler, lineage: RevisionChange) {
    worker.history_request = None;
    worker.record_event(WorkerEvent::RevisionChanged(lineage));
}
