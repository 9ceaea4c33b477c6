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
pub(crate) mod request;
pub(crate) mod revision_gate;
pub(crate) mod rollout;
mod round;
pub(crate) mod substitution_values;
pub(crate) mod trusted_signers;
pub(crate) mod unrendered_commit;
pub(crate) mod webhook_backends;
mod window_gate;

use std::sync::{Arc, OnceLock};

use super::Context;
use super::memory::SyncMemory;
use super::memory::health_monitor::HealthMonitor;
use super::reconcile_errors::cluster_error;
use super::spec::ValidatedSpec;
use super::status::StatusRecorder;
use super::status::reconcile_result::ReconcileResult;
use crate::api::{HeldRevision, SyncName};
use crate::cluster::{CancelFlag, Cluster};
use crate::report::ReconcileError;
use crate::source::Revision;
use object_claims::{names_revision, publish};
use observation::{describe, observe_or_yield, wait_for_new_kinds};
use policy_inputs::gather_policy;
use remote_bases::TrackedBases;
use request::ReconcileRequest;
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

/// Inputs of one reconcile.
#[derive(Clone)]
pub(crate) struct ReconcileContext {
    pub(crate) context: Arc<Context>,
    pub(crate) owner: SyncName,
    /// Status handle of the Sync; `None` for a run without a Sync.
    pub(crate) resource_recorder: Option<StatusRecorder>,
    /// Health of the objects.
    pub(crate) health_monitor: Arc<HealthMonitor>,
    /// Remote bases of the Sync.
    pub(crate) followed: TrackedBases,
    /// The newest request, with the cluster of this term of the Lease.
    pub(crate) order: Arc<ReconcileRequest>,
    /// The request with which the revision is rendered: an older one while the newest is refused.
    pub(crate) rendered_order: Arc<ReconcileRequest>,
    pub(crate) aim: Aim,
    pub(crate) revision: Revision,
    /// Newest revision of the repository. It differs from `revision` while the newest commit is
    /// refused or rolled back, and an older one is held.
    pub(crate) newest: Revision,
    /// The revision, as the status names it before it is applied.
    pub(crate) record: HeldRevision,
    /// Memory that its objects take, once known.
    pub(crate) bytes: OnceLock<u64>,
    /// Recorded digest of its objects, once known.
    pub(crate) digest: OnceLock<String>,
    /// The held revision is rendered with values that are newer than it.
    pub(crate) has_new_values: bool,
    pub(crate) stop: CancelFlag,
    /// Ends the reconcile while its commit is not rendered yet; `None` if no other revision is
    /// held.
    pub(crate) yield_flag: Option<CancelFlag>,
}

impl ReconcileContext {
    /// Returns the cluster in which the objects of the Sync live.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.order.cluster
    }

    /// Returns the spec with which the revision is rendered.
    pub(crate) fn valid_spec(&self) -> &ValidatedSpec {
        &self.rendered_order.valid_spec
    }

    /// Returns the person who holds the Sync at the revision.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.order.hold.as_ref().map(|hold| &*hold.by).filter(|by| !by.is_empty())
    }

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
        let (order, revision) = (self.order.spec_revision, Some(self.revision.clone()));
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
        let place = (&self.owner, self.cluster());
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
