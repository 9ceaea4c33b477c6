//! A turn begins when all that comes before it is well.
//!
//! In: how far the roll-out of a set is. Out: what waits, and for what. Only what Git has changed waits: a repair does not,
//! nor does anything once the roll-out has come to its end. What is no longer wanted goes when all that is wanted is there.

use std::collections::BTreeSet;

use super::{Action, Change, Decided, Hold, Policy, Step};
use crate::desired::{DesiredSet, Phase, Turn};
use moorline_core::object::ObjectId;

/// How far a set has been rolled out, as long as it is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollout {
    /// Objects that are not well, or not known to be.
    pub unwell: BTreeSet<ObjectId>,
    /// Of these, those that have failed or take too long.
    pub degraded: BTreeSet<ObjectId>,
    /// Objects that are not well, be it as they were wanted before: a hook among them still runs.
    pub running: BTreeSet<ObjectId>,
    /// Something of it has failed.
    pub failed: bool,
    /// Another set was rolled out before it.
    pub is_later: bool,
    /// Objects that were there as they are wanted, and were deleted by others: to make them again is a repair.
    pub restored: BTreeSet<ObjectId>,
    /// A person asks to run hooks again that have failed.
    pub again: bool,
    /// Waves of objects that are no hooks do not wait for each other's health, only for hooks.
    pub only_hooks: bool,
}

/// What steps wait for because of what is not well.
#[derive(Debug)]
pub struct Awaits<'a> {
    desired: &'a DesiredSet,
    only_hooks: bool,
    failed: bool,
    restored: &'a BTreeSet<ObjectId>,
    /// What is not well, each with its turn.
    unwell: BTreeSet<(Turn, ObjectId)>,
    /// The hooks among them.
    hooks: BTreeSet<(Turn, ObjectId)>,
    /// What the first step waits for that does.
    waits: Option<ObjectId>,
}

impl<'a> Awaits<'a> {
    /// None where nothing waits.
    pub fn new(desired: &'a DesiredSet, rollout: Option<&'a Rollout>) -> Option<Self> {
        let rollout = rollout.filter(|_| desired.has_turns())?;
        let (only_hooks, failed, restored) = (rollout.only_hooks, rollout.failed, &rollout.restored);
        let (unwell, hooks) = Default::default();
        let mut awaits = Self { desired, only_hooks, failed, restored, unwell, hooks, waits: None };
        rollout.unwell.iter().for_each(|id| awaits.written(id));
        Some(awaits)
    }

    /// An object was written, and how it is now is not known yet.
    pub fn written(&mut self, id: &ObjectId) {
        let Some(wanted) = self.desired.get(id) else { return };
        let one = (wanted.switches.turn(), id.clone());
        if wanted.switches.hook.is_some() {
            self.hooks.insert(one.clone());
        }
        self.unwell.insert(one);
    }

    /// What a step waits for. Asked in the order of the steps, so that the prunes come last.
    pub fn before(&mut self, step: &Step) -> Option<ObjectId> {
        let blocker = match &step.action {
            Action::Prune { .. } if self.desired.get(&step.id).is_some() => None,
            Action::Prune { .. } => self.waits.clone().or_else(|| self.running_hook()),
            Action::Create
            | Action::Follow { .. }
            | Action::Adopt { .. }
            | Action::Update(Change::Committed | Change::Again) => self.first_before(&step.id),
            Action::Update(Change::Drifted(_) | Change::EntryLost | Change::Unverified | Change::Moved)
            | Action::HandOver { .. } => None,
        };
        if self.waits.is_none() {
            self.waits.clone_from(&blocker);
        }
        blocker
    }

    /// A hook that has not ended well.
    fn running_hook(&self) -> Option<ObjectId> {
        let is_hook = |id: &ObjectId| {
            let hook = self.desired.get(id).and_then(|it| it.switches.hook);
            hook.is_some_and(|hook| hook.phase.is_some())
        };
        self.hooks.iter().map(|(_, id)| id).find(|id| is_hook(id)).cloned()
    }

    fn first_before(&self, id: &ObjectId) -> Option<ObjectId> {
        let wanted = self.desired.get(id)?;
        let hook = wanted.switches.hook;
        if self.failed && hook.is_some_and(|hook| hook.on_failure) || self.restored.contains(id) {
            return None;
        }
        let turn = wanted.switches.turn();
        // Every step asks, and so only the first of them is looked at.
        let all = !self.only_hooks || turn.phase == Phase::After;
        let (first, blocker) = if all { self.unwell.first() } else { self.hooks.first() }?;
        (*first < turn).then(|| blocker.clone())
    }
}

/// Holds every step whose turn has not come.
pub(super) fn hold_back(desired: &DesiredSet, policy: &Policy, decided: &mut Decided) {
    let Some(mut awaits) = Awaits::new(desired, policy.rollout.as_ref()) else { return };
    let is_prune = |step: &Step| matches!(step.action, Action::Prune { .. });
    // What is already held waits as well, and what is no longer wanted with it.
    let blocker = |(id, hold): &(ObjectId, Hold)| match hold {
        Hold::Waits(blocker) => Some(blocker.clone()),
        Hold::Runs => Some(id.clone()),
        _ => None,
    };
    awaits.waits = decided.held.iter().filter(|(id, _)| desired.get(id).is_some()).find_map(blocker);
    let (prunes, writes): (Vec<_>, Vec<_>) =
        std::mem::take(&mut decided.steps).into_iter().partition(|(_, step)| is_prune(step));
    for (turn, step) in writes.into_iter().chain(prunes) {
        match awaits.before(&step) {
            Some(blocker) => decided.held.push((step.id, Hold::Waits(blocker))),
            None => decided.steps.push((turn, step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::given::{id, manifest, there, wanted};
    use super::super::plan;
    use super::*;
    use crate::observed::ObservedSet;
    use serde_json::{Value, json};

    const FIRST: &str = "example.com/Widget|a/first";
    const NEXT: &str = "/ConfigMap|a/next";

    fn hook(text: &str, moment: &str) -> Value {
        let mut manifest = manifest(text, 0);
        manifest["metadata"]["annotations"] = json!({"moorline.dev/hook": moment});
        manifest
    }

    /// What waits for what, of a set of which some objects are there.
    fn waits(manifests: &[Value], observed: &ObservedSet, rollout: Option<Rollout>) -> Vec<String> {
        let policy = Policy { rollout, ..Policy::default() };
        let plan = plan(&wanted(manifests), observed, &policy);
        let waits = plan.held.iter().filter_map(|(held, hold)| match hold {
            Hold::Waits(blocker) => Some(format!("{} for {}", held.name(), blocker.name())),
            _ => None,
        });
        waits.collect()
    }

    fn unwell(ids: &[&str]) -> Option<Rollout> {
        Some(Rollout { unwell: ids.iter().map(|text| id(text)).collect(), ..Rollout::default() })
    }

    #[test]
    fn a_wave_waits_for_the_health_of_the_one_before_it() {
        let two = [manifest(FIRST, 0), manifest(NEXT, 1)];
        let there_first = there([FIRST]);
        assert_eq!(waits(&two, &there_first, unwell(&[FIRST])), ["next for first"]);
        assert!(waits(&two, &there_first, unwell(&[])).is_empty());
        assert!(waits(&two, &there_first, None).is_empty(), "once it is rolled out nothing waits");
        let one = [manifest(FIRST, 0), manifest(NEXT, 0)];
        assert!(waits(&one, &there_first, unwell(&[FIRST])).is_empty(), "nobody waits for its peers");
        let only_hooks = unwell(&[FIRST]).map(|rollout| Rollout { only_hooks: true, ..rollout });
        assert!(waits(&two, &there_first, only_hooks).is_empty());
    }

    #[test]
    fn what_was_deleted_is_made_again_whatever_else_is_not_well() {
        let two = [manifest(FIRST, 0), manifest(NEXT, 1)];
        let restored =
            unwell(&[FIRST]).map(|rollout| Rollout { restored: [id(NEXT)].into_iter().collect(), ..rollout });
        assert!(waits(&two, &there([FIRST]), restored).is_empty());
    }

    #[test]
    fn what_is_no_longer_wanted_goes_when_all_that_is_wanted_is_there() {
        let two = [manifest(FIRST, 0), manifest(NEXT, 1)];
        let observed = there([FIRST, "/ConfigMap|a/old"]);
        assert_eq!(waits(&two, &observed, unwell(&[FIRST])), ["next for first", "old for first"]);
        assert!(waits(&two, &observed, unwell(&[])).is_empty());
    }

    #[test]
    fn hooks_have_their_place_around_the_waves() {
        let set = [hook("batch/Job|a/up", "before"), manifest(NEXT, -9), hook("batch/Job|a/test", "after")];
        let policy = Policy { rollout: unwell(&[]), ..Policy::default() };
        let plan = plan(&wanted(&set), &ObservedSet::default(), &policy);
        let order: Vec<&str> = plan.steps().map(|step| step.id.name()).collect();
        assert_eq!(order, ["up", "next", "test"]);
        let up = there(["batch/Job|a/up"]);
        let running = unwell(&["batch/Job|a/up"]);
        assert_eq!(waits(&set, &up, running.clone()), ["next for up", "test for up"]);
        // A hook is waited for also where health is not.
        let only_hooks = running.map(|rollout| Rollout { only_hooks: true, ..rollout });
        assert_eq!(waits(&set, &up, only_hooks), ["next for up", "test for up"]);
    }

    #[test]
    fn what_is_no_longer_wanted_waits_for_hooks_also_where_nothing_else_does() {
        let set = [hook("batch/Job|a/up", "before"), manifest(NEXT, 0)];
        let observed = there(["batch/Job|a/up", NEXT, "/ConfigMap|a/old"]);
        let policy_with = |rollout| {
            let desired = wanted(&set);
            let mut observed = observed.clone();
            for object in desired.objects() {
                observed.change(&object.id, |seen| seen.recorded = Some(object.hash));
            }
            let plan = plan(&desired, &observed, &Policy { rollout, ..Policy::default() });
            plan.held.iter().any(|(id, hold)| id.name() == "old" && matches!(hold, Hold::Waits(_)))
        };
        assert!(policy_with(unwell(&["batch/Job|a/up"])));
        assert!(!policy_with(unwell(&[])));
    }

    #[test]
    fn what_runs_after_a_failure_waits_for_nothing() {
        let set = [hook("batch/Job|a/up", "before"), hook("batch/Job|a/tell", "failure"), manifest(NEXT, 0)];
        let up = there(["batch/Job|a/up"]);
        let steps = |failed: bool| {
            let rollout = unwell(&["batch/Job|a/up"]).map(|rollout| Rollout { failed, ..rollout });
            let plan = plan(&wanted(&set), &up, &Policy { rollout, ..Policy::default() });
            plan.steps().filter(|step| step.id.name() == "tell").count()
        };
        assert_eq!((steps(false), steps(true)), (0, 1));
    }

    #[test]
    fn what_was_just_written_is_waited_for() {
        let set = wanted(&[manifest(FIRST, 0), manifest(NEXT, 1)]);
        let rollout = unwell(&[]);
        let mut awaits = Awaits::new(&set, rollout.as_ref()).unwrap();
        let step = |text: &str, action| Step { id: id(text), action };
        assert_eq!(awaits.before(&step(NEXT, Action::Create)), None);
        awaits.written(&id(FIRST));
        assert_eq!(awaits.before(&step(FIRST, Action::Create)), None);
        assert_eq!(awaits.before(&step(NEXT, Action::Update(Change::Moved))), None, "a repair does not wait");
        assert_eq!(awaits.before(&step(NEXT, Action::Create)), Some(id(FIRST)));
        let prune = Action::Prune { uid: "1".into(), resource_version: "1".into() };
        assert_eq!(awaits.before(&step("/ConfigMap|a/old", prune)), Some(id(FIRST)));
    }
}
