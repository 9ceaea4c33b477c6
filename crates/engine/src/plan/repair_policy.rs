//! Repair policy: objects that differ from Git and are not repaired for now.
//!
//! In: an object as desired and as observed, and the policy.
//! Out: the decision to repair or to hold it: a pause annotation, a contest with another manager,
//! or a completed object that was deleted afterwards.

use std::collections::BTreeMap;
use std::fmt;

use super::{Action, Change, Decision, DriftMode, Hold, Policy};
use crate::desired::DesiredObject;
use crate::observed::{Drift, Observed, ObservedSet};
use moorline_api::SpecHash;
use moorline_core::grammar;
use moorline_core::object::ObjectId;

/// Another manager reverts our repairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contest {
    /// The other field manager, if known.
    pub manager: Option<Box<str>>,
    /// The fields that were repaired last; empty if the whole object was deleted.
    pub fields: Vec<String>,
    /// Hash of the desired object at that time: a commit that changes the object is applied.
    pub hash: SpecHash,
}

impl fmt::Display for Contest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manager = self.manager.as_deref().unwrap_or("an unknown manager");
        match self.fields.as_slice() {
            [] => write!(f, "{manager} reverts every repair")?,
            [only] => write!(f, "{manager} reverts every repair of {only}")?,
            [first, more @ ..] => {
                let more = grammar::more(more.len(), "field");
                write!(f, "{manager} reverts every repair of {first} and {more}")?;
            }
        }
        f.write_str("; repairs are retried at growing intervals")
    }
}

/// Returns the drift mode for this object. A pause annotation turns repair into report.
pub(super) fn effective_drift_mode(seen: &Observed, policy: &Policy) -> DriftMode {
    match policy.drift {
        DriftMode::Repair if pause_end(seen, policy).is_some() => DriftMode::Report,
        mode @ (DriftMode::Repair | DriftMode::Report | DriftMode::Ignore) => mode,
    }
}

/// Returns the end of the pause that an annotation requests.
pub(super) fn pause_end(seen: &Observed, policy: &Policy) -> Option<i64> {
    seen.pause_until.filter(|until| *until > policy.now)
}

/// Returns the contest over the current desired form of an object.
fn contest<'a>(object: &DesiredObject, contests: &'a BTreeMap<ObjectId, Contest>) -> Option<&'a Contest> {
    contests.get(&object.id).filter(|contest| object.is_recorded_as(&contest.hash))
}

fn hold(contest: &Contest) -> Decision {
    Decision::Hold(Hold::Contested(Box::new(contest.clone())))
}

/// Decides about a drifted object. Of a contested one only the fields that others leave alone are
/// repaired.
pub(super) fn decide_repair(object: &DesiredObject, policy: &Policy, change: Change) -> Decision {
    let Some(contest) = contest(object, &policy.contested) else {
        return Decision::Write(Action::Update(change));
    };
    let mut drift = match change {
        Change::Drifted(drift) if !contest.fields.is_empty() => drift,
        Change::Drifted(_)
        | Change::Committed
        | Change::EntryLost
        | Change::Unverified
        | Change::MaybeDrifted
        | Change::RerunHook => return hold(contest),
    };
    drift.fields.retain(|field| !contest.fields.contains(field));
    match drift.fields.is_empty() {
        true => hold(contest),
        false => Decision::Write(Action::Update(Change::Drifted(drift))),
    }
}

/// Decides about a verified object, whose last apply may have left out contested fields.
pub(super) fn decide_verified(object: &DesiredObject, seen: &Observed, policy: &Policy) -> Decision {
    if let Some(again) = contest(object, &policy.reclaimed) {
        let fields: Vec<String> =
            again.fields.iter().filter(|field| seen.has_lost_field(field)).cloned().collect();
        if !fields.is_empty() {
            let drift = Drift { fields, manager: again.manager.as_deref().map(str::to_owned), time: None };
            return decide_repair(object, policy, Change::Drifted(Box::new(drift)));
        }
    }
    match contest(object, &policy.contested) {
        Some(contest) if contest.fields.iter().any(|field| seen.has_lost_field(field)) => hold(contest),
        Some(_) | None => Decision::Keep,
    }
}

/// True if the object has completed in its current desired form.
pub(super) fn has_completed(object: &DesiredObject, policy: &Policy) -> bool {
    policy.completed.get(&object.id).is_some_and(|hash| object.is_recorded_as(hash))
}

/// Decides about a missing object that should exist; none if it is simply created.
pub(super) fn decide_missing(object: &DesiredObject, is_listed: bool, policy: &Policy) -> Option<Decision> {
    match has_completed(object, policy) {
        true => Some(Decision::Keep),
        false if policy.was_applied && is_listed && policy.drift != DriftMode::Repair => {
            Some(Decision::Hold(Hold::Deleted))
        }
        false => existence_hold(object, policy),
    }
}

/// Returns the hold of an object that others keep deleting.
pub(super) fn existence_hold(object: &DesiredObject, policy: &Policy) -> Option<Decision> {
    // A contest over single fields does not concern the existence of the object.
    contest(object, &policy.contested).filter(|contest| contest.fields.is_empty()).map(hold)
}

/// Returns the end of the next pause.
pub fn next_pause_end(observed: &ObservedSet, now: i64) -> Option<i64> {
    observed.iter().filter_map(|(_, seen)| seen.pause_until).filter(|until| *until > now).min()
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, plan};
    use super::*;
    use crate::observed::Verification;
    use crate::plan::test_fixtures::{id, manifest, seen, wanted};
    use moorline_managed_fields::FieldSet;
    use serde_json::{Value, json};

    const ID: &str = "batch/Job|a/a";

    #[test]
    fn a_contest_counts_the_fields() {
        let hash = wanted(&[manifest(ID, 0)]).objects()[0].hash;
        let told = |fields: &[&str]| {
            let fields = fields.iter().map(|it| (*it).to_owned()).collect();
            Contest { manager: Some("other".into()), fields, hash }.to_string()
        };
        let told = |fields| told(fields).replace("; repairs are retried at growing intervals", "");
        assert_eq!(told(&[]), "other reverts every repair");
        assert_eq!(told(&["a"]), "other reverts every repair of a");
        assert_eq!(told(&["a", "b"]), "other reverts every repair of a and 1 more field");
        assert_eq!(told(&["a", "b", "c"]), "other reverts every repair of a and 2 more fields");
    }

    /// The plan for one object, as text.
    fn word(change: impl FnOnce(&mut Observed, SpecHash), policy: &Policy) -> String {
        let desired = wanted(&[manifest(ID, 0)]);
        let mut object = seen(&id(ID));
        object.recorded_hash = Some(desired.objects()[0].hash);
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
        seen.verification =
            Verification::Drifted(Box::new(Drift { fields: vec!["a".into()], ..Drift::default() }));
    }

    #[test]
    fn where_the_server_hides_our_entry_only_a_move_is_looked_at() {
        let origin = moorline_core::object::Origin { file: "live".into(), document: 0, line: 1, item: None };
        let live = |version: &str| {
            let metadata = json!({
                "name": "a", "namespace": "a", "uid": "1", "resourceVersion": version,
                "annotations": {"moorline.dev/id": format!("ops/web|{ID}")},
            });
            let Value::Object(body) = json!({"metadata": metadata}) else { unreachable!("a mapping") };
            moorline_core::object::Object { id: id(ID), version: "v1".into(), body, origin: origin.clone() }
        };
        let owner = moorline_api::SyncName::new("ops", "web");
        let applied = Observed::from_apply(&live("7"), &owner);
        let later = applied.update_from_event(&live("8"), &owner);
        let check = |known: Observed, expect: &str| {
            let with = |seen: &mut Observed, hash| {
                *seen = Observed {
                    recorded_hash: Some(hash),
                    ownership: crate::observed::Ownership::Ours,
                    ..known
                }
            };
            assert_eq!(word(with, &Policy::default()), expect);
        };
        check(applied, "keep");
        check(later, "MaybeDrifted");
        check(Observed::from_object(&live("7"), &owner), "EntryLost");
    }

    #[test]
    fn before_the_time_drift_is_reported_and_from_then_on_repaired() {
        let check = |until: Option<i64>, expect: [&str; 3]| {
            let policy = Policy { now: 1000, ..Policy::default() };
            let drift = word(|seen, _| (seen.pause_until = until, drifted(seen)).1, &policy);
            let moved = word(
                |seen, _| (seen.pause_until, seen.verification) = (until, Verification::MaybeDrifted),
                &policy,
            );
            let committed = word(|seen, _| (seen.pause_until, seen.recorded_hash) = (until, None), &policy);
            assert_eq!([drift, moved, committed], expect, "{until:?}");
        };
        check(None, ["repair", "MaybeDrifted", "Committed"]);
        check(Some(1000), ["repair", "MaybeDrifted", "Committed"]);
        check(Some(1001), ["DriftReported", "Unverified", "Paused"]);
        let mut observed = ObservedSet::default();
        for (name, until) in [("/ConfigMap|a/a", 7), ("/ConfigMap|a/b", 9), ("/ConfigMap|a/c", 8)] {
            observed.insert(id(name), Observed { pause_until: Some(until), ..seen(&id(name)) });
        }
        assert_eq!(next_pause_end(&observed, 7), Some(8));
        assert_eq!(next_pause_end(&observed, 9), None);
    }

    #[test]
    fn what_is_contested_waits_unless_a_commit_changes_it() {
        let desired = wanted(&[manifest(ID, 0)]);
        let contest = Contest { manager: None, fields: vec![], hash: desired.objects()[0].hash };
        let policy =
            Policy { contested: [(id(ID), contest.clone())].into_iter().collect(), ..Policy::default() };
        assert_eq!(word(|seen, _| drifted(seen), &policy), "Contested");
        assert_eq!(word(|seen, _| seen.verification = Verification::MaybeDrifted, &policy), "Contested");
        assert_eq!(word(|seen, _| seen.applied_by_us = false, &policy), "Contested");
        assert_eq!(word(|_, _| {}, &policy), "keep");
        assert_eq!(word(|seen, _| seen.recorded_hash = None, &policy), "Committed");
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &policy)), "Contested");
        let digest = [7; 32];
        let changed = Contest { hash: SpecHash { digest, ..contest.hash }, ..contest };
        let policy = Policy { contested: [(id(ID), changed)].into_iter().collect(), ..Policy::default() };
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &policy)), "create");
    }

    #[test]
    fn of_a_contested_object_only_what_others_fight_for_is_left() {
        let desired = wanted(&[manifest(ID, 0)]);
        let hash = desired.objects()[0].hash;
        let contest = Contest { manager: Some("hpa".into()), fields: vec!["spec.a".into()], hash };
        let contests: BTreeMap<_, _> = [(id(ID), contest)].into_iter().collect();
        let now = Policy { contested: contests.clone(), ..Policy::default() };
        let later = Policy { reclaimed: contests, ..Policy::default() };
        let lost = |fields: &[&str]| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            move |seen: &mut Observed, _| {
                seen.verification = Verification::Drifted(Box::new(Drift { fields, ..Drift::default() }));
            }
        };
        assert_eq!(word(lost(&["spec.a"]), &now), "Contested");
        assert_eq!(word(lost(&["spec.a"]), &later), "repair");
        let repaired = |policy: &Policy| {
            let mut object = Observed { recorded_hash: Some(hash), ..seen(&id(ID)) };
            lost(&["spec.a", "spec.b"])(&mut object, hash);
            let mut observed = ObservedSet::default();
            observed.insert(id(ID), object);
            let plan = plan(&desired, &observed, policy);
            let fields = plan.steps().map(|step| match &step.action {
                Action::Update(Change::Drifted(drift)) => drift.fields.join(" "),
                other => other.verb().to_owned(),
            });
            fields.collect::<String>()
        };
        assert_eq!((repaired(&now), repaired(&later)), ("spec.b".to_owned(), "spec.a spec.b".to_owned()));
        let owns = |fields: Value| {
            move |seen: &mut Observed, _| seen.own_entry = Some(FieldSet::parse(&fields).to_bytes().into())
        };
        let (with, without) = (json!({"f:spec": {"f:a": {}, "f:b": {}}}), json!({"f:spec": {"f:b": {}}}));
        assert_eq!(word(owns(with.clone()), &now), "keep", "nobody has undone it yet");
        assert_eq!(word(owns(with), &later), "keep");
        assert_eq!(word(owns(without.clone()), &now), "Contested", "all but that is as Git says");
        assert_eq!(word(owns(without), &later), "repair");
    }

    #[test]
    fn a_deleted_object_is_created_again_only_where_drift_is_repaired() {
        let desired = wanted(&[manifest(ID, 0)]);
        let check = |drift, was_applied, is_listed: bool, expect: &str| {
            let policy = Policy { drift, was_applied, ..Policy::default() };
            let mut observed = ObservedSet::default();
            if !is_listed {
                observed.mark_unlisted(id(ID).group_kind());
            }
            assert_eq!(shown(&plan(&desired, &observed, &policy)), expect, "{drift:?} {was_applied}");
        };
        for drift in [DriftMode::Report, DriftMode::Ignore] {
            check(drift, true, true, "Deleted");
            check(drift, true, false, "create");
            check(drift, false, true, "create");
        }
        check(DriftMode::Repair, true, true, "create");
    }

    #[test]
    fn what_is_finished_is_not_created_again_before_it_changes() {
        let desired = wanted(&[manifest(ID, 0)]);
        let hash = desired.objects()[0].hash;
        let with = |hash| Policy { completed: [(id(ID), hash)].into_iter().collect(), ..Policy::default() };
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &with(hash))), "keep");
        assert_eq!(word(|seen, _| seen.deleting = true, &with(hash)), "keep");
        let other = SpecHash { digest: [7; 32], ..hash };
        assert_eq!(shown(&plan(&desired, &ObservedSet::default(), &with(other))), "create");
    }
}
