//! Writes of one round.
//!
//! In: the due steps of a plan, and the progress of the rollout.
//! Out: the outcome of each object; resources that delayed webhooks are remembered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::planning::PlannedRound;
use super::target_namespace::create_namespace;
use super::webhook_backends::WebhookBackends;
use super::{ReconcileContext, ReconcileResult};
use crate::controller::apply::delete_precondition::DeletePrecondition;
use crate::controller::apply::extra_fields::process_extra_fields;
use crate::controller::apply::{ApplyContext, DeletionLimits, execute};
use crate::controller::memory::SyncMemory;
use crate::controller::memory::field_conflicts::FieldConflicts;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::plan::{AwaitedKinds, DuePlan, Hold, Outcome, Rollout, RolloutGate};

/// Result of an execution.
pub(super) struct ExecutedPlan {
    pub(super) outcomes: BTreeMap<ObjectId, Outcome>,
    /// Outcomes of the last attempts of the postponed steps.
    pub(super) postponed: BTreeMap<ObjectId, Outcome>,
    pub(super) held: Vec<(ObjectId, Hold)>,
    pub(super) rollout: Option<Rollout>,
    pub(super) was_applied: bool,
}

/// Executes a plan.
///
/// # Guarantees
///
/// Only the steps of the plan are written. An object is deleted only after the Sync was read
/// once more.
///
/// # Cancellation
///
/// Setting `stop` ends the execution between two writes; writes that were sent are finished.
pub(super) async fn execute_round(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    desired: &DesiredSet,
    planned: PlannedRound,
    report: &mut ReconcileResult,
) -> ExecutedPlan {
    let PlannedRound { due, claimed, contested, protected, rollout, was_applied } = planned;
    let created = create_namespace(inputs, &due.plan, desired).await;
    report.restored_namespace = created.filter(|_| was_applied).or(report.restored_namespace.take());
    let ledger = memory.ledger.clone();
    let asked = DeletePrecondition::for_spec_revision(inputs.spec_revision, inputs.resource_recorder);
    let backends = memory.unreached.backends(inputs.context.now());
    let deletions = Arc::new(DeletionLimits { claimed, protected, consented: memory.consented.clone() });
    let work = ApplyContext {
        contested: Arc::new(contested),
        numbers: memory.scaling.numbers(),
        deletions,
        ..apply_context(inputs, desired, &ledger, &asked, &backends)
    };
    report.gate = memory.unhealthy_at_rollout.take();
    let held = due.plan.held.clone();
    let (mut outcomes, postponed) = execute_plan(inputs, memory, &work, due, rollout.as_ref()).await;
    report.added = process_extra_fields(&work, inputs.wish, memory, &mut outcomes).await;
    ExecutedPlan { outcomes, postponed, held, rollout, was_applied }
}

/// Executes the due steps of a plan. Returns their outcomes, and those of the postponed steps.
async fn execute_plan(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    work: &ApplyContext<'_>,
    due: DuePlan,
    rollout: Option<&Rollout>,
) -> (BTreeMap<ObjectId, Outcome>, BTreeMap<ObjectId, Outcome>) {
    let (now, served) = (inputs.context.now(), inputs.cluster.kinds());
    let mut kinds = AwaitedKinds::new(work.desired, memory.awaited.late(now));
    for (id, outcome) in &due.postponed {
        kinds.record_outcome(id, outcome, || served.get(&id.group_kind()).is_some());
    }
    let awaits = RolloutGate::new(work.desired, rollout);
    let outcomes = execute(work, due.plan, due.blocking, awaits, &mut kinds).await;
    memory.awaited.learn(kinds.resources(), inputs.context.now());
    (outcomes, due.postponed)
}

/// Returns the context for executing a plan.
fn apply_context<'a>(
    inputs: &'a ReconcileContext<'_>,
    desired: &'a DesiredSet,
    ledger: &'a FieldConflicts,
    asked: &'a DeletePrecondition<'a>,
    backends: &'a WebhookBackends,
) -> ApplyContext<'a> {
    ApplyContext {
        context: inputs.context,
        cluster: inputs.cluster,
        owner: inputs.owner,
        desired,
        conflicts: inputs.wish.conflicts,
        predecessor: inputs.predecessor,
        ledger,
        contested: Arc::default(),
        numbers: Arc::default(),
        deletions: Arc::default(),
        asked,
        backends,
        refused: inputs.aim.refused(),
        stop: inputs.stop,
    }
}
