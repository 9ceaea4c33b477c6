//! Plan for the deletion of a Sync with its objects.
//!
//! In: the observed objects, the claims of other Syncs, and the objects of this round.
//! Out: prunes in strict reverse order for all objects of ours that no other Sync claims. The
//! deletion of the Sync is the consent, so neither a budget nor an empty render blocks it.
//! Protected objects stay, and an object that another Sync claims is handed over or stays.

use std::collections::{BTreeMap, BTreeSet};

use super::blocking;
use super::{Action, ClaimState, Decision, Hold, Plan, PlanBuilder, Policy, order, prune};
use crate::desired::DesiredSet;
use crate::observed::{InstallationRole, Observed, ObservedSet};
use moorline_core::object::ObjectId;

/// Objects of one round of a deletion.
pub struct DeletionScope<'a> {
    /// True for the objects of this round.
    pub includes: &'a dyn Fn(&ObjectId) -> bool,
    /// Objects whose deletion was forbidden; the permission does not come back by a retry.
    pub forbidden: &'a BTreeSet<ObjectId>,
}

/// Plan of one round of a deletion.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionPlan {
    /// The steps of this round, and what is held.
    pub plan: Plan,
    /// Objects of this round whose deletion was forbidden: they have no step.
    pub forbidden: Vec<ObjectId>,
}

/// Plans one round of the deletion of the objects of the Sync. Objects outside of the round still
/// block the ones that they depend on.
pub fn plan_deletion(observed: &ObservedSet, policy: &Policy, scope: &DeletionScope<'_>) -> DeletionPlan {
    let nothing = DesiredSet::empty();
    let mut decided = PlanBuilder { steps: Vec::new(), held: Vec::new(), kept: Vec::new() };
    let ours: Vec<prune::LiveEntry<'_>> = observed.iter().filter(|(_, seen)| prune::is_ours(seen)).collect();
    for (id, seen) in &ours {
        decided.add((*id).clone(), fate(id, seen, policy), order::phase_wave_of(seen.wave));
    }
    blocking::hold_blocked(&nothing, observed, &ours, &mut decided);
    decided.held.retain(|(id, _)| (scope.includes)(id));
    decided.held.sort_by(|(a, _), (b, _)| a.cmp(b));
    decided.steps.retain(|step| (scope.includes)(&step.1.id));
    let (forbidden, due) =
        decided.steps.into_iter().partition::<Vec<_>, _>(|step| scope.forbidden.contains(&step.1.id));
    let forbidden = forbidden.into_iter().map(|step| step.1.id).collect();
    let (stages, held, kept) = (order::stages(due), decided.held, decided.kept);
    let plan = Plan { stages, held, kept, approval: None, consented: BTreeMap::new() };
    DeletionPlan { plan, forbidden }
}

/// Decides about one object of ours.
fn fate(id: &ObjectId, seen: &Observed, policy: &Policy) -> Decision {
    let hold = match policy.claims.get(id) {
        _ if policy.own_keys.as_ref() == Some(id) || seen.installation_role == InstallationRole::Keys => {
            Hold::DaemonKeys
        }
        _ if seen.deleting => Hold::BeingDeleted(seen.finalizers.clone()),
        _ if seen.reconcile_disabled => Hold::ReconcileDisabled,
        Some(claim) if claim.state == ClaimState::WillAdopt => {
            return Decision::Write(Action::HandOver { to: claim.sync.clone() });
        }
        // It stays, and the other Sync adopts it once this one is deleted.
        Some(claim) if claim.state == ClaimState::CannotAdopt => Hold::ClaimedBy(claim.sync.clone()),
        _ if seen.prune_disabled => Hold::protected_object(seen),
        _ if !seen.applied_by_us => policy.protection_hold(id, seen).unwrap_or(Hold::NotAppliedByUs),
        _ if seen.uid.is_empty() || seen.resource_version.is_empty() => {
            policy.protection_hold(id, seen).unwrap_or(Hold::IdentityUnknown)
        }
        claim => match policy.approval_hold(id, seen).or_else(|| claim?.waiting_hold()) {
            Some(hold) => hold,
            None => {
                return Decision::Write(Action::Prune {
                    uid: seen.uid.clone(),
                    resource_version: seen.resource_version.clone(),
                });
            }
        },
    };
    Decision::Hold(hold)
}

#[cfg(test)]
mod tests {
    use super::super::Claim;
    use super::*;
    use crate::plan::test_fixtures::{id, there};

    const OURS: &str = "/ConfigMap|shop/a";

    fn fate(change: impl FnOnce(&mut Observed), policy: impl FnOnce(&mut Policy)) -> &'static str {
        let mut observed = there([OURS]);
        observed.update(&id(OURS), change);
        let mut rules = Policy::default();
        policy(&mut rules);
        let all = DeletionScope { includes: &|_| true, forbidden: &BTreeSet::new() };
        let plan = plan_deletion(&observed, &rules, &all).plan;
        let step = plan.steps().next().map(|step| step.action.verb());
        step.or(plan.held.first().map(|(_, hold)| hold.reason())).unwrap_or("nothing")
    }

    #[test]
    fn a_round_has_no_step_outside_of_its_scope_or_where_it_was_forbidden() {
        let (a, b, c) = ("/ConfigMap|shop/a", "/ConfigMap|shop/b", "/ConfigMap|shop/c");
        let mut observed = there([a, b, c]);
        observed.update(&id(c), |it| it.deleting = true);
        let planned = |outside: &str, forbidden: &[&str]| {
            let forbidden = forbidden.iter().map(|it| id(it)).collect();
            let scope = DeletionScope { includes: &|it| *it != id(outside), forbidden: &forbidden };
            let DeletionPlan { plan, forbidden } = plan_deletion(&observed, &Policy::default(), &scope);
            let steps: Vec<_> = plan.steps().map(|step| step.id.clone()).collect();
            (steps, plan.held.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), forbidden)
        };
        assert_eq!(planned("/ConfigMap|shop/other", &[]), (vec![id(a), id(b)], vec![id(c)], vec![]));
        assert_eq!(planned(a, &[]), (vec![id(b)], vec![id(c)], vec![]));
        assert_eq!(planned(c, &[b]), (vec![id(a)], vec![], vec![id(b)]));
        assert_eq!(planned(b, &[b]), (vec![id(a)], vec![id(c)], vec![]));
    }

    #[test]
    fn what_others_want_is_not_deleted() {
        let of = |standing| (id(OURS), Claim { sync: "ops/other".into(), state: standing });
        let claim = |is_ready| of(if is_ready { ClaimState::WillAdopt } else { ClaimState::CannotAdopt });
        let behind = |it: &mut Policy| it.claims.extend([of(ClaimState::Possible)]);
        assert_eq!(fate(|_| {}, |_| {}), "prune");
        assert_eq!(fate(|_| {}, |it| it.claims.extend([claim(true)])), "hand over");
        assert_eq!(fate(|_| {}, |it| it.claims.extend([claim(false)])), "ClaimedBy");
        assert_eq!(fate(|_| {}, behind), "PossiblyClaimed");
        let named = |it: &mut Policy| it.claims.extend([of(ClaimState::MoveTarget)]);
        assert_eq!(fate(|_| {}, named), "PossiblyClaimed");
        // No person can approve during the deletion, so the object stays.
        assert_eq!(fate(|_| {}, |it| it.claims.extend([of(ClaimState::Overdue)])), "ClaimOverdue");
        assert_eq!(
            fate(|_| {}, |it| it.claims.extend([of(ClaimState::WithoutRights)])),
            "ClaimedWithoutRights"
        );
        // Neither protection nor a prune annotation keeps an object from the Sync that claims it.
        let protected = |it: &mut Policy| {
            it.protected.insert(id(OURS).group_kind());
        };
        let both = |it: &mut Policy| {
            protected(it);
            it.claims.extend([claim(true)]);
        };
        assert_eq!(fate(|it| it.prune_disabled = true, both), "hand over");
        assert_eq!(fate(|_| {}, protected), "Protected");
        assert_eq!(fate(|it| it.installation_role = InstallationRole::Keys, |_| {}), "DaemonKeys");
        assert_eq!(
            fate(|_| {}, |it| it.guards.extend([(id(OURS), crate::plan::PruneGuard::CascadingDelete)])),
            "Protected"
        );
        // An object that stays in any case is not waited for.
        assert_eq!(fate(|it| it.prune_disabled = true, behind), "PruneDisabled");
        assert_eq!(
            fate(|it| it.reconcile_disabled = true, |it| it.claims.extend([claim(true)])),
            "ReconcileDisabled"
        );
        assert_eq!(fate(|it| it.deleting = true, |it| it.claims.extend([claim(true)])), "BeingDeleted");
    }
}
