//! Objects that are not repaired for a while, although they are not as Git says.
//!
//! In: an object as it is wanted and as it is seen, and the policy. Out: whether it is left as it is: a person asks
//! for time, others undo every repair, or it has done its work and was cleared away.

use std::fmt;

use super::{Decision, DriftMode, Hold, Policy};
use crate::api::SpecHash;
use crate::desired::DesiredObject;
use crate::observed::{Observed, ObservedSet};

/// Others undo what is repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contest {
    /// The field manager of the other side, where it is known.
    pub manager: Option<Box<str>>,
    /// The fields that were repaired last; none where the whole object was deleted.
    pub fields: Vec<String>,
    /// What Git said then: a commit that changes the object is applied.
    pub hash: SpecHash,
}

impl fmt::Display for Contest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manager = self.manager.as_deref().unwrap_or("somebody who leaves no name");
        match self.fields.as_slice() {
            [] => write!(f, "{manager} undoes every repair")?,
            [only] => write!(f, "{manager} undoes every repair of {only}")?,
            [first, more @ ..] => {
                write!(f, "{manager} undoes every repair of {first} and {} more fields", more.len())?;
            }
        }
        f.write_str(": it is tried again less and less often")
    }
}

/// What follows from drift of this object. A person who asks for time gets a report instead of a repair.
pub(super) fn mode(seen: &Observed, policy: &Policy) -> DriftMode {
    match policy.drift {
        DriftMode::Repair if paused(seen, policy).is_some() => DriftMode::Report,
        mode @ (DriftMode::Repair | DriftMode::Report | DriftMode::Ignore) => mode,
    }
}

/// Until when a person asks to leave the object as it is.
pub(super) fn paused(seen: &Observed, policy: &Policy) -> Option<i64> {
    seen.pause_until.filter(|until| *until > policy.now)
}

/// The hold of an object whose repairs others undo.
pub(super) fn contested(object: &DesiredObject, policy: &Policy) -> Option<Hold> {
    let contest = policy.contested.get(&object.id)?;
    object.is_recorded_as(&contest.hash).then(|| Hold::Contested(Box::new(contest.clone())))
}

/// True if the object has come to its end, as it is wanted now.
pub(super) fn finished(object: &DesiredObject, policy: &Policy) -> bool {
    policy.finished.get(&object.id).is_some_and(|hash| object.is_recorded_as(hash))
}

/// What becomes of an object that should exist and is not there, if it is not simply created.
pub(super) fn absent(object: &DesiredObject, policy: &Policy) -> Option<Decision> {
    match finished(object, policy) {
        true => Some(Decision::Keep),
        false => contested(object, policy).map(Decision::Hold),
    }
}

/// When the next of the pauses ends for which people ask.
pub fn next_expiry(observed: &ObservedSet, now: i64) -> Option<i64> {
    observed.iter().filter_map(|(_, seen)| seen.pause_until).filter(|until| *until > now).min()
}

#[cfg(test)]
mod tests {
    use super::super::given::{id, manifest, seen, wanted};
    use super::super::{Action, Change, Plan, plan};
    use super::*;
    use crate::observed::{Drift, Standing};

    const ID: &str = "batch/Job|a/a";

    /// The plan for one object, in one word.
    fn word(change: impl FnOnce(&mut Observed, SpecHash), policy: &Policy) -> String {
        let desired = wanted(&[manifest(ID, 0)]);
        let mut object = seen(&id(ID));
        object.recorded = Some(desired.objects()[0].hash);
        change(&mut object, desired.objects()[0].hash);
        let mut observed = ObservedSet::default();
        observed.insert(id(ID), object);
        shown(&plan(&desired, &observed, policy))
    }

    fn shown(plan: &Plan) -> String {
        let steps = plan.steps().map(|step| match &step.action {
            Action::Update(Change::Drifted(_)) => "repair".to_owned(),
            Action::Update(change) => format!("{change:?}"),
            other => other.verb().to_owned(),
        });
        let held = plan.held.iter().map(|(_, hold)| hold.reason().to_owned());
        steps.chain(held).chain(plan.kept.iter().map(|_| "keep".to_owned())).collect()
    }

    fn drifted(seen: &mut Observed) {
        seen.standing = Standing::Drifted(Box::new(Drift { fields: vec!["a".into()], ..Drift::default() }));
    }

    #[test]
    fn before_the_time_drift_is_reported_and_from_then_on_repaired() {
        let check = |until: Option<i64>, expect: [&str; 3]| {
            let policy = Policy { now: 1000, ..Policy::default() };
            let drift = word(|seen, _| (seen.pause_until = until, drifted(seen)).1, &policy);
            let moved = word(|seen, _| (seen.pause_until, seen.standing) = (until, Standing::Moved), &policy);
            let committed = word(|seen, _| (seen.pause_until, seen.recorded) = (until, None), &policy);
            assert_eq!([drift, moved, committed], expect, "{until:?}");
        };
        check(None, ["repair", "Moved", "Committed"]);
        check(Some(1000), ["repair", "Moved", "Committed"]);
        check(Some(1001), ["DriftReported", "Unverified", "Paused"]);
        let mut observed = ObservedSet::default();
        for (name, until) in [("/ConfigMap|a/a", 7), ("/ConfigMap|a/b", 9), ("/ConfigMap|a/c", 8)] {
            observed.insert(id(name), Observed { pause_until: Some(until), ..seen(&id(name)) });
        }
        assert_eq!(next_expiry(&observed, 7), Some(8));
        assert_eq!(next_expiry(&observed, 9), None);
    }

    #[test]
    fn what_is_contested_waits_unless_a_commit_changes_it() {
        let desired = wanted(&[manifest(ID, 0)]);
        let contest = Contest { manager: None, fields: vec![], hash: desired.objects()[0].hash };
        let policy =
            Policy { contested: [(id(ID), contest.clone())].into_iter().collect(), ..Policy::default() };
        assert_eq!(word(|seen, _| drifted(seen), &policy), "Contested");
        assert_eq!(word(|seen, _| seen.standing = Standing::Moved, &policy), "Contested");
        assert_eq!(word(|seen, _| seen.applied_by_us = false, &policy), "Contested");
        assert_eq!(word(|_, _| {}, &policy), "keep");
        assert_eq!(word(|seen, _| seen.recorded = None, &policy), "Committed");
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &policy)), "Contested");
        let digest = [7; 32];
        let changed = Contest { hash: SpecHash { digest, ..contest.hash }, ..contest };
        let policy = Policy { contested: [(id(ID), changed)].into_iter().collect(), ..Policy::default() };
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &policy)), "create");
    }

    #[test]
    fn what_is_finished_is_not_created_again_before_it_changes() {
        let desired = wanted(&[manifest(ID, 0)]);
        let hash = desired.objects()[0].hash;
        let with = |hash| Policy { finished: [(id(ID), hash)].into_iter().collect(), ..Policy::default() };
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &with(hash))), "keep");
        assert_eq!(word(|seen, _| seen.deleting = true, &with(hash)), "keep");
        let other = SpecHash { digest: [7; 32], ..hash };
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &with(other))), "create");
    }
}
