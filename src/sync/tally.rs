//! What is logged and counted of what happened to a Sync.

use super::Context;
use super::follow::Told;
use super::pass::Report;
use crate::api::SyncName;
use crate::plan::{Change, Outcome};

impl Context {
    /// Logs and counts what happened.
    pub(crate) fn count(&self, sync: &SyncName, told: &Told) {
        let name = sync.to_string();
        match told {
            Told::Seen(Ok(revision), _) => tracing::debug!(%sync, %revision, "seen"),
            Told::Seen(Err(trouble), _) => {
                tracing::warn!(%sync, reason = trouble.reason, "{}", trouble.message);
            }
            Told::Verified(_, Outcome::Kept) => self.metrics.applied(&name, "verified"),
            Told::Verified(id, outcome) => {
                self.metrics.applied(&name, outcome.verb());
                tracing::info!(%sync, object = %id, "{}", outcome.verb());
            }
            Told::Passed(report) => self.passed(sync, &name, report),
        }
    }

    fn passed(&self, sync: &SyncName, name: &str, report: &Report) {
        if let Some(trouble) = &report.trouble {
            tracing::warn!(%sync, reason = trouble.reason, "{}", trouble.message);
            trouble.problems.iter().skip(1).for_each(|problem| tracing::warn!(%sync, "{problem}"));
            self.metrics.ready(name, false);
            return;
        }
        if !report.rights.is_empty() {
            tracing::warn!(%sync, reason = "RightsMissing", "rights are missing: {}", report.rights.join("; "));
        }
        let (mut failed, mut held) = (0, std::collections::BTreeMap::<&str, usize>::new());
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
                Outcome::Updated(Change::Drifted(drift)) => {
                    let manager = drift.manager.as_deref().unwrap_or_default();
                    self.metrics.drift_repaired(name, manager);
                    let fields = drift.fields.join(", ");
                    let changed_at = drift.time.as_deref().unwrap_or_default();
                    tracing::info!(%sync, object = %id, manager, changed_at, fields, "repaired");
                }
                Outcome::Pruned { .. } => {
                    self.metrics.pruned(name);
                    tracing::info!(%sync, object = %id, "pruned");
                }
                other => tracing::info!(%sync, object = %id, "{}", other.verb()),
            }
            self.metrics.applied(name, outcome.verb());
        }
        let revision = report.revision.as_ref().map(ToString::to_string).unwrap_or_default();
        self.metrics.objects(name, "desired", report.desired);
        self.metrics.objects(name, "failed", failed);
        self.metrics.objects(name, "held", held.values().sum());
        self.metrics.all_holds(name, held);
        self.metrics.revision(name, &revision);
        self.metrics.ready(name, failed == 0);
        if failed == 0 {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            self.metrics.last_success(name, i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        }
        if report.outcomes.is_empty() {
            tracing::debug!(%sync, revision, "nothing to do");
        } else {
            tracing::info!(%sync, revision, objects = report.desired, kept = report.kept, failed, "passed");
        }
    }
}
