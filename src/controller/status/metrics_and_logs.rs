//! Log lines and metrics of a Sync: counts its events, and sets gauges from its status.
//!
//! In: events, and the status after them. Out: log lines and metrics. Gauges are derived from the
//! status, so that an alert and the status cannot contradict each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::board::Board;
use super::events::Allowances;
use super::events::repaired_drift;
use super::lease_record::LeaseRecord;
use super::log_lines::{Lines, LogSubject, Tone};
use super::reconcile_result::ReconcileResult;
use super::worker_event::WorkerEvent;
use crate::api::{ConditionType, SyncName, SyncStatus};
use crate::cluster::Cluster;
use crate::controller::live_views::HeldBackSyncs;
use crate::controller::notifications::NotificationCenter;
use crate::grammar;
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::observed::Drift;
use crate::plan::{Failure, Outcome};
use crate::report::ReconcileError;
use crate::serve::DaemonHealth;

/// Events of one namespace: the burst, and the rate in a second. Hundreds of Syncs may be created
/// at once, and their statuses say the same.
const EVENTS: (u32, u32) = (50, 5);

/// Channels through which the Syncs of a daemon report.
pub struct Reporting {
    /// The cluster, in which statuses and Events are written.
    pub(super) cluster: Cluster,
    /// Counters and gauges for Prometheus.
    pub metrics: Metrics,
    /// Liveness and readiness of this daemon.
    pub health: DaemonHealth,
    /// Data of the status page, for all Syncs.
    pub board: Board,
    /// The Lease that this daemon holds, as namespace/name.
    pub(in crate::controller) held_by: Option<String>,
    /// Record in the Lease of the scope of a run without a Sync resource, if it is kept.
    pub(in crate::controller) notebook: Option<Arc<LeaseRecord>>,
    /// Log lines that were written for conditions that last, so that each is written once.
    pub(in crate::controller) lines: Lines,
    /// Budget of Kubernetes Events, by namespace.
    pub(in crate::controller) events: Allowances,
    /// The Notifiers, and the way to them.
    pub(in crate::controller) notifications: NotificationCenter,
    /// Syncs that take up no new revision, for viewers of their plans. Written by `resource/`.
    pub(in crate::controller) held_back: HeldBackSyncs,
}

impl Reporting {
    /// Creates the state, with no Sync in it.
    pub(in crate::controller) fn new(
        cluster: Cluster,
        (metrics, health, board): (Metrics, DaemonHealth, Board),
        (held_by, notebook): (Option<String>, Option<Arc<LeaseRecord>>),
        notifications: NotificationCenter,
    ) -> Self {
        let (lines, events) = (Lines::new(), Allowances::new(EVENTS));
        let held_back = HeldBackSyncs::default();
        Self { cluster, metrics, health, board, held_by, notebook, lines, events, notifications, held_back }
    }

    /// Logs and counts an event.
    pub(crate) fn count(&self, sync: &SyncName, event: &WorkerEvent) {
        let name = sync.to_string();
        match event {
            WorkerEvent::Polled { found: Ok(revision), .. } => {
                self.lines.end_condition(sync, LogSubject::Source);
                tracing::debug!(%sync, %revision, "polled");
            }
            WorkerEvent::Polled { found: Err(reconcile_error), .. } => {
                self.troubled(sync, LogSubject::Source, reconcile_error)
            }
            WorkerEvent::Verified(_, Outcome::Kept) => self.metrics.applied(&name, "verified"),
            WorkerEvent::Verified(id, Outcome::Failed(why)) => {
                self.metrics.applied(&name, "failed");
                self.failed(sync, id, why);
            }
            WorkerEvent::Verified(id, outcome) => {
                self.metrics.applied(&name, outcome.verb());
                match repaired_drift(outcome) {
                    Some(drift) => self.repaired(sync, &name, id, &drift),
                    None => done(sync, id, outcome),
                }
            }
            WorkerEvent::Reconciled(report) => self.passed(sync, &name, report),
            // The status has it, and it may last.
            WorkerEvent::Waiting(_) | WorkerEvent::RolledBack(None) => {}
            WorkerEvent::RolledBack(Some(rejected)) => {
                tracing::warn!(%sync, revision = rejected.revision, instead = rejected.held, "rolled back: {}", rejected.why);
            }
            WorkerEvent::HealthChanged(summary, ..) => match summary.worst.first() {
                Some((id, health)) if summary.degraded + summary.unknown > 0 => {
                    let text = format!("{id}: {}", health.message().unwrap_or_default());
                    self.lines.log_condition(sync, LogSubject::Health, Tone::Warning, health.name(), &text);
                }
                first => {
                    self.lines.end_condition(sync, LogSubject::Health);
                    let (objects, waiting) = (summary.objects, summary.unread + summary.progressing);
                    let why = first.and_then(|(_, health)| health.message()).unwrap_or_default();
                    tracing::debug!(%sync, objects, waiting, why, "health checked");
                }
            },
            WorkerEvent::RevisionChanged(lineage) => match lineage.news() {
                Some(("Warning", reason, note)) => tracing::warn!(%sync, %reason, "{note}"),
                Some((_, reason, note)) => tracing::info!(%sync, %reason, "{note}"),
                None => tracing::debug!(%sync, before = %lineage.before, now = %lineage.now, "fast-forward"),
            },
        }
    }

    fn passed(&self, sync: &SyncName, name: &str, report: &ReconcileResult) {
        self.pass_as_a_whole(sync, report);
        let (mut failed, mut held) = (BTreeSet::new(), BTreeMap::<&str, usize>::new());
        for (id, outcome) in &report.outcomes {
            match outcome {
                Outcome::Failed(why) => {
                    failed.insert(id);
                    // One line names all missing permissions.
                    match why.is_forbidden() && !report.rights.is_empty() {
                        true => {
                            tracing::debug!(%sync, object = %id, reason = why.reason.as_str(), "failed: {}", why.message)
                        }
                        false => self.failed(sync, id, why),
                    }
                }
                Outcome::Held(hold) => {
                    *held.entry(hold.reason()).or_default() += 1;
                    tracing::debug!(%sync, object = %id, "held: {hold}");
                }
                Outcome::Pruned { .. } => {
                    self.metrics.pruned(name);
                    tracing::info!(%sync, object = %id, "pruned");
                }
                other => match repaired_drift(other) {
                    Some(drift) => self.repaired(sync, name, id, &drift),
                    None => done(sync, id, other),
                },
            }
            self.metrics.applied(name, outcome.verb());
        }
        if report.reconcile_error.is_some() || report.stopped {
            // The changes count, but the result is not complete.
            return;
        }
        self.lines.only_these_fail(sync, &failed);
        self.metrics.all_held_objects(name, held);
        let failed = failed.len();
        let revision = report.revision.as_ref().map(ToString::to_string).unwrap_or_default();
        let is_done = |outcome: &Outcome| !matches!(outcome, Outcome::Failed(_) | Outcome::Held(_));
        if report.outcomes.is_empty() {
            tracing::debug!(%sync, revision, "nothing to do");
        } else if !report.outcomes.values().any(is_done) {
            let (objects, held) =
                (grammar::counted(report.desired, "object"), report.outcomes.len() - failed);
            let text = format!("{revision}: nothing changed; {objects}, {held} held, {failed} failed");
            self.lines.log_condition(sync, LogSubject::Result, Tone::Normal, "Unchanged", &text);
        } else {
            self.lines.end_condition(sync, LogSubject::Result);
            tracing::info!(%sync, revision, objects = report.desired, kept = report.kept, failed, "reconciled");
        }
    }

    /// Logs the errors of a reconcile as a whole, and missing permissions.
    fn pass_as_a_whole(&self, sync: &SyncName, report: &ReconcileResult) {
        if let Some(reconcile_error) = &report.reconcile_error {
            self.troubled(sync, LogSubject::Pass, reconcile_error);
        }
        if let Some((reconcile_error, refused)) = report.refusal() {
            let kept = report.revision.as_ref().map(ToString::to_string).unwrap_or_default();
            let text = format!(
                "{refused} cannot be applied, and {kept} stays applied: {}",
                with_problems(reconcile_error)
            );
            self.lines.log_condition(
                sync,
                LogSubject::Refusal,
                tone(reconcile_error),
                reconcile_error.reason(),
                &text,
            );
        }
        if !report.rights.is_empty() {
            let text = format!("permissions are missing: {}", report.rights.join("; "));
            self.lines.log_condition(sync, LogSubject::Rights, Tone::Warning, "RightsMissing", &text);
        }
        if report.reconcile_error.is_some() || report.stopped {
            return;
        }
        self.lines.end_condition(sync, LogSubject::Pass);
        if report.refusal().is_none() {
            self.lines.end_condition(sync, LogSubject::Refusal);
        }
        if report.rights.is_empty() {
            self.lines.end_condition(sync, LogSubject::Rights);
        }
    }

    fn troubled(&self, sync: &SyncName, about: LogSubject<'_>, reconcile_error: &ReconcileError) {
        self.lines.log_condition(
            sync,
            about,
            tone(reconcile_error),
            reconcile_error.reason(),
            &with_problems(reconcile_error),
        );
    }

    fn failed(&self, sync: &SyncName, id: &ObjectId, why: &Failure) {
        self.lines.log_condition(
            sync,
            LogSubject::Object(id),
            Tone::Warning,
            why.reason.as_str(),
            &format!("failed: {}", why.message),
        );
    }

    fn repaired(&self, sync: &SyncName, name: &str, id: &ObjectId, drift: &Drift) {
        let manager = drift.manager.as_deref().unwrap_or_default();
        self.metrics.drift_repaired(name, manager);
        let fields = drift.fields.join(", ");
        let changed_at = drift.time.as_deref().unwrap_or_default();
        tracing::info!(%sync, object = %id, manager, changed_at, fields, "repaired");
    }

    /// Sets the gauges from the status of a Sync; `current` is the time at which the repository had
    /// no newer revision.
    pub(crate) fn show(&self, sync: &SyncName, status: &SyncStatus, current: Option<&Time>) {
        let name = sync.to_string();
        let is = |type_: ConditionType| {
            let type_ = type_.to_string();
            status.conditions.iter().any(|known| known.type_ == type_ && known.status == "True")
        };
        let is_ready = is(ConditionType::Ready);
        self.metrics.ready(&name, is_ready);
        self.metrics.healthy(&name, is(ConditionType::Healthy));
        if let Some(applied) = status.revision.as_ref().and_then(|revision| revision.applied.as_ref()) {
            self.metrics.revision(&name, applied);
        }
        if let Some(counts) = status.objects {
            let states = [
                ("desired", counts.desired),
                ("applied", counts.applied),
                ("held", counts.held),
                ("failed", counts.failed),
                ("drifted", counts.drifted),
                ("pruned", counts.pruned),
            ];
            states.iter().for_each(|(state, count)| self.metrics.objects(&name, state, *count));
        }
        if let Some(at) = current.filter(|_| is_ready) {
            self.metrics.last_success(&name, at.0.as_second());
        }
    }
}

/// Returns the tone of an error; a Sync that waits for another one, or for the server, continues
/// without a person.
fn tone(reconcile_error: &ReconcileError) -> Tone {
    match reconcile_error.cause.resolves_itself() {
        true => Tone::Normal,
        false => Tone::Warning,
    }
}

/// Returns the message, followed by all problems that it does not contain.
fn with_problems(reconcile_error: &ReconcileError) -> String {
    let more = reconcile_error.problems.iter().skip(1).map(|problem| format!("; {problem}"));
    std::iter::once(reconcile_error.message.clone()).chain(more).collect()
}

/// Logs the change of an object, with the previous managers of an adopted one.
fn done(sync: &SyncName, id: &ObjectId, outcome: &Outcome) {
    match outcome {
        Outcome::Adopted(managers) if !managers.is_empty() => {
            tracing::info!(%sync, object = %id, managers = managers.join(", "), "adopted");
        }
        outcome => tracing::info!(%sync, object = %id, "{}", outcome.verb()),
    }
}
