//! Planning step of a reconcile.
//!
//! In: the desired and the observed objects, and the policy of the Sync.
//! Out: the steps that are due, with the claims of other Syncs weighed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::policy_inputs::build_policy;
use super::prepare::PreparedRevision;
use super::rollout::begin_rollout;
use super::{ReconcileContext, ReconcileResult};
use crate::controller::apply::verify::{enqueue_verification, to_verify};
use crate::controller::memory::SyncMemory;
use crate::controller::memory::compare_failures::VerifyMethod;
use crate::controller::peers::claims::{Claims, LeftObjects, UnknownRight};
use crate::controller::schedule::Uptime;
use crate::desired::DesiredSet;
use crate::object::{GroupKind, ObjectId};
use crate::observed::ObservedSet;
use crate::plan::{Claim, ClaimState, Contest, Deferrals, DuePlan, Plan, Policy, Rollout, plan};

/// The plan of a round, and the parts of its policy that the execution needs.
pub(super) struct PlannedRound {
    pub(super) due: DuePlan,
    /// Claimed objects that are pruned only by approval.
    pub(super) claimed: BTreeSet<ObjectId>,
    pub(super) contested: BTreeMap<ObjectId, Contest>,
    pub(super) protected: BTreeSet<GroupKind>,
    pub(super) rollout: Option<Rollout>,
    pub(super) was_applied: bool,
}

/// Plans a round: decides for every object, and leaves out the steps that are not due.
pub(super) async fn plan_round(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    report: &mut ReconcileResult,
) -> PlannedRound {
    let (desired, rollout) = (&*prepared.desired, begin_rollout(inputs, memory, prepared));
    let policy = build_policy(inputs, memory, rollout.clone());
    let (contested, was_applied) = (policy.contested.clone(), policy.was_applied);
    let protected = policy.protected.clone();
    let now = inputs.context.now();
    let deferrals = collect_deferrals(inputs, memory, now);
    let (due, open, claimed) = make_plan(inputs, memory, desired, policy, &deferrals).await;
    memory.note_deferred(&due);
    let throttled = due.throttled.len() + enqueue_verification(memory, open, now);
    report.pending = memory.comparing;
    report.kept = due.plan.kept.len() + memory.unverified.len() + throttled;
    (report.approval, memory.consented) = (due.plan.approval.clone(), due.plan.consented.clone());
    report.approved.clone_from(&inputs.approved);
    memory.leaving.see(&due.plan.held, now);
    PlannedRound { due, claimed, contested, protected, rollout, was_applied }
}

/// Returns the retry state of the objects.
fn collect_deferrals(inputs: &ReconcileContext<'_>, memory: &mut SyncMemory, now: Uptime) -> Deferrals {
    let registry = &inputs.context.peers;
    memory.free_released(|other, id| registry.is_gone(other) || registry.has_released(other, id));
    memory.deferrals(now)
}

/// Returns the due plan, the objects to verify, and the claimed objects that may be pruned by
/// approval.
async fn make_plan(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    desired: &DesiredSet,
    policy: Policy,
    deferrals: &Deferrals,
) -> (DuePlan, VecDeque<(ObjectId, VerifyMethod)>, BTreeSet<ObjectId>) {
    loop {
        let decided = |observed: &ObservedSet| {
            let (plan, claimed) = decide(inputs, memory, desired, observed, policy.clone())?;
            let open = to_verify(&plan, observed, inputs.wish.suspend);
            Ok((plan.defer(desired, deferrals), open, claimed))
        };
        match inputs.cluster.read_observed(inputs.owner, decided) {
            Ok(round) => return round,
            Err(open) => inputs.context.peers.learn_rights(open).await,
        }
    }
}

/// Returns the plan and the claimed objects about which a person decides; or the patch rights
/// that have to be queried first.
fn decide(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    desired: &DesiredSet,
    observed: &ObservedSet,
    policy: Policy,
) -> Result<(Plan, BTreeSet<ObjectId>), Vec<UnknownRight>> {
    let unwanted = observed.iter().map(|(id, _)| id).filter(|id| desired.get(id).is_none());
    let leaves = LeftObjects {
        left: memory.claim_waits.left(),
        begun: None,
        moves_to: inputs.moves_to,
        term: inputs.context.cluster.terms().term_started_at(),
    };
    let Claims { by_object: mut claims, due } =
        inputs.context.peers.claims(inputs.owner, unwanted, leaves)?;
    let due = due.map(|due| due.saturating_duration_since(inputs.context.lifetime.began));
    let limit = inputs.context.settings().claim_timeout;
    memory.claim_waits.judge(&mut claims, due, inputs.context.now(), limit);
    let asks = |claim: &Claim| matches!(claim.state, ClaimState::WithoutRights | ClaimState::Overdue);
    let claimed = claims.iter().filter(|(_, claim)| asks(claim)).map(|(id, _)| id.clone()).collect();
    Ok((plan(desired, observed, &Policy { claims, ..policy }), claimed))
}
