//! Starts each reconcile, and handles its result.

use std::time::Duration;

use futures::future::FutureExt as _;

use super::super::memory::SyncMemory;
use super::super::schedule::{ReconcileOutcome, ScheduleEvent, Uptime};
use super::depends_on::is_waiting;
use super::held_revision::{HeldRender, ReconcileTarget};
use super::reconcile_run::ReconcileRun;
use super::yielding_attempt::RenderAttempt;
use super::{ReconcileRequest, Reconciler};
use crate::clock;
use crate::cluster::{CancelFlag, Cluster};
use crate::controller::status::events::repaired_drift;
use crate::controller::status::reconcile_result::ReconcileResult;
use crate::controller::status::worker_event::WorkerEvent;
use crate::plan::{Hold, Outcome};
use crate::report::{ErrorCause, ReconcileError, is_applied};
use crate::source::Revision;

/// Pause before a missing path is looked for again while the Git server has not answered yet.
const LOOK_FIRST: Duration = Duration::from_secs(2);

/// Waits for the Lease and returns the cluster for the writes of one term. Nothing is decided
/// without the Lease; none if the reconcile was cancelled meanwhile.
async fn in_a_term(cluster: &Cluster, stop: &CancelFlag) -> Option<Cluster> {
    tokio::select! {
        biased;
        () = stop.wait_until_cancelled() => None,
        () = cluster.terms().wait_until_leading() => Some(cluster.in_current_term()),
    }
}

impl Reconciler {
    /// Selects the revision to apply now, and the newest one if that was rolled back.
    pub(super) fn select_revision(
        &mut self,
        newest: Revision,
    ) -> Result<(Revision, Option<Revision>), ReconcileError> {
        if let Some(instead) = self.rollback_target(&newest) {
            self.waits_for_nothing();
            self.taken_up = Some(instead.clone());
            return Ok((instead, Some(newest)));
        }
        match (self.waiting_reason(&newest), self.taken_up.clone()) {
            (None, _) => {
                self.taken_up = Some(newest.clone());
                Ok((newest, None))
            }
            // Meanwhile the applied revision is reconciled.
            (Some(_), Some(before)) => Ok((before, None)),
            (Some(trouble), None) => Err(trouble),
        }
    }

    /// True while the path is missing in a revision that may be older than the push of the path.
    fn may_be_outdated(&self, report: &ReconcileResult) -> bool {
        let refused = report.refused.as_ref().and_then(|refused| refused.trouble.as_ref());
        let trouble = report.trouble.as_ref().or(refused);
        let is_missing = trouble.is_some_and(|trouble| trouble.cause == ErrorCause::PathNotFound);
        is_missing && !report.stopped && self.path_lag.is_outdated(clock::now())
    }

    /// Records the kinds that the server does not serve and that are expected to be installed.
    /// Returns the end of the time limit of the first one.
    fn bound_lags(&mut self, report: &mut ReconcileResult) -> Option<Uptime> {
        if report.stopped || report.trouble.is_some() {
            return None;
        }
        let is_unknown = |outcome: &Outcome| matches!(outcome, Outcome::Held(Hold::UnknownKind));
        let unknown = report.outcomes.iter().filter(|(_, outcome)| is_unknown(outcome));
        let unknown = unknown.map(|(id, _)| id.group_kind()).collect();
        let until;
        (report.tries.unserved_kinds, until) = self.lags.bound_unknown(&unknown, self.context.now());
        until
    }

    /// Takes the memory of the previous reconciles.
    fn recalled(&mut self) -> SyncMemory {
        let losses = self.context.losses.of_passes();
        let lost = std::mem::replace(&mut self.losses, losses) != losses;
        self.memory.take().filter(|_| !lost).unwrap_or_default()
    }

    /// Returns everything that a reconcile needs beside its target, as of now.
    fn drive(&self) -> ReconcileRun {
        ReconcileRun {
            context: self.context.clone(),
            owner: self.owner.clone(),
            order: self.order.clone(),
            desk: self.desk.clone(),
            vitals: self.vitals.clone(),
            followed: self.followed.clone(),
            stop: self.stop.clone(),
            gives_way: self.hurry.as_ref().map(|hurry| hurry.stop.clone()).unwrap_or_default(),
        }
    }

    /// Removes from the memory all that does not count for this reconcile.
    fn prepare_memory(&mut self, target: &ReconcileTarget, memory: &mut SyncMemory) {
        if let ReconcileTarget::Apply { revision, .. } = target {
            self.is_to_hold(revision, memory);
            let patience = memory.patience_of(revision, self.order.spec_revision);
            self.hurry = Some(RenderAttempt::new(self.context.now(), patience));
        }
        if let ReconcileTarget::Keep { refused, .. } = target {
            // Nothing newer is tried here, so its retry time does not count.
            memory.refusal = None;
            if refused.newer.is_some() && refused.newer != self.refused {
                // An approval that was given before the refusal does not count.
                memory.consented.clear();
            }
        }
        memory.rerun_failed_hooks |= std::mem::take(&mut self.again);
        if std::mem::take(&mut self.tries_newest) {
            memory.refusal = None;
        }
        if std::mem::take(&mut self.retries) {
            memory.failing.clear();
            memory.replacements.clear();
        }
    }

    pub(super) fn start_reconcile(&mut self) {
        let mut memory = self.recalled();
        let target = self.target();
        // A commit that waits for something which may come at any moment may claim objects that
        // other Syncs release.
        let lacks = self.order.refused.as_ref().is_some_and(|trouble| !trouble.permanent);
        let waiting = self.revision.clone().filter(|newest| lacks || self.is_put_off(newest));
        let target = match target {
            ReconcileTarget::Nothing(trouble) => {
                let report = ReconcileResult {
                    spec_revision: self.order.spec_revision,
                    trouble: Some(trouble),
                    ..ReconcileResult::default()
                };
                let drive = self.drive();
                let pass = async move {
                    if let Some(newest) = &waiting {
                        drive.tell_unrendered(&memory, newest).await;
                    }
                    (memory, report, None)
                };
                self.passing = Some(pass.boxed());
                return;
            }
            target => target,
        };
        self.prepare_memory(&target, &mut memory);
        // A verification belongs to the previous revision, and must be over before anything newer
        // is written.
        self.verify_stop.cancel();
        let verifying = self.verifying.take();
        self.stop = CancelFlag::default();
        let drive = self.drive();
        let (held, answered) = (self.held().cloned(), self.answered.clone());
        self.passing = Some(
            async move {
                let verified = match verifying {
                    Some(verifying) => Some(verifying.await),
                    None => None,
                };
                let Some(cluster) = in_a_term(&drive.order.cluster, &drive.stop).await else {
                    return (memory, ReconcileResult { stopped: true, ..ReconcileResult::default() }, None);
                };
                let drive =
                    ReconcileRun { order: ReconcileRequest { cluster, ..drive.order.clone() }, ..drive };
                if let Some(newest) = &waiting {
                    drive.tell_unrendered(&memory, newest).await;
                }
                let (mut report, kept) = match target {
                    ReconcileTarget::Apply { revision, rejected } => {
                        drive.apply(&mut memory, (revision, rejected), held).await
                    }
                    ReconcileTarget::Keep { held, refused } => drive.keep(&mut memory, *held, refused).await,
                    ReconcileTarget::Nothing(trouble) => {
                        (ReconcileResult { trouble: Some(trouble), ..ReconcileResult::default() }, None)
                    }
                };
                report.request = answered;
                // For the reconcile the object was as desired; only this outcome reports that it
                // was repaired.
                if let Some((id, Some(outcome))) =
                    verified.filter(|(id, _)| !report.outcomes.contains_key(id))
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
        &mut self,
        (mut memory, mut report, held): (SyncMemory, ReconcileResult, Option<HeldRender>),
    ) -> ScheduleEvent {
        (self.passing, self.hurry) = (None, None);
        if self.may_be_outdated(&report) {
            memory.refusal = None;
            self.memory = Some(memory);
            if !self.path_lag.requests_poll() {
                return ScheduleEvent::Reconciled(ReconcileOutcome::RetryAfter(LOOK_FIRST));
            }
            self.nudged = true;
            self.step(ScheduleEvent::Reconciled(ReconcileOutcome::RetryAfter(LOOK_FIRST)));
            return ScheduleEvent::PollRequested;
        }
        report.redact();
        if let Some(HeldRender { revision, order }) = held {
            self.holds(&revision, &order);
        }
        report.trouble.iter_mut().for_each(|trouble| self.says_lost(trouble));
        self.lags.bound_busy(report.trouble.as_mut(), self.context.now());
        self.refused = report.refused.as_ref().and_then(|refused| refused.newer.clone());
        let now = self.context.now();
        let next = memory.next(now, self.order.wish.timeout).into_iter().chain(self.bound_lags(&mut report));
        let pass = match (&report.trouble, next.min()) {
            _ if report.stopped => ReconcileOutcome::Stopped,
            (Some(trouble), _) if trouble.permanent || is_waiting(trouble) => ReconcileOutcome::Settled,
            (Some(_), _) => ReconcileOutcome::Failed,
            (None, Some(due)) => ReconcileOutcome::RetryAfter(due.saturating_sub(now)),
            (None, None) => ReconcileOutcome::Settled,
        };
        self.memory = Some(memory);
        if report.trouble.is_some() || self.refused.is_some() {
            // Withdraw this Sync's claims: they come from an older commit or spec, and no object
            // may be handed over for them.
            self.context.registry.unready(&self.owner);
            self.context.neighbours.invalidate(&self.owner);
        }
        let applied = !report.stopped
            && report.trouble.is_none()
            && is_applied(&report.outcomes, |id| {
                report.set.as_ref().is_some_and(|set| set.get(id).is_some())
            });
        if !report.stopped {
            self.applied = report.revision.clone().filter(|_| applied);
        }
        self.examine(&mut report);
        self.try_out(&report);
        self.note_health();
        if !report.stopped {
            self.gate = report.gate.take();
        }
        self.memory.iter_mut().for_each(|memory| memory.completed.learn(&report.finished));
        self.drop_old_identities();
        self.publish_applied();
        // A revision that is superseded was observed at another time.
        report.took = self.seen_at.map(clock::since).filter(|_| report.revision == self.revision);
        if applied && !self.order.wish.suspend && report.revision == self.revision {
            let seen = self.seen_at.take();
            seen.inspect(|at| {
                self.context.metrics.commit_to_applied(&self.owner.to_string(), clock::since(*at))
            });
        }
        if !report.stopped {
            self.begin_relating();
        }
        self.record_event(WorkerEvent::Reconciled(Box::new(report)));
        ScheduleEvent::Reconciled(pass)
    }
}
