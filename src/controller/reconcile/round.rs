//! One round of a reconcile: plans it, executes the plan, and records the outcomes.
//!
//! In: the desired and the observed objects, and the policy of the Sync.
//! Out: the memory and the [`ReconcileResult`], brought up to date, with the outcome of each object
//! and the kinds and namespaces in which the Sync may own objects now.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::inventory_scope::{remaining_watches, scope};
use super::missing_permissions::{missing_permissions, rights};
use super::observation::has_all_kinds;
use super::policy_inputs::note_pauses;
use super::prepare::PreparedRevision;
use super::revision_gate::approval_of_revision;
use super::rollout::{are_to_be_cleared, finish_rollout_if_done, written_ones};
use super::webhook_backends::WebhookBackends;
use super::window_gate::override_of_revision;
use super::{ReconcileContext, ReconcileResult};
use crate::cluster::{Cluster, WatchRequirements, judge_evidence};
use crate::controller::apply::change_cause::cause_of_revision;
use crate::controller::apply::delete_precondition::DeletePrecondition;
use crate::controller::apply::extra_fields::process_extra_fields;
use crate::controller::apply::verify::{enqueue_verification, to_verify};
use crate::controller::apply::{ApplyContext, DeletionLimits, execute};
use crate::controller::chance;
use crate::controller::memory::SyncMemory;
use crate::controller::memory::compare_failures::VerifyMethod;
use crate::controller::memory::field_conflicts::{FieldConflicts, polled};
use crate::controller::memory::pending_namespaces::may_be_missing;
use crate::controller::peers::claims::{Claims, LeftObjects, UnknownRight};
use crate::controller::schedule::Uptime;
use crate::controller::status::events::was_written;
use crate::controller::status::log_lines::{LogSubject, Tone};
use crate::desired::DesiredSet;
use crate::journal::{Entry, Reason};
use crate::object::ObjectId;
use crate::observed::ObservedSet;
use crate::plan::{
    AwaitedKinds, Claim, ClaimState, Deferrals, DuePlan, Outcome, Plan, Policy, Rollout, RolloutGate, plan,
};

/// Delay after the end of a hook before its record in the status is checked.
const CLEAR: Duration = Duration::from_secs(1);

/// Maximum number of bytes of an approval that the journal repeats.
const MAX_APPROVAL_BYTES: usize = 128;

/// Plans a round: decides for every object, and leaves out the steps that are not due. Adds the
/// claims of other Syncs to the policy.
pub(super) async fn plan_round(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    desired: &DesiredSet,
    policy: &mut Policy,
    report: &mut ReconcileResult,
) -> DuePlan {
    judge_evidence(inputs.cluster(), &inputs.owner, desired, &inputs.stop).await;
    let (now, every) = (inputs.context.now(), inputs.context.settings().verify_every);
    inputs.cluster().read_observed(&inputs.owner, |seen| memory.schedule_sound((desired, seen), now, every));
    let deferrals = collect_deferrals(inputs, memory, now);
    let (due, open) = make_plan(inputs, memory, desired, policy, &deferrals).await;
    memory.note_deferred(&due);
    let throttled = due.throttled.len() + enqueue_verification(memory, open, now);
    report.pending = memory.comparing;
    report.kept = due.plan.kept.len() + memory.unverified.len() + throttled;
    (report.approval, memory.consented) = (due.plan.approval.clone(), due.plan.consented.clone());
    report.approved.clone_from(&inputs.order.approved);
    memory.stuck_deletions.see(&due.plan.held, now);
    due
}

/// Returns the retry state of the objects.
fn collect_deferrals(inputs: &ReconcileContext, memory: &mut SyncMemory, now: Uptime) -> Deferrals {
    let registry = &inputs.context.peers;
    let own = &inputs.owner;
    memory.free_released(|other, id| registry.is_gone(own, other) || registry.has_released(own, other, id));
    memory.deferrals(now)
}

/// Returns the due plan and the objects to verify.
async fn make_plan(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    desired: &DesiredSet,
    policy: &mut Policy,
    deferrals: &Deferrals,
) -> (DuePlan, VecDeque<(ObjectId, VerifyMethod)>) {
    loop {
        let decided = |observed: &ObservedSet| {
            policy.claims = weigh_claims(inputs, memory, desired, observed)?;
            let plan = plan(desired, observed, policy);
            let open = to_verify(&plan, observed, inputs.valid_spec().suspend);
            Ok((plan.defer(desired, deferrals), open))
        };
        match inputs.cluster().read_observed(&inputs.owner, decided) {
            Ok(round) => return round,
            Err(open) => inputs.context.peers.query_rights(open).await,
        }
    }
}

/// Returns the claims of other Syncs on objects that are no longer desired; or the patch rights
/// that have to be queried first.
fn weigh_claims(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    desired: &DesiredSet,
    observed: &ObservedSet,
) -> Result<BTreeMap<ObjectId, Claim>, Vec<UnknownRight>> {
    let unwanted = observed.iter().map(|(id, _)| id).filter(|id| desired.get(id).is_none());
    let leaves = LeftObjects {
        left: memory.claim_waits.left(),
        begun: None,
        moves_to: inputs.order.moves_to.as_deref(),
        term: inputs.context.cluster.terms().term_started_at(),
    };
    let Claims { by_object: mut claims, due } =
        inputs.context.peers.claims(&inputs.owner, unwanted, leaves)?;
    let due = due.map(|due| inputs.context.process.uptime_at(due));
    let limit = inputs.context.settings().claim_timeout;
    memory.claim_waits.judge(&mut claims, due, inputs.context.now(), limit);
    Ok(claims)
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
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    policy: &Policy,
    due: &DuePlan,
    report: &mut ReconcileResult,
) -> BTreeMap<ObjectId, Outcome> {
    let desired = &*prepared.desired;
    let cluster = &inputs.cluster().caused_by(cause(inputs, prepared, policy));
    let created = create_namespace(inputs, cluster, &due.plan, desired).await;
    report.restored_namespace = created.filter(|_| policy.was_applied).or(report.restored_namespace.take());
    let field_conflicts = memory.field_conflicts.clone();
    let asked =
        DeletePrecondition::for_spec_revision(inputs.order.spec_revision, inputs.resource_recorder.as_ref());
    let backends = memory.webhook_failures.backends(inputs.context.now());
    let work = ApplyContext {
        cluster,
        contested: Arc::new(policy.contested.clone()),
        numbers: memory.autoscaled_replicas.numbers(),
        deletions: Arc::new(deletion_limits(inputs, memory, policy)),
        ..apply_context(inputs, desired, &field_conflicts, &asked, &backends)
    };
    report.gate = memory.unhealthy_at_rollout.take();
    let mut outcomes = execute_plan(inputs, memory, &work, due, policy.rollout.as_ref()).await;
    report.added = process_extra_fields(&work, inputs.valid_spec(), memory, &mut outcomes).await;
    outcomes
}

/// Returns the cause of the writes of a round.
fn cause(inputs: &ReconcileContext, prepared: &PreparedRevision, policy: &Policy) -> Entry {
    let reason = match inputs.newest.commit == inputs.revision.commit {
        _ if policy.was_applied => Reason::DriftRepaired,
        true => Reason::Commit,
        false => Reason::Rollback,
    };
    let cause = cause_of_revision(&inputs.owner, inputs.valid_spec(), prepared, reason);
    let approval = approval_of_revision(inputs, prepared);
    // The annotation with the name is about one approval only.
    let is_newest = approval.is_some() && approval == inputs.order.approved;
    let approver = inputs.order.approver.as_deref().filter(|_| is_newest).map(str::to_owned);
    let person = inputs.holder().filter(|_| reason == Reason::Rollback).map(str::to_owned);
    let forced = override_of_revision(inputs, prepared).filter(|_| reason == Reason::Commit);
    let (window_override, overrider) = forced.map(|forced| (forced.reason, forced.by)).unzip();
    Entry { approval, approver, person: person.or(overrider), window_override, ..cause }
}

/// Returns the limits on deletions. Some claimed objects are deleted only by approval.
fn deletion_limits(inputs: &ReconcileContext, memory: &SyncMemory, policy: &Policy) -> DeletionLimits {
    let asks = |claim: &Claim| matches!(claim.state, ClaimState::WithoutRights | ClaimState::Overdue);
    let claimed = policy.claims.iter().filter(|(_, claim)| asks(claim)).map(|(id, _)| id.clone()).collect();
    // A longer text is not the hash of anything.
    let approval = policy.approved.clone().filter(|text| text.len() <= MAX_APPROVAL_BYTES);
    let (protected, consented) = (policy.protected.clone(), memory.consented.clone());
    let approver = inputs.order.approver.as_deref().filter(|_| approval.is_some()).map(str::to_owned);
    DeletionLimits { claimed, protected, consented, approval, approver }
}

/// Executes the due steps of a plan.
async fn execute_plan(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    work: &ApplyContext<'_>,
    due: &DuePlan,
    rollout: Option<&Rollout>,
) -> BTreeMap<ObjectId, Outcome> {
    let (now, served) = (inputs.context.now(), inputs.cluster().kinds());
    let mut kinds = AwaitedKinds::new(work.desired, memory.awaited_resources.late(now));
    for (id, outcome) in &due.postponed {
        kinds.record_outcome(id, outcome, || served.get(&id.group_kind()).is_some());
    }
    let awaits = RolloutGate::new(work.desired, rollout);
    let outcomes = execute(work, &due.plan, &due.blocking, awaits, &mut kinds).await;
    memory.awaited_resources.learn(kinds.resources(), inputs.context.now());
    outcomes
}

/// Returns the context for executing a plan.
fn apply_context<'a>(
    inputs: &'a ReconcileContext,
    desired: &'a DesiredSet,
    field_conflicts: &'a FieldConflicts,
    asked: &'a DeletePrecondition<'a>,
    backends: &'a WebhookBackends,
) -> ApplyContext<'a> {
    ApplyContext {
        context: &inputs.context,
        cluster: inputs.cluster(),
        owner: &inputs.owner,
        desired,
        conflicts: inputs.valid_spec().conflicts,
        predecessor: inputs.order.predecessor.as_ref(),
        field_conflicts,
        contested: Arc::default(),
        numbers: Arc::default(),
        deletions: Arc::default(),
        asked,
        backends,
        refused: inputs.aim.refused(),
        stop: &inputs.stop,
    }
}

/// Creates the target namespace, if the Sync asks for that and it may be missing. On a failure
/// the objects in it report the problem. Returns the name if it was created.
async fn create_namespace(
    inputs: &ReconcileContext,
    cluster: &Cluster,
    plan: &Plan,
    desired: &DesiredSet,
) -> Option<Box<str>> {
    let name = &*inputs.valid_spec().target_namespace;
    let needed = inputs.valid_spec().create_namespace
        && inputs.cluster().read_observed(&inputs.owner, |seen| may_be_missing(plan, desired, seen, name));
    if !needed || inputs.context.targets.confirm(&inputs.owner, cluster).await.is_err() {
        return None;
    }
    match cluster.for_reason(Reason::NamespaceCreated).objects().create_namespace(name).await {
        Ok(created) => {
            inputs.context.reporting.lines.end_condition(&inputs.owner, LogSubject::Namespace);
            tracing::info!(sync = %inputs.owner, namespace = name, created, "target namespace ensured");
            created.then(|| name.into())
        }
        Err(failure) => {
            let text = format!("the namespace {name} could not be created: {failure}");
            inputs.context.reporting.lines.log_condition(
                &inputs.owner,
                LogSubject::Namespace,
                Tone::Warning,
                "NamespaceMissing",
                &text,
            );
            None
        }
    }
}

/// Records what the execution of a plan has found.
pub(super) fn record_execution(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    policy: &Policy,
    due: DuePlan,
    outcomes: BTreeMap<ObjectId, Outcome>,
    report: &mut ReconcileResult,
) {
    let desired = &*prepared.desired;
    report.restores(desired, &outcomes, |id| memory.was_deleted(id, policy.was_applied));
    record_outcomes(inputs, memory, prepared, policy.rollout.as_ref(), &outcomes);
    (report.finished, report.tries.next_attempts) = (memory.completed.written(), memory.next_tries());
    report.remarks = memory.field_conflicts.remarks(desired);
    let kinds = inputs.cluster().kinds();
    report.remarks.extend(polled(desired, |kind| kinds.get(kind).is_some_and(|it| !it.watchable)));
    memory.replied(outcomes.keys().cloned(), inputs.context.now());
    let held =
        memory.stuck_deletions.judged(due.plan.held, inputs.context.now(), inputs.valid_spec().timeout);
    report.gate.iter_mut().for_each(|(unwell, _)| unwell.extend(written_ones(&outcomes)));
    report.adds(held.chain(due.postponed).chain(outcomes));
    finish_rollout_if_done(inputs, memory, &policy.rollout, report, prepared.digest.hash);
}

/// Records the kinds and namespaces in which the Sync may own objects now, and the permissions
/// that it lacks there.
pub(super) async fn record_inventory(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    needed: WatchRequirements,
    report: &mut ReconcileResult,
) {
    let (desired, kinds) = (&*prepared.desired, inputs.cluster().kinds());
    let needed = inputs
        .cluster()
        .read_observed(&inputs.owner, |observed| remaining_watches(needed, desired, observed, &kinds));
    memory.inventory_kinds.clone_from(&needed.kinds);
    memory.inventory_namespaces.clone_from(&needed.namespaces);
    let refused = rights(&report.unobserved, &report.outcomes, &inputs.cluster().kinds());
    report.rights = missing_permissions(inputs, memory, desired, prepared.digest.hash, refused).await;
    let scope = scope(&needed);
    if let Some(notebook) = &inputs.context.reporting.notebook {
        notebook.record(scope.clone()).await;
    }
    report.scope = Some(scope);
}

/// Records the outcomes in the memory of the Sync.
fn record_outcomes(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    rollout: Option<&Rollout>,
    outcomes: &BTreeMap<ObjectId, Outcome>,
) {
    let (desired, now) = (&*prepared.desired, inputs.context.now());
    memory.record_outcomes(outcomes, desired, now, chance(), inputs.context.pauses());
    memory.note_tries(outcomes, now, wall_clock());
    let is_new = |outcome: &Outcome| matches!(outcome, Outcome::Created | Outcome::Recreated);
    memory.deleted.retain(|id| !outcomes.get(id).is_some_and(is_new));
    let created = || outcomes.iter().filter(|(_, it)| is_new(it)).map(|(id, _)| id);
    memory.note_departed(outcomes, |id| {
        desired.get(id).is_some()
            || inputs.cluster().read_observed(&inputs.owner, |seen| seen.get(id).is_some())
    });
    memory.completed.restart(created());
    inputs.health_monitor.restart(created());
    memory.contention.learn(outcomes, desired, now);
    memory.wait(inputs.cluster(), &inputs.owner);
    let is_missing =
        !has_all_kinds(inputs, prepared) || !memory.autoscaled_replicas.uncertain_replicas.is_empty();
    memory.schedule_rediscovery(is_missing, now, chance(), inputs.context.pauses());
    note_pauses(inputs, memory);
    let hooks = inputs.health_monitor.hooks();
    inputs.cluster().read_observed(&inputs.owner, |observed| {
        memory.completed.see_hooks(desired, observed, &hooks);
        memory.completed.begin(desired, observed);
    });
    memory.rolled_out.wrote(outcomes.iter().filter(|(_, it)| was_written(it)).map(|(id, _)| id));
    let clears = !inputs.valid_spec().suspend
        && inputs
            .cluster()
            .read_observed(&inputs.owner, |seen| are_to_be_cleared(inputs, desired, memory, rollout, seen));
    memory.hook_cleanup_at = clears.then(|| now + CLEAR);
}

fn wall_clock() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}
