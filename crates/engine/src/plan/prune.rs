//! Pruning: decisions about live objects that are no longer desired.
//!
//! A deletion cannot be undone. An object is pruned only if it is certain that we own it, that it
//! is the object that we applied, and that its absence from Git is intended; otherwise it is held,
//! and the reason names the missing evidence.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::blocking;
use super::order::phase_wave_of;
use super::repair_policy::pause_end;
use super::{Action, ClaimState, Decision, Hold, PlanBuilder, Policy, Replacement};
use crate::desired::DesiredSet;
use crate::observed::{InstallationRole, Observed, ObservedSet, Ownership};
use moorline_core::object::{GroupKind, ObjectId};

/// Number of hex digits of an approval hash.
const APPROVAL_DIGITS: usize = 16;

/// A live object.
pub(super) type LiveEntry<'a> = (&'a ObjectId, &'a Observed);

/// Requested and given approval.
#[derive(Debug, Default)]
pub(super) struct Approval {
    /// The hash that would approve the pending prunes.
    pub(super) asked: Option<String>,
    /// The approved objects, by uid.
    pub(super) consented: BTreeMap<ObjectId, Box<str>>,
}

/// Adds a decision for every object of ours that is no longer desired.
pub(super) fn decide(
    desired: &DesiredSet,
    observed: &ObservedSet,
    policy: &Policy,
    (unwanted, replaced): (&[LiveEntry<'_>], &BTreeMap<&ObjectId, &Replacement>),
    decided: &mut PlanBuilder,
) -> Approval {
    let ours: Vec<LiveEntry<'_>> = unwanted.iter().copied().filter(|(_, seen)| is_ours(seen)).collect();
    if ours.is_empty() && replaced.is_empty() {
        return Approval::default();
    }
    let world = PruneContext::new(desired, observed, policy);
    // Objects that are handed over, or already counted under their desired id.
    let (mut candidates, mut elsewhere) = (Vec::new(), 0);
    for (id, seen) in ours {
        match world.missing_proof(id, seen) {
            Some(decision) => {
                let uncounted = seen.proven
                    && matches!(decision, Decision::Write(_) | Decision::Hold(Hold::DuplicateOf(_)));
                elsewhere += usize::from(uncounted);
                decided.add(id.clone(), decision, phase_wave_of(seen.wave));
            }
            None => candidates.push((id, seen)),
        }
    }
    candidates = world.keep_occupied(candidates, decided);
    let (protected, prunes): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|(id, seen)| policy.approval_hold(id, seen).is_some());
    let (count, owned) = (prunes.len(), owned(observed, decided) - elsewhere);
    let over_budget = policy.budget.is_exceeded(count, owned);
    // The approval hash covers only the prunes that need approval. Others must not invalidate it,
    // and neither must the approved ones that are already gone.
    let asks = over_budget || policy.refused_newer.is_some();
    let waiting: Vec<LiveEntry<'_>> = prunes.iter().filter(|_| asks).chain(&protected).copied().collect();
    let is_granted =
        |id: &ObjectId, uid: &str| policy.approved_objects.get(id).is_some_and(|it| **it == *uid);
    let open: Vec<LiveEntry<'_>> =
        waiting.into_iter().filter(|(id, seen)| !is_granted(id, &seen.uid)).collect();
    let (granted_replaced, open_replaced): (Vec<_>, Vec<_>) =
        replaced.iter().map(|(id, it)| (*id, &*it.uid)).partition(|(id, uid)| is_granted(id, uid));
    let asked = approval(&open, &open_replaced, policy.refused_newer.as_deref());
    let approved = policy.approved.as_deref() == Some(asked.as_str());
    // An approval stays valid while another hold delays the prune.
    let granted = unwanted.iter().filter(|(id, seen)| is_granted(id, &seen.uid));
    let granted = granted.chain(open.iter().filter(|_| approved)).map(|(id, seen)| (*id, &*seen.uid));
    let granted = granted.chain(granted_replaced).chain(open_replaced.iter().filter(|_| approved).copied());
    let consented: BTreeMap<ObjectId, Box<str>> = granted.map(|(id, uid)| (id.clone(), uid.into())).collect();
    let waits = match &policy.refused_newer {
        Some(newer) => Hold::NewerRefused(newer.clone()),
        None => Hold::PruneBudgetExceeded { prunes: count, owned },
    };
    for (entries, needs_approval, hold) in [(prunes, asks, waits), (protected, true, Hold::Protected)] {
        for (id, seen) in entries {
            let decision = match needs_approval && !consented.contains_key(id) {
                true => Decision::Hold(policy.approval_hold(id, seen).unwrap_or_else(|| hold.clone())),
                false => Decision::Write(Action::Prune {
                    uid: seen.uid.clone(),
                    resource_version: seen.resource_version.clone(),
                }),
            };
            decided.add(id.clone(), decision, phase_wave_of(seen.wave));
        }
    }
    let asks = !(open.is_empty() && open_replaced.is_empty() || approved);
    Approval { asked: asks.then_some(asked), consented }
}

/// True if the object carries our identity and no other object controls it. Any other object with
/// our label is a copy or a child, and is neither pruned nor counted. An object without a proof is
/// pruned only by approval.
pub(super) fn is_ours(seen: &Observed) -> bool {
    seen.ownership == Ownership::Ours && !seen.controlled
}

/// Counts the objects that are ours once everything is applied. Objects that are about to be
/// created already count: otherwise the creations of a commit would bring its prunes within the
/// budget a moment later, and objects that are held now would be deleted without approval.
fn owned(observed: &ObservedSet, decided: &PlanBuilder) -> usize {
    let is_proven = |seen: &Observed| seen.ownership == Ownership::Ours && seen.proven;
    let ours = observed.iter().filter(|(_, seen)| is_ours(seen) && is_proven(seen)).count();
    let becomes_ours = |seen: &Observed| !is_proven(seen) && !seen.controlled;
    let gained = decided.steps.iter().filter(|(_, step)| match step.action {
        Action::Create | Action::ReplaceHookRuns { .. } => true,
        Action::Adopt { .. } | Action::Update(_) => observed.get(&step.id).is_some_and(becomes_ours),
        Action::HandOver { .. } | Action::Prune { .. } => false,
    });
    ours + gained.count()
}

/// Inputs of the decision about an object that is no longer desired.
struct PruneContext<'a> {
    desired: &'a DesiredSet,
    observed: &'a ObservedSet,
    policy: &'a Policy,
    /// Kinds of desired objects with unknown scope. Such an object may exist under an id with
    /// another namespace than the desired one.
    unknown: BTreeSet<GroupKind>,
    /// Live objects that are desired, by uid: one object may be served under two groups.
    wanted: HashMap<&'a str, &'a ObjectId>,
}

impl<'a> PruneContext<'a> {
    fn new(desired: &'a DesiredSet, observed: &'a ObservedSet, policy: &'a Policy) -> Self {
        let unknown = desired.objects().iter().filter(|object| object.scope.is_none());
        let wanted = desired.objects().iter().filter_map(|object| {
            let seen = observed.get(&object.id)?;
            (!seen.uid.is_empty()).then_some((&*seen.uid, &object.id))
        });
        let (unknown, wanted) = (unknown.map(|object| object.id.group_kind()).collect(), wanted.collect());
        Self { desired, observed, policy, unknown, wanted }
    }

    /// Returns the first hold that applies, or a hand-over; none if the object may be pruned.
    fn missing_proof(&self, id: &ObjectId, seen: &Observed) -> Option<Decision> {
        if let Some(other) = self.wanted.get(&*seen.uid) {
            return Some(Decision::Hold(Hold::DuplicateOf((*other).clone())));
        }
        let claim = self.policy.claims.get(id);
        let claim_in = |state| claim.filter(|claim| claim.state == state);
        let pause = pause_end(seen, self.policy);
        let hold = match claim_in(ClaimState::WillAdopt) {
            _ if self.policy.own_keys.as_ref() == Some(id)
                || seen.installation_role == InstallationRole::Keys =>
            {
                Hold::DaemonKeys
            }
            _ if seen.deleting => Hold::BeingDeleted(seen.finalizers.clone()),
            _ if seen.reconcile_disabled => Hold::ReconcileDisabled,
            _ if pause.is_some() => Hold::Paused(pause.unwrap_or_default()),
            // It may be a desired object, so it is neither deleted nor handed over.
            _ if self.unknown.contains(&id.group_kind()) => Hold::UnknownKind,
            Some(claim) => return Some(Decision::Write(Action::HandOver { to: claim.sync.clone() })),
            None if self.desired.is_empty() => Hold::EmptyRender,
            None if !self.policy.prune => Hold::PruneDisabled,
            None if seen.prune_disabled => Hold::protected_object(seen),
            None if !self.observed.is_listed(id) => Hold::ListIncomplete,
            None if !seen.applied_by_us => Hold::NotAppliedByUs,
            None if seen.uid.is_empty() || seen.resource_version.is_empty() => Hold::IdentityUnknown,
            None => claim?.waiting_hold()?,
        };
        Some(Decision::Hold(hold))
    }

    /// Holds namespaces and definitions that contain other objects, which would be deleted with
    /// them.
    fn keep_occupied(&self, candidates: Vec<LiveEntry<'a>>, decided: &mut PlanBuilder) -> Vec<LiveEntry<'a>> {
        if !candidates.iter().any(|(id, _)| blocking::is_container(id)) {
            return candidates;
        }
        let going: HashSet<&ObjectId> = candidates.iter().map(|(id, _)| *id).collect();
        let wanted = self.desired.objects().iter().map(|object| &object.id);
        let seen = self.observed.iter().filter(|(_, seen)| !seen.deleting).map(|(id, _)| id);
        let staying: Vec<&ObjectId> = wanted.chain(seen).filter(|id| !going.contains(id)).collect();
        let mut empty = Vec::with_capacity(candidates.len());
        for (id, entry) in candidates {
            match staying.iter().filter(|resident| blocking::contains(id, resident)).min() {
                Some(resident) => {
                    let hold = Decision::Hold(Hold::NotEmpty((*resident).clone()));
                    decided.add(id.clone(), hold, phase_wave_of(entry.wave));
                }
                None => empty.push((id, entry)),
            }
        }
        empty
    }
}

/// Returns the hash over everything that would be deleted. Another object, or the same one
/// recreated, needs another approval. A newer commit that cannot be applied is included, so that an
/// approval given before that commit does not count.
fn approval(prunes: &[LiveEntry<'_>], replaced: &[(&ObjectId, &str)], refused: Option<&str>) -> String {
    let pruned = prunes.iter().map(|(id, seen)| format!("{} {}\n", id.as_str(), seen.uid));
    let replaced = replaced.iter().map(|(id, uid)| format!("replace {} {uid}\n", id.as_str()));
    let mut lines: Vec<String> = pruned.chain(replaced).collect();
    lines.sort();
    lines.extend(refused.map(|refused| format!("despite {refused}\n")));
    let digest = Sha256::digest(lines.concat().as_bytes());
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text[..APPROVAL_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{Claim, Plan, PruneBudget, plan};
    use super::*;
    use crate::plan::test_fixtures::{id, manifest, seen, there, wanted};

    const UNWANTED: &str = "/ConfigMap|shop/old";

    /// The decision about one object that is not desired, beside two that are.
    fn fate(change: impl FnOnce(&mut Observed), policy: impl FnOnce(&mut Policy)) -> String {
        let desired = wanted(&[manifest("/ConfigMap|shop/a", 0), manifest("/ConfigMap|shop/b", 0)]);
        let (mut observed, old) = (there(["/ConfigMap|shop/a", "/ConfigMap|shop/b"]), id(UNWANTED));
        let mut entry = seen(&old);
        change(&mut entry);
        observed.insert(old.clone(), entry);
        let mut rules = Policy::default();
        policy(&mut rules);
        fate_in(&plan(&desired, &observed, &rules), &old)
    }

    fn fate_in(plan: &Plan, id: &ObjectId) -> String {
        let step = plan.steps().find(|step| step.id == *id).map(|step| step.action.verb());
        let hold = plan.held.iter().find(|(held, _)| held == id).map(|(_, hold)| hold.reason());
        step.or(hold).unwrap_or("nothing").to_owned()
    }

    #[test]
    fn the_proof_that_is_missing_is_named() {
        let seen = |change: fn(&mut Observed), expect: &str| assert_eq!(fate(change, |_| {}), expect);
        seen(|_| {}, "prune");
        seen(|it| it.deleting = true, "BeingDeleted");
        seen(|it| it.reconcile_disabled = true, "ReconcileDisabled");
        seen(|it| it.prune_disabled = true, "PruneDisabled");
        seen(|it| it.installation_role = InstallationRole::Keys, "DaemonKeys");
        seen(|it| it.installation_role = InstallationRole::Installation, "prune");
        seen(
            |it| (it.prune_disabled, it.protected_by) = (true, Some("helm.sh/resource-policy")),
            "PruneDisabled",
        );
        seen(|it| it.applied_by_us = false, "NotAppliedByUs");
        seen(|it| it.proven = false, "Unproven");
        seen(|it| it.uid = "".into(), "IdentityUnknown");
        seen(|it| it.resource_version = "".into(), "IdentityUnknown");
        seen(|it| it.uid = "uid of /ConfigMap|shop/a".into(), "StillInGit");
        // Objects that are not ours are not in the plan.
        seen(|it| it.ownership = Ownership::Unowned, "nothing");
        seen(|it| it.ownership = Ownership::Copy, "nothing");
        seen(|it| it.ownership = Ownership::OtherSync("ops/other".into()), "nothing");
        seen(|it| it.controlled = true, "nothing");
    }

    #[test]
    fn the_policy_says_what_may_go() {
        let policy = |change: fn(&mut Policy), expect: &str| assert_eq!(fate(|_| {}, change), expect);
        let claim = |standing| (id(UNWANTED), Claim { sync: "ops/other".into(), state: standing });
        policy(|it| it.prune = false, "PruneDisabled");
        policy(|it| it.own_keys = Some(id(UNWANTED)), "DaemonKeys");
        policy(|it| it.suspended = true, "Suspended");
        policy(|it| it.protected.extend([GroupKind::new("", "ConfigMap")]), "Protected");
        policy(
            |it| it.guards.extend([(id(UNWANTED), crate::plan::PruneGuard::CascadingDelete)]),
            "Protected",
        );
        policy(|it| it.budget.count = Some(0), "PruneBudgetExceeded");
        policy(|it| it.budget.percent = Some(33), "PruneBudgetExceeded");
        policy(|it| it.budget.percent = Some(34), "prune");
        for (standing, expect) in [
            (ClaimState::WillAdopt, "hand over"),
            (ClaimState::CannotAdopt, "ClaimedBy"),
            (ClaimState::Possible, "PossiblyClaimed"),
            (ClaimState::MoveTarget, "PossiblyClaimed"),
            (ClaimState::WithoutRights, "ClaimedWithoutRights"),
            (ClaimState::Overdue, "ClaimOverdue"),
        ] {
            assert_eq!(fate(|_| {}, |it| it.claims.extend([claim(standing)])), expect);
            // An object that stays in any case is not waited for.
            let kept = fate(|it| it.prune_disabled = true, |it| it.claims.extend([claim(standing)]));
            let is_taken = standing == ClaimState::WillAdopt;
            assert_eq!(kept, if is_taken { "hand over" } else { "PruneDisabled" });
        }
        // A claim takes precedence over disabled pruning, but not over an annotation on the object.
        assert_eq!(
            fate(|it| it.reconcile_disabled = true, |it| it.claims.extend([claim(ClaimState::WillAdopt)])),
            "ReconcileDisabled"
        );
    }

    #[test]
    fn a_kind_that_was_not_listed_or_is_not_known_is_not_pruned() {
        let old = id("example.com/Widget|shop/old");
        let desired = wanted(&[manifest("/ConfigMap|shop/a", 0)]);
        let mut observed = there([old.as_str()]);
        assert_eq!(fate_in(&plan(&desired, &observed, &Policy::default()), &old), "prune");
        observed.mark_unlisted(old.group_kind());
        assert_eq!(fate_in(&plan(&desired, &observed, &Policy::default()), &old), "ListIncomplete");
        // Desired without a namespace, and its scope is unknown: it may be this object.
        let there_already = id("unknown.example.com/Gadget|shop/a");
        let desired = wanted(&[manifest("unknown.example.com/Gadget|/a", 0)]);
        let plan = plan(&desired, &there([there_already.as_str()]), &Policy::default());
        assert_eq!(fate_in(&plan, &there_already), "UnknownKind");
    }

    #[test]
    fn nothing_is_pruned_by_an_empty_render() {
        let observed = there([UNWANTED]);
        let plan = plan(&DesiredSet::empty(), &observed, &Policy::default());
        assert_eq!(fate_in(&plan, &id(UNWANTED)), "EmptyRender");
    }

    #[test]
    fn a_container_stays_while_something_in_it_stays() {
        let (namespace, crd) =
            (id("/Namespace|/old"), id("apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com"));
        let mut policy = Policy::default();
        policy.protected.clear();
        let check = |wants: &str, there_too: &str, container: &ObjectId, policy: &Policy, expect: &str| {
            let observed = there([container.as_str(), there_too]);
            let plan = plan(&wanted(&[manifest(wants, 0)]), &observed, policy);
            assert_eq!(fate_in(&plan, container), expect, "{wants} {there_too}");
        };
        check("/ConfigMap|shop/a", "/ConfigMap|shop/a", &namespace, &policy, "prune");
        check("/ConfigMap|shop/a", "/ConfigMap|old/x", &namespace, &policy, "prune");
        check("/ConfigMap|old/a", "/ConfigMap|shop/a", &namespace, &policy, "NotEmpty");
        check("/ConfigMap|old/a", "/ConfigMap|old/a", &namespace, &policy, "NotEmpty");
        check("/ConfigMap|shop/a", "/ConfigMap|shop/b", &crd, &policy, "prune");
        check("example.com/Widget|shop/a", "/ConfigMap|shop/b", &crd, &policy, "NotEmpty");
        check("/ConfigMap|shop/a", "other.com/Widget|shop/b", &crd, &policy, "prune");
        let claim = Claim { sync: "ops/other".into(), state: ClaimState::WillAdopt };
        policy.claims.insert(id("/ConfigMap|old/x"), claim);
        check("/ConfigMap|shop/a", "/ConfigMap|old/x", &namespace, &policy, "NotEmpty");
    }

    #[test]
    fn an_approval_is_for_certain_objects() {
        let desired = wanted(&[manifest("/ConfigMap|shop/a", 0)]);
        let mut observed = there(["/ConfigMap|shop/x", "/ConfigMap|shop/y"]);
        let mut policy =
            Policy { budget: PruneBudget { count: Some(1), percent: None }, ..Policy::default() };
        let asked = plan(&desired, &observed, &policy);
        assert_eq!((asked.approval.as_ref().unwrap().len(), asked.pending_prunes().len()), (16, 2));
        policy.approved = asked.approval.clone();
        let approved = plan(&desired, &observed, &policy);
        assert_eq!((approved.approval.clone(), approved.held.len(), approved.steps().count()), (None, 0, 3));
        // The same object, recreated, is a different one.
        let x = id("/ConfigMap|shop/x");
        observed.insert(x.clone(), Observed { uid: "new".into(), ..seen(&x) });
        let stale = plan(&desired, &observed, &policy);
        assert!(stale.approval.is_some() && stale.approval != asked.approval);
        assert_eq!(stale.held.len(), 2);
    }

    #[test]
    fn an_approval_holds_until_all_of_it_is_gone() {
        let desired = wanted(&[manifest("/ConfigMap|shop/a", 0)]);
        let [database, claim] = ["example.com/Database|shop/x", "/PersistentVolumeClaim|shop/y"];
        let mut policy = Policy::default();
        policy.approved = plan(&desired, &there([database, claim]), &policy).approval;
        let approved = plan(&desired, &there([database, claim]), &policy);
        assert_eq!((approved.steps().count(), approved.consented.len()), (3, 2));
        // The database was deleted first, and the approval hash is now of another set.
        policy.approved_objects = approved.consented;
        let rest = plan(&desired, &there([claim]), &policy);
        assert_eq!((rest.steps().count(), rest.approval), (2, None));
        // New objects need an approval of their own.
        let more = "/PersistentVolumeClaim|shop/z";
        let joined = plan(&desired, &there([claim, more]), &policy);
        assert_eq!((joined.steps().count(), joined.pending_prunes().len()), (2, 1));
        // Another temporary hold does not revoke it.
        let waits = Claim { sync: "ops/other".into(), state: ClaimState::Possible };
        let held = Policy { claims: BTreeMap::from([(id(claim), waits)]), ..policy.clone() };
        assert_eq!(plan(&desired, &there([claim]), &held).consented, rest.consented);
        // The same object, recreated, is a different one.
        let mut anew = there([claim]);
        anew.update(&id(claim), |seen| seen.uid = "new".into());
        assert_eq!(plan(&desired, &anew, &policy).pending_prunes().len(), 1);
    }

    #[test]
    fn a_claim_that_a_person_decides_about_is_approved_like_a_protected_kind() {
        let (desired, observed) =
            (wanted(&[manifest("/ConfigMap|shop/a", 0)]), there(["/ConfigMap|shop/a", UNWANTED]));
        let claim = Claim { sync: "ops/other".into(), state: ClaimState::Overdue };
        let mut policy = Policy { claims: BTreeMap::from([(id(UNWANTED), claim)]), ..Policy::default() };
        let asked = plan(&desired, &observed, &policy);
        assert_eq!(
            (fate_in(&asked, &id(UNWANTED)), asked.pending_prunes().len()),
            ("ClaimOverdue".into(), 1)
        );
        policy.approved = asked.approval;
        assert_eq!(fate_in(&plan(&desired, &observed, &policy), &id(UNWANTED)), "prune");
    }

    #[test]
    fn a_newer_commit_that_cannot_be_applied_makes_every_prune_ask() {
        let old = "/ConfigMap|shop/old";
        let (desired, observed) =
            (wanted(&[manifest("/ConfigMap|shop/a", 0)]), there(["/ConfigMap|shop/a", old]));
        let refused = |newer: &str| Policy { refused_newer: Some(newer.into()), ..Policy::default() };
        let held = plan(&desired, &observed, &refused("main@3"));
        assert_eq!(fate_in(&held, &id(old)), "NewerRefused");
        let other = plan(&desired, &observed, &refused("main@4"));
        assert_ne!(held.approval, other.approval, "another commit is another question");
        let approved = Policy { approved: held.approval.clone(), ..refused("main@3") };
        assert_eq!(fate_in(&plan(&desired, &observed, &approved), &id(old)), "prune");
        let stale = Policy { approved: held.approval, ..refused("main@4") };
        assert_eq!(fate_in(&plan(&desired, &observed, &stale), &id(old)), "NewerRefused");
        assert_eq!(fate_in(&plan(&desired, &observed, &Policy::default()), &id(old)), "prune");
    }

    #[test]
    fn what_a_commit_creates_counts_before_it_is_there() {
        // 11 of 30 are over budget; 11 of the 37 that are ours after the creations are not.
        let (kept, old) = (
            (0..19).map(|at| format!("/ConfigMap|shop/kept-{at}")),
            (0..11).map(|at| format!("/ConfigMap|shop/old-{at}")),
        );
        let names: Vec<String> = kept.clone().chain(old).collect();
        let check = |new: usize, expect: bool| {
            let new = (0..new).map(|at| format!("/ConfigMap|shop/new-{at}"));
            let manifests: Vec<_> = kept.clone().chain(new).map(|id| manifest(&id, 0)).collect();
            let plan =
                plan(&wanted(&manifests), &there(names.iter().map(String::as_str)), &Policy::default());
            assert_eq!(plan.pending_prunes().len() == 11, expect, "{:?}", plan.held.first());
        };
        check(0, true);
        check(6, true);
        check(7, false);
    }
}
