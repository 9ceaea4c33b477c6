//! What is logged and counted of what happened to a Sync, and what its gauges show.
//!
//! In: what happened, and the status that says what is known then. Out: log lines and metrics. Whatever a status says
//! is shown as that says it, so that an alert and the status cannot contradict each other.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Context;
use super::event::repaired;
use super::follow::Told;
use super::pass::Report;
use crate::api::{ConditionType, SyncName, SyncStatus};
use crate::object::ObjectId;
use crate::observed::Drift;
use crate::plan::Outcome;

impl Context {
    /// Logs and counts what happened.
    pub(crate) fn count(&self, sync: &SyncName, told: &Told) {
        let name = sync.to_string();
        match told {
            Told::Seen { found: Ok(revision), .. } => tracing::debug!(%sync, %revision, "seen"),
            Told::Seen { found: Err(trouble), .. } => {
                tracing::warn!(%sync, reason = trouble.reason, "{}", trouble.message);
            }
            Told::Verified(_, Outcome::Kept) => self.metrics.applied(&name, "verified"),
            Told::Verified(id, outcome) => {
                self.metrics.applied(&name, outcome.verb());
                match repaired(outcome) {
                    Some(drift) => self.repaired(sync, &name, id, &drift),
                    None => done(sync, id, outcome),
                }
            }
            Told::Passed(report) => self.passed(sync, &name, report),
            // The status says it, and it may be for long.
            Told::Waits(_) | Told::Rejected(None) => {}
            Told::Rejected(Some(rejected)) => {
                tracing::warn!(%sync, revision = rejected.revision, instead = rejected.instead, "given up: {}", rejected.why);
            }
            Told::Health(summary, ..) => match summary.worst.first() {
                Some((id, health)) if summary.degraded + summary.unknown > 0 => {
                    let why = health.why().unwrap_or_default();
                    tracing::warn!(%sync, object = %id, health = health.word(), "{why}");
                }
                first => {
                    let (objects, waiting) = (summary.objects, summary.unread + summary.progressing);
                    let why = first.and_then(|(_, health)| health.why()).unwrap_or_default();
                    tracing::debug!(%sync, objects, waiting, why, "examined");
                }
            },
            Told::Moved(lineage) => match lineage.news() {
                Some(("Warning", reason, note)) => tracing::warn!(%sync, %reason, "{note}"),
                Some((_, reason, note)) => tracing::info!(%sync, %reason, "{note}"),
                None => tracing::debug!(%sync, before = %lineage.before, now = %lineage.now, "moved on"),
            },
        }
    }

    fn passed(&self, sync: &SyncName, name: &str, report: &Report) {
        if let Some(trouble) = &report.trouble {
            tracing::warn!(%sync, reason = trouble.reason, "{}", trouble.message);
            trouble.problems.iter().skip(1).for_each(|problem| tracing::warn!(%sync, "{problem}"));
        }
        if let Some((trouble, refused)) = report.refusal() {
            let kept = report.revision.as_ref().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(%sync, reason = trouble.reason, %refused, kept, "cannot be applied: {}", trouble.message);
        }
        if !report.rights.is_empty() {
            tracing::warn!(%sync, reason = "RightsMissing", "rights are missing: {}", report.rights.join("; "));
        }
        let (mut failed, mut held) = (0, BTreeMap::<&str, usize>::new());
        for (id, outcome) in &report.outcomes {
            match outcome {
                Outcome::Failed(why) => {
                    failed += 1;
                    tracing::warn!(%sync, object = %id, reason = why.reason, "failed: {}", why.message);
                }
                Outcome::Held(hold) => {
                    *held.entry(hold.reason()).or_default() += 1;
                    tracing::debug!(%sync, object = %id, "held: {hold}");
                }
                Outcome::Pruned { .. } => {
                    self.metrics.pruned(name);
                    tracing::info!(%sync, object = %id, "pruned");
                }
                other => match repaired(other) {
                    Some(drift) => self.repaired(sync, name, id, &drift),
                    None => done(sync, id, other),
                },
            }
            self.metrics.applied(name, outcome.verb());
        }
        if report.trouble.is_some() || report.stopped {
            // What was done counts, but it is not all that there is to say.
            return;
        }
        self.metrics.all_holds(name, held);
        let revision = report.revision.as_ref().map(ToString::to_string).unwrap_or_default();
        if report.outcomes.is_empty() {
            tracing::debug!(%sync, revision, "nothing to do");
        } else {
            tracing::info!(%sync, revision, objects = report.desired, kept = report.kept, failed, "passed");
        }
    }

    fn repaired(&self, sync: &SyncName, name: &str, id: &ObjectId, drift: &Drift) {
        let manager = drift.manager.as_deref().unwrap_or_default();
        self.metrics.drift_repaired(name, manager);
        let fields = drift.fields.join(", ");
        let changed_at = drift.time.as_deref().unwrap_or_default();
        tracing::info!(%sync, object = %id, manager, changed_at, fields, "repaired");
    }

    /// Shows what the status of a Sync says; the repository had nothing newer at that time.
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

/// Logs what was done to an object; of one that was somebody else's, whose.
fn done(sync: &SyncName, id: &ObjectId, outcome: &Outcome) {
    match outcome {
        Outcome::Adopted(managers) if !managers.is_empty() => {
            tracing::info!(%sync, object = %id, managers = managers.join(", "), "adopted");
        }
        outcome => tracing::info!(%sync, object = %id, "{}", outcome.verb()),
    }
}
