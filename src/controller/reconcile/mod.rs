//! Runs one reconcile: from a revision to the status, for one Sync.
//!
//! In: a revision, the spec of the Sync, and its memory.
//! Out: a `ReconcileResult`.
//!
//! A reconcile is idempotent and can be interrupted anywhere: the next one starts from the observed
//! state.

pub(crate) mod autoscalers;
pub(crate) mod awaited_resources;
pub(crate) mod crd_changes;
pub(crate) mod decryption_keys;
pub(crate) mod foreign_marks;
pub(crate) mod inventory_scope;
mod lfs_files;
pub(crate) mod missing_permissions;
pub(crate) mod mounts;
mod object_claims;
mod observation;
mod own_files;
pub(crate) mod policy_inputs;
pub(crate) mod prepare;
pub(crate) mod refused_commit;
pub mod remote_bases;
pub(crate) mod render_memory;
pub(crate) mod renderer;
pub(crate) mod revision_gate;
pub(crate) mod rollout;
mod round;
pub(crate) mod substitution_values;
pub(crate) mod trusted_signers;
pub(crate) mod unrendered_commit;
pub(crate) mod webhook_backends;
mod window_gate;

use std::sync::OnceLock;

use super::Context;
use super::credentials::ChartLogin;
use super::memory::SyncMemory;
use super::memory::health_monitor::HealthMonitor;
use super::reconcile_errors::cluster_error;
use super::spec::ValidatedSpec;
use super::status::StatusRecorder;
use super::status::reconcile_result::ReconcileResult;
use crate::adopt::AdoptedFrom;
use crate::api::{HeldRevision, SyncName, WindowOverride};
use crate::cluster::{CancelFlag, Cluster};
use crate::report::ReconcileError;
use crate::source::{Repository, Revision};
use mounts::MountSource;
use object_claims::{names_revision, publish};
use observation::{describe, observe_or_yield, wait_for_new_kinds};
use policy_inputs::gather_policy;
use remote_bases::TrackedBases;
use round::{execute_round, plan_round, record_execution, record_inventory};

/// Most rounds of one reconcile. A new round starts if the last one brought kinds that other
/// objects need.
const MAX_ROUNDS: usize = 4;

/// Aim of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The revision is applied, if it renders completely.
    Apply,
    /// The revision rendered completely before, and is kept.
    Keep {
        /// A newer commit or spec that cannot be applied. While there is one, deletions need
        /// approval.
        refused: Option<Box<str>>,
    },
}

impl Aim {
    /// Returns the newer commit or spec that cannot be applied.
    pub(crate) fn refused(&self) -> Option<&str> {
        match self {
            Self::Apply => None,
            Self::Keep { refused } => refused.as_deref(),
        }
    }
}

/// Inputs of one reconcile, borrowed for its duration.
pub(crate) struct ReconcileContext<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a Cluster,
    /// Status handle of the Sync; `None` for a run without a Sync.
    pub(crate) resource_recorder: Option<&'a StatusRecorder>,
    pub(crate) owner: &'a SyncName,
    pub(crate) valid_spec: &'a ValidatedSpec,
    /// Number of the spec revision.
    pub(crate) spec_revision: u64,
    /// Number of the spec revision with which the revision is rendered: an older one while the
    /// newest is refused.
    pub(crate) rendered_spec_revision: u64,
    pub(crate) aim: Aim,
    /// The revision, as the status names it before it is applied.
    pub(crate) record: HeldRevision,
    /// Memory that its objects take, once known.
    pub(crate) bytes: OnceLock<u64>,
    /// Recorded digest of its objects, once known.
    pub(crate) digest: OnceLock<String>,
    /// The approval that a person gave.
    pub(crate) approved: Option<String>,
    /// The person who gave it, where that is recorded.
    pub(crate) approver: Option<&'a str>,
    /// The override of a closed window that a person gave.
    pub(crate) window_override: Option<&'a WindowOverride>,
    /// The person who holds the Sync at the revision.
    pub(crate) holder: Option<&'a str>,
    /// The Sync to which this one moves its objects, as written in the resource.
    pub(crate) moves_to: Option<&'a str>,
    /// The tool that managed these objects before, if the Sync was adopted from one.
    pub(crate) predecessor: Option<&'a AdoptedFrom>,
    /// Health of the objects.
    pub(crate) health_monitor: &'a HealthMonitor,
    pub(crate) repository: &'a Repository,
    /// Login for the server of the chart.
    pub(crate) chart_login: &'a ChartLogin,
    /// Sources of the mounts.
    pub(crate) mounts: &'a [MountSource],
    /// Remote bases of the Sync.
    pub(crate) followed: &'a TrackedBases,
    pub(crate) revision: &'a Revision,
    /// Newest revision of the repository. It differs from `revision` while the newest commit is
    /// refused or rolled back, and an older one is held.
    pub(crate) newest: &'a Revision,
    /// A person holds the Sync at a revision: it does not follow the newest one.
    pub(crate) is_chosen: bool,
    /// The held revision is rendered with values that are newer than it.
    pub(crate) has_new_values: bool,
    /// A revision is applied only after a person has approved it.
    pub(crate) asks_first: bool,
    pub(crate) stop: &'a CancelFlag,
    /// Ends the reconcile while its commit is not rendered yet; `None` if no other revision is
    /// held.
    pub(crate) yield_flag: Option<&'a CancelFlag>,
}

impl ReconcileContext<'_> {
    /// Reconciles the cluster with the revision.
    ///
    /// # Guarantees
    ///
    /// Nothing is written before the commit has rendered completely and the status names the
    /// revision. Nothing is deleted after an incomplete render.
    ///
    /// # Cancellation
    ///
    /// Setting `stop` ends the reconcile between two writes. Writes that were sent are finished,
    /// and the result is marked as stopped.
    pub(crate) async fn reconcile(&self, memory: &mut SyncMemory) -> ReconcileResult {
        let (order, revision) = (self.spec_revision, Some(self.revision.clone()));
        let mut report = ReconcileResult { spec_revision: order, revision, ..ReconcileResult::default() };
        for _ in 0..MAX_ROUNDS {
            memory.needs_replan = false;
            if let Err(reconcile_error) = self.reconcile_once(memory, &mut report).await {
                report.reconcile_error = Some(reconcile_error);
                return report;
            }
            report.stopped = self.stop.is_cancelled();
            if report.stopped
                || report.deferred
                || !(memory.needs_replan || wait_for_new_kinds(self, memory).await)
            {
                break;
            }
        }
        report
    }

    /// Runs one round.
    async fn reconcile_once(
        &self,
        memory: &mut SyncMemory,
        report: &mut ReconcileResult,
    ) -> Result<(), ReconcileError> {
        // Fetch, render, build the desired set, and observe the cluster.
        let Some((prepared, needed)) = observe_or_yield(self, memory, report).await? else {
            return Ok(());
        };
        let desired = &*prepared.desired;
        // Objects that another cluster lacks may exist in the one of this Sync.
        let place = (self.owner, self.cluster);
        let confirmed = self.context.targets.confirm_observed(place, &needed).await;
        confirmed.map_err(|failure| cluster_error(&failure))?;
        publish(self, &prepared).await?;
        describe(report, &prepared);

        // Decide: policy and plan.
        let mut policy = gather_policy(self, memory, &prepared).await;
        let due = plan_round(self, memory, desired, &mut policy, report).await;

        // Execute, once the status names the revision.
        names_revision(self, &due.plan, report).await?;
        let outcomes = execute_round(self, memory, &prepared, &policy, &due, report).await;

        // Record.
        record_execution(self, memory, &prepared, &policy, due, outcomes, report);
        record_inventory(self, memory, &prepared, needed, report).await;
        Ok(())
    }
}
