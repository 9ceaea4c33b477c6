//! Gating by health: a wave begins after all earlier phases and waves are healthy.
//!
//! In: the progress of the rollout of a set.
//! Out: the steps that wait, and the objects that they wait for. Only changes from Git wait:
//! repairs do not, and nothing waits after the rollout is complete. Prunes wait until all desired
//! objects are applied.

use std::collections::BTreeSet;

use super::{Action, Change, Hold, PlanBuilder, Policy, Step};
use crate::desired::{DesiredSet, Phase, PhaseWave};
use moorline_core::object::ObjectId;

/// Progress of the rollout of a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollout {
    /// Objects that are not healthy, or not known to be.
    pub unhealthy: BTreeSet<ObjectId>,
    /// Of these, those that have failed or exceeded their deadline.
    pub degraded: BTreeSet<ObjectId>,
    /// Objects that are not healthy in their current or in an earlier desired form. A hook among
    /// them is still running.
    pub running: BTreeSet<ObjectId>,
    /// True if some part of the rollout has failed.
    pub failed: bool,
    /// True if another set was rolled out before.
    pub is_upgrade: bool,
    /// Objects that existed in their desired form and were deleted by others: recreating them is a
    /// repair.
    pub restored: BTreeSet<ObjectId>,
    /// True if a person requests another run of failed hooks.
    pub reruns_failed_hooks: bool,
    /// True if waves of normal objects wait only for hooks, not for each other's health.
    pub only_hooks: bool,
}

/// Holds steps back until earlier objects are healthy.
#[derive(Debug)]
pub struct RolloutGate<'a> {
    desired: &'a DesiredSet,
    only_hooks: bool,
    failed: bool,
    restored: &'a BTreeSet<ObjectId>,
    /// Objects that are not healthy, each with its phase and wave.
    unhealthy: BTreeSet<(PhaseWave, ObjectId)>,
    /// The hooks among them.
    hooks: BTreeSet<(PhaseWave, ObjectId)>,
    /// Blocker of the first step that waits.
    first_blocker: Option<ObjectId>,
}

impl<'a> RolloutGate<'a> {
    /// Creates the gate; none if no step waits.
    pub fn new(desired: &'a DesiredSet, rollout: Option<&'a Rollout>) -> Option<Self> {
        let rollout = rollout.filter(|_| desired.has_ordering())?;
        let (only_hooks, failed, restored) = (rollout.only_hooks, rollout.failed, &rollout.restored);
        let (unwell, hooks) = Default::default();
        let mut awaits =
            Self { desired, only_hooks, failed, restored, unhealthy: unwell, hooks, first_blocker: None };
        rollout.unhealthy.iter().for_each(|id| awaits.on_written(id));
        Some(awaits)
    }

    /// Records that an object was written and its health is not known yet.
    pub fn on_written(&mut self, id: &ObjectId) {
        let Some(wanted) = self.desired.get(id) else { return };
        let one = (wanted.annotations.phase_wave(), id.clone());
        if wanted.annotations.hook.is_some() {
            self.hooks.insert(one.clone());
        }
        self.unhealthy.insert(one);
    }

    /// Returns the object that a step waits for. Must be called in the order of the steps, prunes
    /// last.
    pub fn find_blocker(&mut self, step: &Step) -> Option<ObjectId> {
        let blocker = match &step.action {
            Action::Prune { .. } if self.desired.get(&step.id).is_some() => None,
            Action::Prune { .. } => self.first_blocker.clone().or_else(|| self.running_hook()),
            Action::Create
            | Action::ReplaceHookRuns { .. }
            | Action::Adopt { .. }
            | Action::Update(Change::Committed | Change::RerunHook) => self.first_before(&step.id),
            Action::Update(
                Change::Drifted(_) | Change::EntryLost | Change::Unverified | Change::MaybeDrifted,
            )
            | Action::HandOver { .. } => None,
        };
        if self.first_blocker.is_none() {
            self.first_blocker.clone_from(&blocker);
        }
        blocker
    }

    /// Returns a hook that has not succeeded yet.
    fn running_hook(&self) -> Option<ObjectId> {
        let is_hook = |id: &ObjectId| {
            let hook = self.desired.get(id).and_then(|it| it.annotations.hook);
            hook.is_some_and(|hook| hook.phase.is_some())
        };
        self.hooks.iter().map(|(_, id)| id).find(|id| is_hook(id)).cloned()
    }

    fn first_before(&self, id: &ObjectId) -> Option<ObjectId> {
        let wanted = self.desired.get(id)?;
        let hook = wanted.annotations.hook;
        if self.failed && hook.is_some_and(|hook| hook.on_failure) || self.restored.contains(id) {
            return None;
        }
        let turn = wanted.annotations.phase_wave();
        // Called for every step, so only the first entry is checked.
        let all = !self.only_hooks || turn.phase == Phase::PostSync;
        let (first, blocker) = if all { self.unhealthy.first() } else { self.hooks.first() }?;
        (*first < turn).then(|| blocker.clone())
    }
}

/// Holds every step whose wave has not begun.
pub(super) fn hold_unhealthy(desired: &DesiredSet, policy: &Policy, decided: &mut PlanBuilder) {
    let Some(mut awaits) = RolloutGate::new(desired, policy.rollout.as_ref()) else { return };
    let is_prune = |step: &Step| matches!(step.action, Action::Prune { .. });
    // Desired objects that are already on hold also make the prunes wait.
    let blocker = |(id, hold): &(ObjectId, Hold)| match hold {
        Hold::WaitsFor(blocker) => Some(blocker.clone()),
        Hold::HookRunning => Some(id.clone()),
        _ => None,
    };
    awaits.first_blocker = decided.held.iter().filter(|(id, _)| desired.get(id).is_some()).find_map(blocker);
    let (prunes, writes): (Vec<_>, Vec<_>) =
        std::mem::take(&mut decided.steps).into_iter().partition(|(_, step)| is_prune(step));
    for (turn, step) in writes.into_iter().chain(prunes) {
        match awaits.find_blocker(&step) {
            Some(blocker) => decided.held.push((step.id, Hold::WaitsFor(blocker))),
            None => decided.steps.push((turn, step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;
    use crate::observed::ObservedSet;
    use crate::plan::test_fixtures::{id, manifest, there, wanted};
    use serde_json::{Value, json};

    const FIRST: &str = "example.com/Widget|a/first";
    const NEXT: &str = "/ConfigMap|a/next";

    fn hook(text: &str, moment: &str) -> Value {
        let mut manifest = manifest(text, 0);
        manifest["metadata"]["annotations"] = json!({"moorline.dev/hook": moment});
        manifest
    }

    /// The steps that wait and their blockers, for a set of which some objects exist.
    fn waits(manifests: &[Value], observed: &ObservedSet, rollout: Option<Rollout>) -> Vec<String> {
        let policy = Policy { rollout, ..Policy::default() };
        let plan = plan(&wanted(manifests), observed, &policy);
        let waits = plan.held.iter().filter_map(|(held, hold)| match hold {
            Hold::WaitsFor(blocker) => Some(format!("{} for {}", held.name(), blocker.name())),
            _ => None,
        });
        waits.collect()
    }

    fn unwell(ids: &[&str]) -> Option<Rollout> {
        Some(Rollout { unhealthy: ids.iter().map(|text| id(text)).collect(), ..Rollout::default() })
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
        // A hook is waited for even if health is not.
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
                observed.update(&object.id, |seen| seen.recorded_hash = Some(object.hash));
            }
            let plan = plan(&desired, &observed, &Policy { rollout, ..Policy::default() });
            plan.held.iter().any(|(id, hold)| id.name() == "old" && matches!(hold, Hold::WaitsFor(_)))
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
        let mut awaits = RolloutGate::new(&set, rollout.as_ref()).unwrap();
        let step = |text: &str, action| Step { id: id(text), action };
        assert_eq!(awaits.find_blocker(&step(NEXT, Action::Create)), None);
        awaits.on_written(&id(FIRST));
        assert_eq!(awaits.find_blocker(&step(FIRST, Action::Create)), None);
        assert_eq!(
            awaits.find_blocker(&step(NEXT, Action::Update(Change::MaybeDrifted))),
            None,
            "a repair does not wait"
        );
        assert_eq!(awaits.find_blocker(&step(NEXT, Action::Create)), Some(id(FIRST)));
        let prune = Action::Prune { uid: "1".into(), resource_version: "1".into() };
        assert_eq!(awaits.find_blocker(&step("/ConfigMap|a/old", prune)), Some(id(FIRST)));
    }
}
