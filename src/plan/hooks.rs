//! What becomes of an object that runs at a moment of a roll-out.
//!
//! In: a hook as it is wanted and as it is seen, and how far the roll-out is. Out: whether it runs now, has run, or waits; none
//! where it is an object like any other. A hook that has run for this very set does not run again, whoever deletes it.

use super::rest::finished;
use super::rollout::Rollout;
use super::{Action, Change, Decision, Hold, Policy};
use crate::desired::{DesiredObject, Hook, Rollouts, is_same_hook};
use crate::object::{GroupKind, ObjectId};
use crate::observed::{Ended, Mark, Observed};

/// Kinds that are there for others, and are changed in place also where they are hooks.
const STAYING: [(&str, &str); 9] = [
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "Service"),
    ("", "PersistentVolumeClaim"),
    ("", "Namespace"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    RBAC,
];
/// All kinds of this group are.
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "*");

/// Decides about a hook.
pub(super) fn hook(
    object: &DesiredObject,
    hook: Hook,
    seen: Option<&Observed>,
    policy: &Policy,
) -> Option<Decision> {
    let is_due = policy.rollout.as_ref().is_some_and(|rollout| is_due(hook, rollout));
    let Some(seen) = seen else {
        let has_run = finished(object, policy);
        return (has_run || !is_due).then_some(Decision::Keep);
    };
    if seen.deleting || seen.mark != Mark::Ours || !seen.applied_by_us {
        // Whose it is, and what is on its way out, is decided as for every object.
        return (!is_due && seen.mark != Mark::Ours).then_some(Decision::Keep);
    }
    let recorded = seen.recorded?;
    if object.is_recorded_as(&recorded) {
        return cleared(object, hook, seen, policy);
    }
    if !is_due {
        return Some(Decision::Keep);
    }
    if stays(&object.id) {
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

fn may_end(id: &ObjectId) -> bool {
    crate::observed::may_end(id)
}

fn stays(id: &ObjectId) -> bool {
    let GroupKind { group, kind } = id.group_kind();
    STAYING.iter().any(|(of, is)| **of == *group && (*is == "*" || **is == *kind))
}
