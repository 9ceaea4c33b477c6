//! Decisions about hooks.
//!
//! In: a hook as desired and as observed, and the progress of the rollout.
//! Out: the decision to run it, keep it or wait; none if it is treated like any other object. A
//! hook that has run for the current set does not run again, even if it is deleted.

use super::prune::{LiveEntry, is_ours};
use super::repair_policy::{existence_hold, has_completed};
use super::rollout::Rollout;
use super::{Action, Change, Decision, Hold, PlanBuilder, Policy};
use crate::desired::{DesiredObject, DesiredSet, Hook, RolloutFilter, have_same_base_name};
use crate::observed::{Completion, Observed, Ownership, runs_to_completion};
use moorline_core::object::ObjectId;

/// Kinds that run to completion, each with its group. A hook of one of these is deleted and
/// recreated for another run. A hook of any other kind is updated in place like a normal object,
/// unless its annotation asks for replacement: the effects of deleting it are unknown.
const RUNNING: [(&str, &str); 5] = [
    ("batch", "Job"),
    ("", "Pod"),
    ("argoproj.io", "Workflow"),
    ("tekton.dev", "PipelineRun"),
    ("tekton.dev", "TaskRun"),
];

/// Groups of hooks of a rollout that have all completed, so that the objects they need can be
/// deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedHooks {
    /// All hooks of the rollout's phases succeeded.
    phases: bool,
    /// All hooks for a failed rollout completed.
    on_failure: bool,
}

impl CompletedHooks {
    /// Computes the groups from the result of each hook; `ended_well` returns none for one that has
    /// not completed.
    pub fn from_results(
        desired: &DesiredSet,
        rollout: Option<&Rollout>,
        ended_well: impl Fn(&DesiredObject) -> Option<bool>,
    ) -> Self {
        let mut over = Self { phases: true, on_failure: true };
        // After the rollout all its hooks are complete.
        let Some(rollout) = rollout else { return over };
        for object in desired.objects() {
            let Some(hook) = object.annotations.hook else { continue };
            // A failed hook may be requested to run again.
            over.phases &= !is_part(hook, rollout) || ended_well(object) == Some(true);
            over.on_failure &= !hook.on_failure || ended_well(object).is_some();
        }
        over
    }

    /// Computes the groups from recorded results only.
    pub(super) fn from_recorded(desired: &DesiredSet, policy: &Policy) -> Self {
        let ended = |object: &DesiredObject| {
            policy.succeeded.get(&object.id).copied().filter(|_| has_completed(object, policy))
        };
        Self::from_results(desired, policy.rollout.as_ref(), ended)
    }

    /// True if a completed hook is deleted now.
    pub fn should_delete(self, id: &ObjectId, hook: Hook, well: bool) -> bool {
        let asks = if well { hook.delete_on_success } else { hook.delete_on_failure };
        asks && !self.needs(id, hook)
    }

    /// True for an object that other hooks need, such as a ServiceAccount. A completed run is never
    /// needed.
    fn needs(self, id: &ObjectId, hook: Hook) -> bool {
        let are_over = if hook.phase.is_some() { self.phases } else { self.on_failure };
        !is_run_kind(id) && !are_over
    }
}

/// Decides about a hook.
pub(super) fn decide_hook(
    object: &DesiredObject,
    hook: Hook,
    seen: Option<&Observed>,
    over: CompletedHooks,
    policy: &Policy,
) -> Option<Decision> {
    let is_due = policy.rollout.as_ref().is_some_and(|rollout| is_due(hook, rollout));
    let again = is_due && is_asked_again(object, policy);
    let Some(seen) = seen else {
        if again {
            return Some(Decision::Write(Action::Create));
        }
        // An object that other hooks need is recreated while they need it.
        if is_due && over.needs(&object.id, hook) && !is_of_a_definition(&object.id) {
            return Some(existence_hold(object, policy).unwrap_or(Decision::Write(Action::Create)));
        }
        return (has_completed(object, policy) || !is_due).then_some(Decision::Keep);
    };
    if seen.deleting || seen.ownership != Ownership::Ours || !seen.applied_by_us {
        // Ownership and deletion are decided as for every object.
        return (!is_due && seen.ownership != Ownership::Ours).then_some(Decision::Keep);
    }
    let recorded = seen.recorded_hash?;
    if object.is_recorded_as(&recorded) && again && runs(&object.id, hook, policy) {
        return Some(Decision::Write(Action::Update(Change::RerunHook)));
    }
    if object.is_recorded_as(&recorded) {
        return cleared(object, hook, seen, over, policy);
    }
    if !is_due {
        return Some(Decision::Keep);
    }
    if !runs(&object.id, hook, policy) {
        return None;
    }
    // A run for an earlier set may complete, unless that takes too long.
    let given_up = policy.rollout.as_ref().is_some_and(|rollout| rollout.degraded.contains(&object.id));
    let runs_still = match runs_to_completion(&object.id) {
        true => seen.completion == Completion::Running,
        false => policy.rollout.as_ref().is_some_and(|rollout| rollout.running.contains(&object.id)),
    };
    Some(match runs_still && object.is_same_hook(&recorded) && !given_up {
        true => Decision::Hold(Hold::HookRunning),
        false => Decision::Write(Action::Update(Change::RerunHook)),
    })
}

/// Orders a hook with a content hash in its name after its runs under older names. So no two runs
/// are in progress at the same time, as for a hook with a fixed name. A run that may not be deleted
/// is waited for, if its completion can be observed.
pub(super) fn replace_older_runs(
    desired: &DesiredSet,
    unwanted: &[LiveEntry<'_>],
    policy: &Policy,
    decided: &mut PlanBuilder,
) {
    let is_run = |(id, seen): &&LiveEntry<'_>| {
        is_run_kind(id)
            && is_ours(seen)
            && seen.applied_by_us
            && seen.proven
            && seen.completion != Completion::Completed
    };
    let all: Vec<LiveEntry<'_>> = unwanted.iter().filter(is_run).copied().collect();
    if all.is_empty() {
        return;
    }
    let is_hook = |id: &ObjectId| desired.get(id).is_some_and(|it| it.annotations.hook.is_some());
    let may_go = |(id, seen): &&LiveEntry<'_>| {
        let is_kept = seen.deleting || seen.prune_disabled || seen.reconcile_disabled;
        !is_kept && !policy.protected.contains(&id.group_kind()) && !policy.claims.contains_key(*id)
    };
    for (turn, mut step) in std::mem::take(&mut decided.steps) {
        let is_new = step.action == Action::Create && is_hook(&step.id);
        let older = all.iter().filter(|(id, _)| is_new && have_same_base_name(&step.id, id));
        let (go, stay): (Vec<_>, Vec<_>) = older.partition(may_go);
        if let Some((run, _)) = stay.iter().find(|(id, seen)| seen.deleting || runs_to_completion(id)) {
            decided.held.push((step.id, Hold::WaitsFor((*run).clone())));
            continue;
        }
        if !go.is_empty() {
            step.action =
                Action::ReplaceHookRuns { runs: go.into_iter().map(|(id, _)| (*id).clone()).collect() };
        }
        decided.steps.push((turn, step));
    }
}

/// True if the hook runs in this rollout now.
fn is_due(hook: Hook, rollout: &Rollout) -> bool {
    is_part(hook, rollout) || hook.on_failure && rollout.failed
}

/// True if the hook runs in a rollout of this type, whether the rollout succeeds or not.
fn is_part(hook: Hook, rollout: &Rollout) -> bool {
    hook.phase.is_some()
        && match hook.rollouts {
            RolloutFilter::All => true,
            RolloutFilter::First => !rollout.is_upgrade,
            RolloutFilter::Later => rollout.is_upgrade,
        }
}

/// True for a failed hook while a person requests another run.
fn is_asked_again(object: &DesiredObject, policy: &Policy) -> bool {
    let failed = || {
        let degraded = policy.rollout.as_ref().is_some_and(|rollout| rollout.degraded.contains(&object.id));
        let ended_badly = has_completed(object, policy) && policy.succeeded.get(&object.id) == Some(&false);
        // A run that is only slow is not ended for the next one.
        ended_badly || degraded && !runs_to_completion(&object.id)
    };
    policy.rollout.as_ref().is_some_and(|rollout| rollout.reruns_failed_hooks) && failed()
}

/// Deletes a hook that has run, if its annotation asks for that and its result is recorded.
fn cleared(
    object: &DesiredObject,
    hook: Hook,
    seen: &Observed,
    over: CompletedHooks,
    policy: &Policy,
) -> Option<Decision> {
    let well = *policy.succeeded.get(&object.id)?;
    let may_go =
        has_completed(object, policy) && seen.proven && !policy.protected.contains(&object.id.group_kind());
    (may_go && over.should_delete(&object.id, hook, well)).then(|| {
        Decision::Write(Action::Prune {
            uid: seen.uid.clone(),
            resource_version: seen.resource_version.clone(),
        })
    })
}

/// True for a hook that is deleted and recreated for another run.
fn runs(id: &ObjectId, hook: Hook, policy: &Policy) -> bool {
    (is_run_kind(id) || hook.replaces_previous && is_of_a_definition(id))
        && !policy.protected.contains(&id.group_kind())
}

/// True for custom resources: of the built-in kinds only Jobs and Pods run when they are created.
fn is_of_a_definition(id: &ObjectId) -> bool {
    id.group().contains('.') && !id.group().ends_with(".k8s.io")
}

/// True for the kinds that run to completion.
pub fn is_run_kind(id: &ObjectId) -> bool {
    RUNNING.iter().any(|(group, kind)| id.is_kind(group, kind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::super::plan;
    use super::*;
    use crate::observed::ObservedSet;
    use crate::plan::test_fixtures::{id, manifest, seen, wanted};
    use moorline_api::SpecHash;

    const JOB: &str = "batch/Job|a/up";

    fn hook_with(annotations: &Value, text: &str) -> Value {
        let mut manifest = manifest(text, 0);
        manifest["metadata"]["annotations"] = annotations.clone();
        manifest
    }

    type Seen<'a> = &'a dyn Fn(&mut Observed, SpecHash);

    /// The decision about a hook, as text; `change` modifies the observed object, if there is one.
    fn fate(
        annotations: &Value,
        text: &str,
        change: Option<Seen<'_>>,
        policy: impl FnOnce(&mut Policy, SpecHash),
    ) -> String {
        let desired = wanted(&[hook_with(annotations, text)]);
        let hash = desired.objects()[0].hash;
        let mut observed = ObservedSet::default();
        if let Some(change) = change {
            let mut object = Observed { recorded_hash: Some(hash), ..seen(&id(text)) };
            change(&mut object, hash);
            observed.insert(id(text), object);
        }
        let mut rules = Policy::default();
        policy(&mut rules, hash);
        let plan = plan(&desired, &observed, &rules);
        let step = plan.steps().next().map(|step| match &step.action {
            Action::Update(change) => format!("{change:?}"),
            other => other.verb().to_owned(),
        });
        step.or(plan.held.first().map(|(_, hold)| hold.reason().to_owned())).unwrap_or("keep".into())
    }

    const ACCOUNT: &str = "/ServiceAccount|a/up";

    /// The decision about a ServiceAccount beside a Job, both Helm hooks, after this result of the
    /// Job.
    fn account(is_there: bool, job: Option<bool>, change: impl FnOnce(&mut Policy)) -> String {
        let helm = |weight: &str| {
            json!({"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": weight,
                "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"})
        };
        let desired = wanted(&[hook_with(&helm("-5"), ACCOUNT), hook_with(&helm("0"), JOB)]);
        let mut observed = ObservedSet::default();
        let mut policy = Policy { succeeded: BTreeMap::from([(id(ACCOUNT), true)]), ..Policy::default() };
        policy.succeeded.extend(job.map(|well| (id(JOB), well)));
        for object in desired.objects() {
            let has_ended = policy.succeeded.contains_key(&object.id);
            policy.completed.extend(has_ended.then(|| (object.id.clone(), object.hash)));
            if is_there || object.id.is_kind("batch", "Job") {
                let seen = Observed { recorded_hash: Some(object.hash), ..seen(&object.id) };
                observed.insert(object.id.clone(), seen);
            }
        }
        change(&mut policy);
        let plan = plan(&desired, &observed, &policy);
        let step = plan.steps().find(|step| step.id == id(ACCOUNT)).map(|step| step.action.verb());
        step.unwrap_or("keep").to_owned()
    }

    #[test]
    fn what_hooks_need_goes_when_all_of_them_have_run() {
        let over = |policy: &mut Policy| policy.rollout = None;
        assert_eq!(account(true, None, |_| {}), "keep");
        assert_eq!(account(true, Some(true), |_| {}), "prune");
        assert_eq!(account(true, Some(false), |_| {}), "keep", "a person may have it run again");
        assert_eq!(account(true, Some(false), over), "prune");
        let protects = |policy: &mut Policy| policy.protected.extend([id(ACCOUNT).group_kind()]);
        assert_eq!(account(true, Some(true), protects), "keep");
        // It is recreated while one of them needs it, and not later.
        assert_eq!(account(false, None, |_| {}), "create");
        assert_eq!(account(false, Some(true), |_| {}), "keep");
        assert_eq!(account(false, None, over), "keep");
    }

    #[test]
    fn a_run_under_an_older_name_goes_before_the_next_begins() {
        let before = json!({"moorline.dev/hook": "before"});
        let (old, new) = ("batch/Job|a/up-0123456789", "batch/Job|a/up-abcdef0123");
        let desired = wanted(&[hook_with(&before, new), manifest("/ConfigMap|a/x", 0)]);
        let fate = |change: &dyn Fn(&mut Observed), text: &str| {
            let mut observed = ObservedSet::default();
            let mut run = seen(&id(text));
            change(&mut run);
            observed.insert(id(text), run);
            let plan = plan(&desired, &observed, &Policy { prune: false, ..Policy::default() });
            let step = plan.steps().find(|step| step.id == id(new)).map(|step| format!("{:?}", step.action));
            let held = plan.held.iter().find(|(held, _)| *held == id(new));
            step.or(held.map(|(_, hold)| hold.to_string())).unwrap_or_default()
        };
        assert!(fate(&|_| {}, old).starts_with("ReplaceHookRuns"), "{}", fate(&|_| {}, old));
        assert_eq!(fate(&|it| it.completion = Completion::Completed, old), "Create");
        assert_eq!(fate(&|it| it.ownership = Ownership::Unowned, old), "Create");
        assert_eq!(fate(&|_| {}, "batch/Job|a/other-0123456789"), "Create");
        let waits = "it waits for Job.batch a/up-0123456789";
        assert_eq!(fate(&|it| it.deleting = true, old), waits);
        assert_eq!(fate(&|it| it.prune_disabled = true, old), waits);
    }

    #[test]
    fn a_run_of_any_kind_is_waited_for_and_made_anew_where_that_is_asked_for() {
        let (sync, workflow) = (json!({"argocd.argoproj.io/hook": "Sync"}), "argoproj.io/Workflow|a/up");
        let older = |seen: &mut Observed, hash| seen.recorded_hash = Some(for_another_set(hash));
        let runs = |text: &'static str| {
            move |policy: &mut Policy, _| {
                policy.rollout.iter_mut().for_each(|it| it.running = [id(text)].into_iter().collect());
            }
        };
        assert_eq!(fate(&sync, workflow, Some(&older), runs(workflow)), "HookRunning");
        assert_eq!(fate(&sync, workflow, Some(&older), |_, _| {}), "RerunHook");
        let replaced = json!({"argocd.argoproj.io/hook": "Sync", "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation"});
        let widget = "example.com/Widget|a/up";
        assert_eq!(fate(&sync, widget, Some(&older), |_, _| {}), "Committed");
        assert_eq!(fate(&replaced, widget, Some(&older), |_, _| {}), "RerunHook");
        assert_eq!(fate(&replaced, widget, Some(&older), runs(widget)), "HookRunning");
        assert_eq!(fate(&replaced, "/ConfigMap|a/x", Some(&older), |_, _| {}), "Committed");
        let ended = |policy: &mut Policy, hash| policy.completed = BTreeMap::from([(id(widget), hash)]);
        assert_eq!(fate(&sync, widget, None, ended), "keep", "cleared away since");
    }

    fn rolled_out(policy: &mut Policy, _: SpecHash) {
        policy.rollout = None;
    }

    /// The hash of the same hook for another set.
    fn for_another_set(hash: SpecHash) -> SpecHash {
        let mut other = hash;
        other.digest[31] ^= 1;
        other
    }

    #[test]
    fn it_runs_in_a_roll_out_and_once() {
        let before = json!({"moorline.dev/hook": "before"});
        let finished = |policy: &mut Policy, hash| policy.completed = BTreeMap::from([(id(JOB), hash)]);
        assert_eq!(fate(&before, JOB, None, |_, _| {}), "create");
        assert_eq!(fate(&before, JOB, None, rolled_out), "keep");
        assert_eq!(fate(&before, JOB, None, finished), "keep");
        assert_eq!(fate(&before, JOB, Some(&|_, _| {}), |_, _| {}), "keep");
        let failure = json!({"moorline.dev/hook": "failure"});
        let failed = |policy: &mut Policy, _| policy.rollout.iter_mut().for_each(|it| it.failed = true);
        assert_eq!(fate(&failure, JOB, None, |_, _| {}), "keep");
        assert_eq!(fate(&failure, JOB, None, failed), "create");
        assert_eq!(fate(&json!({"moorline.dev/hook": "before-delete"}), JOB, None, failed), "keep");
        assert_eq!(fate(&json!({"helm.sh/hook": "test"}), JOB, None, failed), "keep");
    }

    #[test]
    fn a_chart_is_installed_once_and_upgraded_from_then_on() {
        let later = |policy: &mut Policy, _| policy.rollout.iter_mut().for_each(|it| it.is_upgrade = true);
        let (install, upgrade) =
            (json!({"helm.sh/hook": "pre-install"}), json!({"helm.sh/hook": "pre-upgrade"}));
        assert_eq!(fate(&install, JOB, None, |_, _| {}), "create");
        assert_eq!(fate(&install, JOB, None, later), "keep");
        assert_eq!(fate(&upgrade, JOB, None, |_, _| {}), "keep");
        assert_eq!(fate(&upgrade, JOB, None, later), "create");
    }

    #[test]
    fn for_another_set_it_runs_again_once_its_run_has_ended() {
        let before = json!({"moorline.dev/hook": "before"});
        let running = |seen: &mut Observed, hash| seen.recorded_hash = Some(for_another_set(hash));
        let ended =
            |seen: &mut Observed, hash| (running(seen, hash), seen.completion = Completion::Completed).1;
        let other = |seen: &mut Observed, hash: SpecHash| {
            seen.recorded_hash = Some(SpecHash { digest: [7; 32], ..hash });
        };
        assert_eq!(fate(&before, JOB, Some(&running), |_, _| {}), "HookRunning");
        assert_eq!(fate(&before, JOB, Some(&ended), |_, _| {}), "RerunHook");
        assert_eq!(
            fate(&before, JOB, Some(&other), |_, _| {}),
            "RerunHook",
            "a commit that changes it goes first"
        );
        assert_eq!(fate(&before, JOB, Some(&running), rolled_out), "keep");
        let hangs = |policy: &mut Policy, _| {
            policy.rollout.iter_mut().for_each(|it| it.degraded = [id(JOB)].into_iter().collect());
        };
        assert_eq!(fate(&before, JOB, Some(&running), hangs), "RerunHook", "nobody waits for what hangs");
        // Objects that hooks need are updated in place.
        assert_eq!(fate(&before, "/ConfigMap|a/x", Some(&other), |_, _| {}), "Committed");
        assert_eq!(fate(&before, "rbac.authorization.k8s.io/Role|a/x", Some(&other), |_, _| {}), "Committed");
        assert_eq!(fate(&before, "apps/StatefulSet|a/x", Some(&other), |_, _| {}), "Committed");
        assert_eq!(fate(&before, "/PersistentVolumeClaim|a/x", Some(&other), |_, _| {}), "Committed");
        // A hook whose kind needs approval is never replaced.
        let protects = |policy: &mut Policy, _| policy.protected.extend([id(JOB).group_kind()]);
        assert_eq!(fate(&before, JOB, Some(&other), protects), "Committed");
    }

    #[test]
    fn one_that_has_failed_runs_again_when_a_person_asks() {
        let before = json!({"moorline.dev/hook": "before"});
        let ended = |well: bool, again: bool| {
            move |policy: &mut Policy, hash| {
                policy.completed = BTreeMap::from([(id(JOB), hash)]);
                policy.succeeded = BTreeMap::from([(id(JOB), well)]);
                policy.rollout.iter_mut().for_each(|it| it.reruns_failed_hooks = again);
            }
        };
        let there: Option<Seen<'_>> = Some(&|_, _| {});
        assert_eq!(fate(&before, JOB, there, ended(false, true)), "RerunHook");
        assert_eq!(fate(&before, JOB, there, ended(false, false)), "keep");
        assert_eq!(fate(&before, JOB, there, ended(true, true)), "keep");
        // Deleted since, as by its deadline.
        assert_eq!(fate(&before, JOB, None, ended(false, true)), "create");
        assert_eq!(fate(&before, JOB, None, ended(false, false)), "keep");
    }

    #[test]
    fn it_is_deleted_when_it_is_written_down_that_it_has_run() {
        let clears =
            |policy: &str| json!({"moorline.dev/hook": "before", "moorline.dev/hook-delete": policy});
        let ended = |well: Option<bool>| {
            move |policy: &mut Policy, hash| {
                policy.completed = BTreeMap::from([(id(JOB), hash)]);
                policy.succeeded = well.map(|well| (id(JOB), well)).into_iter().collect();
            }
        };
        let there: Option<Seen<'_>> = Some(&|_, _| {});
        assert_eq!(fate(&clears("succeeded"), JOB, there, ended(Some(true))), "prune");
        assert_eq!(fate(&clears("succeeded"), JOB, there, ended(Some(false))), "keep");
        assert_eq!(fate(&clears("failed"), JOB, there, ended(Some(false))), "prune");
        assert_eq!(fate(&clears("succeeded"), JOB, there, ended(None)), "keep", "not written down yet");
        assert_eq!(fate(&json!({"moorline.dev/hook": "before"}), JOB, there, ended(Some(true))), "keep");
    }
}
