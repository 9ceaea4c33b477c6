//! Replacements that need approval: objects that can only change by being deleted and recreated.
//!
//! In: the replacements that earlier applies required, and the decisions.
//! Out: holds for those that wait for approval; the others are executed.

use std::collections::BTreeMap;

use super::{Action, Hold, PlanBuilder, Policy};
use crate::desired::DesiredSet;
use crate::observed::ObservedSet;
use moorline_api::SpecHash;
use moorline_core::object::ObjectId;

/// A change that requires a new object, where deleting the old one needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Uid of the object that would be deleted.
    pub uid: Box<str>,
    /// The change, as the hash of the desired object.
    pub hash: SpecHash,
    /// The hold that a prune of the object would get.
    pub why: Hold,
}

/// Returns the replacements that a plan would execute: those of the current object for the current
/// change.
pub(super) fn due_replacements<'a>(
    desired: &DesiredSet,
    observed: &ObservedSet,
    policy: &'a Policy,
    decided: &PlanBuilder,
) -> BTreeMap<&'a ObjectId, &'a Replacement> {
    if policy.replacements.is_empty() {
        return BTreeMap::new();
    }
    let updates = decided.steps.iter().filter(|(_, step)| matches!(step.action, Action::Update(_)));
    let replaced = updates.filter_map(|(_, step)| {
        let (id, replacement) = policy.replacements.get_key_value(&step.id)?;
        let is_there = observed.get(id).is_some_and(|seen| seen.uid == replacement.uid);
        let is_wanted = desired.get(id).is_some_and(|wanted| wanted.hash == replacement.hash);
        (is_there && is_wanted).then_some((id, replacement))
    });
    replaced.collect()
}

/// Holds the replacements that are not approved.
pub(super) fn hold_unapproved(
    due: &BTreeMap<&ObjectId, &Replacement>,
    consented: &BTreeMap<ObjectId, Box<str>>,
    decided: &mut PlanBuilder,
) {
    let waits: BTreeMap<_, _> = due.iter().filter(|(id, _)| !consented.contains_key(**id)).collect();
    decided.steps.retain(|(_, step)| !waits.contains_key(&&step.id));
    let hold = |replacement: &Replacement| Hold::ReplacementWaits(Box::new(replacement.clone()));
    decided.held.extend(waits.into_iter().map(|(id, it)| ((*id).clone(), hold(it))));
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;
    use crate::observed::Observed;
    use crate::plan::test_fixtures::{id, manifest, seen, there, wanted};

    const VOLUME: &str = "/PersistentVolumeClaim|shop/data";

    /// The hold of a volume claim that cannot change in place, the requested approval, and the
    /// number of steps.
    fn check(change: impl FnOnce(&mut Policy, &mut Observed)) -> (Option<Hold>, Option<String>, usize) {
        let desired = wanted(&[manifest("/ConfigMap|shop/a", 0), manifest(VOLUME, 0)]);
        let (mut observed, volume) = (there(["/ConfigMap|shop/a"]), id(VOLUME));
        let mut entry = Observed { recorded_hash: None, ..seen(&volume) };
        let hash = desired.get(&volume).unwrap().hash;
        let replacement = Replacement { uid: entry.uid.clone(), hash, why: Hold::Protected };
        let mut policy = Policy { replacements: [(volume.clone(), replacement)].into(), ..Policy::default() };
        change(&mut policy, &mut entry);
        observed.insert(volume.clone(), entry);
        let plan = plan(&desired, &observed, &policy);
        let steps = plan.steps().filter(|step| step.id == volume).count();
        let held = plan.held.into_iter().find(|(held, _)| *held == volume).map(|(_, hold)| hold);
        (held, plan.approval, steps)
    }

    #[test]
    fn a_replacement_waits_for_the_approval_of_this_object() {
        let (held, asked, steps) = check(|_, _| {});
        assert_eq!((held.as_ref().map(Hold::reason), steps), (Some("Protected"), 0));
        assert!(held.unwrap().blocks_later_waves());
        let asked = asked.expect("an approval is asked for");
        assert_eq!(check(|policy, _| policy.approved = Some(asked.clone())), (None, None, 1));
        // An approval is for one object, not for its name.
        let other = |_: &mut Policy, seen: &mut Observed| seen.uid = "other".into();
        assert_eq!(check(other), (None, None, 1), "nobody knows yet whether the new one can change");
        let consent =
            |policy: &mut Policy, uid: &str| policy.approved_objects = [(id(VOLUME), uid.into())].into();
        let uid = seen(&id(VOLUME)).uid;
        assert_eq!(check(|policy, _| consent(policy, &uid)), (None, None, 1));
        assert_eq!(check(|policy, _| consent(policy, "other")).2, 0);
    }

    #[test]
    fn a_replacement_counts_for_one_change() {
        let other = moorline_api::SpecHash { form: moorline_api::CanonicalForm::V1, digest: [9; 32] };
        let changed = |policy: &mut Policy, _: &mut Observed| {
            policy.replacements.values_mut().for_each(|it| it.hash = other);
        };
        assert_eq!(check(changed), (None, None, 1));
    }

    #[test]
    fn the_approval_of_a_replacement_approves_no_prune() {
        let (_, asked, _) = check(|_, _| {});
        let desired = wanted(&[manifest("/ConfigMap|shop/a", 0)]);
        let observed = there(["/ConfigMap|shop/a", VOLUME]);
        let policy = Policy { approved: asked, ..Policy::default() };
        let plan = plan(&desired, &observed, &policy);
        assert!(plan.steps().all(|step| step.id != id(VOLUME)));
        assert!(plan.approval.is_some());
    }
}
