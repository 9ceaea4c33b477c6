//! What becomes of an object that runs at a moment of a roll-out.
//!
//! In: a hook as it is wanted and as it is seen, and how far the roll-out is. Out: whether it runs now, has run, or waits; none
//! where it is an object like any other. A hook that has run for this very set does not run again, whoever deletes it.

use super::rest::finished;
use super::rollout::Rollout;
use super::{Action, Change, Decision, Hold, Policy};
use crate::desired::{DesiredObject, Hook, Rollouts, is_same_hook};
use crate::object::ObjectId;
use crate::observed::{Ended, Mark, Observed, may_end};

/// Kinds that run to an end, each by its group. A hook of one of these is deleted and made anew for another run; of every other
/// kind it is changed in place, as what is no hook: nobody knows what would go with it.
const RUNNING: [(&str, &str); 5] = [
    ("batch", "Job"),
    ("", "Pod"),
    ("argoproj.io", "Workflow"),
    ("tekton.dev", "PipelineRun"),
    ("tekton.dev", "TaskRun"),
];

/// Decides about a hook.
pub(super) fn hook(
    object: &DesiredObject,
    hook: Hook,
    seen: Option<&Observed>,
    policy: &Policy,
) -> Option<Decision> {
    let is_due = policy.rollout.as_ref().is_some_and(|rollout| is_due(hook, rollout));
    let again = is_due && is_asked_again(object, policy);
    let Some(seen) = seen else {
        let has_run = finished(object, policy) && !again;
        if again {
            return Some(Decision::Write(Action::Create));
        }
        return (has_run || !is_due).then_some(Decision::Keep);
    };
    if seen.deleting || seen.mark != Mark::Ours || !seen.applied_by_us {
        // Whose it is, and what is on its way out, is decided as for every object.
        return (!is_due && seen.mark != Mark::Ours).then_some(Decision::Keep);
    }
    let recorded = seen.recorded?;
    if object.is_recorded_as(&recorded) && again && runs(&object.id, policy) {
        return Some(Decision::Write(Action::Update(Change::Again)));
    }
    if object.is_recorded_as(&recorded) {
        return cleared(object, hook, seen, policy);
    }
    if !is_due {
        return Some(Decision::Keep);
    }
    if !runs(&object.id, policy) {
        return None;
    }
    // Its own run for the set of before is let come to its end, unless that takes too long.
    let given_up = policy.rollout.as_ref().is_some_and(|rollout| rollout.degraded.contains(&object.id));
    let goes_on = seen.ended == Ended::No && is_same_hook(&object.hash, &recorded) && !given_up;
    Some(match goes_on && may_end(&object.id) {
        true => Decision::Hold(Hold::Runs),
        false => Decision::Write(Action::Update(Change::Again)),
    })
}

/// True if the roll-out has come to it, as far as that depends on what kind of roll-out it is.
fn is_due(hook: Hook, rollout: &Rollout) -> bool {
    let is_part = hook.phase.is_some()
        && match hook.rollouts {
            Rollouts::All => true,
            Rollouts::First => !rollout.is_later,
            Rollouts::Later => rollout.is_later,
        };
    is_part || hook.on_failure && rollout.failed
}

/// True for a hook that has failed, while a person asks for another run.
fn is_asked_again(object: &DesiredObject, policy: &Policy) -> bool {
    let failed = || {
        let degraded = policy.rollout.as_ref().is_some_and(|rollout| rollout.degraded.contains(&object.id));
        let ended_badly = finished(object, policy) && policy.ended_well.get(&object.id) == Some(&false);
        // A run that only takes long is not ended for the next one.
        ended_badly || degraded && !may_end(&object.id)
    };
    policy.rollout.as_ref().is_some_and(|rollout| rollout.again) && failed()
}

/// A hook that has run is deleted where it asks for that, once it is written down that it has.
fn cleared(object: &DesiredObject, hook: Hook, seen: &Observed, policy: &Policy) -> Option<Decision> {
    let failed = policy.ended_well.get(&object.id).map(|well| !well)?;
    let clears = finished(object, policy) && if failed { hook.clears_failure } else { hook.clears_success };
    clears.then(|| {
        Decision::Write(Action::Prune {
            uid: seen.uid.clone(),
            resource_version: seen.resource_version.clone(),
        })
    })
}

fn runs(id: &ObjectId, policy: &Policy) -> bool {
    may_run(id) && !policy.protected.contains(&id.group_kind())
}

/// True for the kinds that run to an end.
pub fn may_run(id: &ObjectId) -> bool {
    RUNNING.iter().any(|(group, kind)| id.is(group, kind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::super::given::{id, manifest, seen, wanted};
    use super::super::plan;
    use super::*;
    use crate::api::SpecHash;
    use crate::observed::ObservedSet;

    const JOB: &str = "batch/Job|a/up";

    fn hook_with(annotations: &Value, text: &str) -> Value {
        let mut manifest = manifest(text, 0);
        manifest["metadata"]["annotations"] = annotations.clone();
        manifest
    }

    type Seen<'a> = &'a dyn Fn(&mut Observed, SpecHash);

    /// What becomes of a hook, in one word; `change` says how it is seen, if it is.
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
            let mut object = Observed { recorded: Some(hash), ..seen(&id(text)) };
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
        let finished = |policy: &mut Policy, hash| policy.finished = BTreeMap::from([(id(JOB), hash)]);
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
        let later = |policy: &mut Policy, _| policy.rollout.iter_mut().for_each(|it| it.is_later = true);
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
        let running = |seen: &mut Observed, hash| seen.recorded = Some(for_another_set(hash));
        let ended = |seen: &mut Observed, hash| (running(seen, hash), seen.ended = Ended::Yes).1;
        let other = |seen: &mut Observed, hash: SpecHash| {
            seen.recorded = Some(SpecHash { digest: [7; 32], ..hash });
        };
        assert_eq!(fate(&before, JOB, Some(&running), |_, _| {}), "Runs");
        assert_eq!(fate(&before, JOB, Some(&ended), |_, _| {}), "Again");
        assert_eq!(
            fate(&before, JOB, Some(&other), |_, _| {}),
            "Again",
            "a commit that changes it goes first"
        );
        assert_eq!(fate(&before, JOB, Some(&running), rolled_out), "keep");
        let hangs = |policy: &mut Policy, _| {
            policy.rollout.iter_mut().for_each(|it| it.degraded = [id(JOB)].into_iter().collect());
        };
        assert_eq!(fate(&before, JOB, Some(&running), hangs), "Again", "nobody waits for what hangs");
        // What is there for others is changed in place.
        assert_eq!(fate(&before, "/ConfigMap|a/x", Some(&other), |_, _| {}), "Committed");
        assert_eq!(fate(&before, "rbac.authorization.k8s.io/Role|a/x", Some(&other), |_, _| {}), "Committed");
        assert_eq!(fate(&before, "apps/StatefulSet|a/x", Some(&other), |_, _| {}), "Committed");
        assert_eq!(fate(&before, "/PersistentVolumeClaim|a/x", Some(&other), |_, _| {}), "Committed");
        // What goes only by approval is never replaced, whatever runs it.
        let protects = |policy: &mut Policy, _| policy.protected.extend([id(JOB).group_kind()]);
        assert_eq!(fate(&before, JOB, Some(&other), protects), "Committed");
    }

    #[test]
    fn one_that_has_failed_runs_again_when_a_person_asks() {
        let before = json!({"moorline.dev/hook": "before"});
        let ended = |well: bool, again: bool| {
            move |policy: &mut Policy, hash| {
                policy.finished = BTreeMap::from([(id(JOB), hash)]);
                policy.ended_well = BTreeMap::from([(id(JOB), well)]);
                policy.rollout.iter_mut().for_each(|it| it.again = again);
            }
        };
        let there: Option<Seen<'_>> = Some(&|_, _| {});
        assert_eq!(fate(&before, JOB, there, ended(false, true)), "Again");
        assert_eq!(fate(&before, JOB, there, ended(false, false)), "keep");
        assert_eq!(fate(&before, JOB, there, ended(true, true)), "keep");
        // Cleared away since, as by its deadline.
        assert_eq!(fate(&before, JOB, None, ended(false, true)), "create");
        assert_eq!(fate(&before, JOB, None, ended(false, false)), "keep");
    }

    #[test]
    fn it_is_deleted_when_it_is_written_down_that_it_has_run() {
        let clears =
            |policy: &str| json!({"moorline.dev/hook": "before", "moorline.dev/hook-delete": policy});
        let ended = |well: Option<bool>| {
            move |policy: &mut Policy, hash| {
                policy.finished = BTreeMap::from([(id(JOB), hash)]);
                policy.ended_well = well.map(|well| (id(JOB), well)).into_iter().collect();
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
