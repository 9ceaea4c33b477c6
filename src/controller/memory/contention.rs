//! Detects controllers that keep undoing our repairs, and backs off from the contested fields.
//!
//! In: repairs and deletions, each with its time.
//! Out: [`Contest`]s for the plan.
//!
//! Fighting another controller over a field costs the API server more than the drift itself. After
//! a few repairs of one field it is left with its live value, reported as contested, and retried
//! with growing pauses. A manager that changes one field after another contests none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::SpecHash;
use crate::controller::schedule::Uptime;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::plan::{Change, Contest, Outcome};

/// Repairs of a field against the same manager within [`WINDOW`] that make it contested.
const MAX_REPAIRS: usize = 5;
/// Deletions of an object within [`WINDOW`] that are tolerated before it is contested.
const MAX_DELETIONS: usize = 3;
/// Age after which a revert is forgotten. A contest without a revert for this long is over.
const WINDOW: Duration = Duration::from_secs(600);
/// First and longest pause between attempts.
const PAUSE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));

/// Contention of all objects that other actors changed recently.
#[derive(Debug, Default)]
pub(crate) struct Contention(BTreeMap<ObjectId, ObjectContention>);

#[derive(Debug)]
struct ObjectContention {
    hash: SpecHash,
    reverts: Vec<(Uptime, Revert)>,
    contests: Vec<ContestedFields>,
}

/// Fields that are left to another manager for a while.
#[derive(Debug)]
struct ContestedFields {
    manager: Option<Box<str>>,
    /// The fields; empty if the whole object is contested.
    fields: Vec<String>,
    /// Time of the next attempt.
    until: Uptime,
    pause: Duration,
}

/// A change by another actor that had to be repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Revert {
    /// These fields were changed, by this manager if it is known.
    Changed(Option<Box<str>>, Vec<String>),
    Deleted,
}

impl Revert {
    /// Returns true if both reverts are about this field; without a field, if both are about none.
    fn is_like(&self, other: &Self, field: Option<&String>) -> bool {
        match (self, other) {
            (Self::Deleted, Self::Deleted) => true,
            (Self::Changed(one, own), Self::Changed(other, others)) if one == other => match field {
                Some(field) => own.contains(field) && others.contains(field),
                None => own.is_empty() && others.is_empty(),
            },
            _ => false,
        }
    }

    /// Returns true if this revert continues the contest.
    fn continues(&self, dispute: &ContestedFields) -> bool {
        match self {
            Self::Changed(manager, fields) => {
                let same = dispute.fields.iter().any(|field| fields.contains(field));
                *manager == dispute.manager && (same || dispute.fields.is_empty() && fields.is_empty())
            }
            Self::Deleted => dispute.manager.is_none() && dispute.fields.is_empty(),
        }
    }
}

impl ObjectContention {
    /// Returns the fields with at least `limit` reverts like this one, itself included; empty if
    /// the reverts are about no field. `None` if there are not as many.
    fn contested(&self, revert: &Revert, limit: usize) -> Option<Vec<String>> {
        let is_often = |field: Option<&String>| {
            self.reverts.iter().filter(|(_, known)| known.is_like(revert, field)).count() >= limit
        };
        match revert {
            Revert::Changed(_, fields) if !fields.is_empty() => {
                let often: Vec<String> =
                    fields.iter().filter(|field| is_often(Some(field))).cloned().collect();
                (!often.is_empty()).then_some(often)
            }
            Revert::Changed(..) | Revert::Deleted => is_often(None).then(Vec::new),
        }
    }

    /// Returns the contest that starts with this revert, if it is one too many about uncontested
    /// fields.
    fn begins(&self, revert: &Revert, now: Uptime) -> Option<ContestedFields> {
        let (limit, manager) = match revert {
            Revert::Changed(manager, _) => (MAX_REPAIRS, manager.clone()),
            Revert::Deleted => (MAX_DELETIONS + 1, None),
        };
        let mut fields = self.contested(revert, limit)?;
        let known: Vec<&ContestedFields> =
            self.contests.iter().filter(|dispute| dispute.manager == manager).collect();
        let whole = fields.is_empty();
        fields.retain(|field| !known.iter().any(|dispute| dispute.fields.contains(field)));
        let is_new = match whole {
            true => !known.iter().any(|dispute| dispute.fields.is_empty()),
            false => !fields.is_empty(),
        };
        is_new.then(|| ContestedFields { manager, fields, until: now + PAUSE.0, pause: PAUSE.0 })
    }
}

impl Contention {
    /// Records the repairs among these outcomes.
    pub(crate) fn learn<'a>(
        &mut self,
        outcomes: impl IntoIterator<Item = (&'a ObjectId, &'a Outcome)>,
        desired: &DesiredSet,
        now: Uptime,
    ) {
        for (id, outcome) in outcomes {
            let (Outcome::Updated(change), Some(wanted)) = (outcome, desired.get(id)) else { continue };
            let revert = match change {
                Change::Committed | Change::RerunHook => continue,
                Change::Drifted(drift) => {
                    Revert::Changed(drift.manager.as_deref().map(Box::from), drift.fields.clone())
                }
                // If an apply changes the result of the last one, another actor works against it
                // without leaving a trace.
                Change::EntryLost | Change::Unverified | Change::MaybeDrifted => {
                    Revert::Changed(None, Vec::new())
                }
            };
            self.record_revert(id, wanted.hash, revert, now);
        }
    }

    /// Records that another actor deleted a desired object.
    pub(crate) fn deleted(&mut self, id: &ObjectId, hash: SpecHash, now: Uptime) {
        self.record_revert(id, hash, Revert::Deleted, now);
    }

    fn record_revert(&mut self, id: &ObjectId, hash: SpecHash, revert: Revert, now: Uptime) {
        let new = || ObjectContention { hash, reverts: Vec::new(), contests: Vec::new() };
        let fight = self.0.entry(id.clone()).or_insert_with(new);
        if fight.hash != hash {
            // No one has undone this commit yet.
            *fight = new();
        }
        fight.reverts.retain(|(time, _)| *time + WINDOW > now);
        fight.reverts.push((now, revert.clone()));
        // The retried repair was undone again.
        for dispute in fight.contests.iter_mut().filter(|dispute| revert.continues(dispute)) {
            dispute.pause = (dispute.pause * 2).min(PAUSE.1);
            dispute.until = now + dispute.pause;
        }
        fight.contests.extend(fight.begins(&revert, now));
    }

    /// Returns the contests that are in effect now. Quiet ones are forgotten.
    pub(crate) fn contested(&mut self, now: Uptime) -> BTreeMap<ObjectId, Contest> {
        self.0.retain(|_, fight| {
            fight.contests.retain(|dispute| dispute.until + WINDOW > now);
            !fight.contests.is_empty() || fight.reverts.iter().any(|(time, _)| *time + WINDOW > now)
        });
        self.all(|dispute| dispute.until > now)
    }

    /// Returns the contested fields that are claimed again now.
    pub(crate) fn due_for_retry(&self, now: Uptime) -> BTreeMap<ObjectId, Contest> {
        self.all(|dispute| dispute.until <= now && !dispute.fields.is_empty())
    }

    /// Returns one contest for each object with matching entries.
    fn all(&self, which: impl Fn(&ContestedFields) -> bool) -> BTreeMap<ObjectId, Contest> {
        let contest = |(id, fight): (&ObjectId, &ObjectContention)| {
            let disputes: Vec<&ContestedFields> = fight.contests.iter().filter(|it| which(it)).collect();
            // A contest about the whole object covers each of its fields.
            let whole = disputes.iter().any(|dispute| dispute.fields.is_empty());
            let fields = disputes.iter().flat_map(|dispute| &dispute.fields).filter(|_| !whole);
            let managers: BTreeSet<&str> = disputes.iter().filter_map(|it| it.manager.as_deref()).collect();
            let managers: Vec<&str> = managers.into_iter().collect();
            let contest = Contest {
                manager: (!managers.is_empty()).then(|| managers.join(" and ").into()),
                fields: fields.cloned().collect(),
                hash: fight.hash,
            };
            (!disputes.is_empty()).then(|| (id.clone(), contest))
        };
        self.0.iter().filter_map(contest).collect()
    }

    /// Returns the time of the next attempt.
    pub(crate) fn next(&self, now: Uptime) -> Option<Uptime> {
        let disputes = self.0.values().flat_map(|fight| &fight.contests);
        disputes.map(|dispute| dispute.until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::CanonicalForm;

    const HASH: SpecHash = SpecHash { form: CanonicalForm::V1, digest: [1; 32] };

    fn at(seconds: u64) -> Uptime {
        Duration::from_secs(seconds)
    }

    fn id() -> ObjectId {
        ObjectId::parse("/ConfigMap|shop/a").unwrap()
    }

    fn changed(manager: &str, fields: &[&str]) -> Revert {
        Revert::Changed(Some(manager.into()), fields.iter().map(|&field| field.to_owned()).collect())
    }

    /// Returns for each revert if the object is contested after it.
    fn after(reverts: &[(u64, Revert)]) -> Vec<bool> {
        let mut fights = Contention::default();
        let revert = |(seconds, revert): &(u64, Revert)| {
            fights.record_revert(&id(), HASH, revert.clone(), at(*seconds));
            !fights.contested(at(*seconds)).is_empty()
        };
        reverts.iter().map(revert).collect()
    }

    #[test]
    fn so_many_repairs_against_one_manager_are_a_fight() {
        let each =
            |every: u64, revert: Revert| (0..5).map(|nth| (nth * every, revert.clone())).collect::<Vec<_>>();
        assert_eq!(after(&each(1, changed("a", &["x"]))), [false, false, false, false, true]);
        assert_eq!(after(&each(1, Revert::Changed(None, Vec::new()))), [false, false, false, false, true]);
        assert_eq!(after(&each(1, Revert::Deleted)), [false, false, false, true, true]);
        assert_eq!(after(&each(151, changed("a", &["x"]))), [false; 5], "too seldom");
        let three = || [(0, changed("a", &["x"])), (1, changed("b", &["x"])), (2, Revert::Deleted)];
        let two: Vec<_> = three().into_iter().chain(three()).collect();
        assert_eq!(after(&two), [false; 6], "each has a count of its own");
    }

    #[test]
    fn one_field_after_another_is_no_fight() {
        let fields = ["a", "b", "c", "d", "e", "f"];
        let reverts: Vec<_> = (0..6).map(|nth| (nth, changed("a", &[fields[nth as usize]]))).collect();
        assert_eq!(after(&reverts), [false; 6]);
        let mut fights = Contention::default();
        for second in 0..5 {
            fights.record_revert(&id(), HASH, changed("a", &["x", fields[second as usize]]), at(second));
        }
        assert_eq!(fights.contested(at(5))[&id()].fields, ["x"], "only what was changed again and again");
        // A revert of another field does not prolong this contest.
        fights.record_revert(&id(), HASH, changed("a", &["y"]), at(64));
        assert!(fights.contested(at(64)).is_empty());
    }

    #[test]
    fn each_field_is_fought_for_on_its_own() {
        let mut fights = Contention::default();
        (0..5).for_each(|second| fights.record_revert(&id(), HASH, changed("a", &["x"]), at(second)));
        (10..15).for_each(|second| fights.record_revert(&id(), HASH, changed("b", &["y"]), at(second)));
        let both = &fights.contested(at(14))[&id()];
        assert_eq!(both.manager.as_deref(), Some("a and b"));
        assert_eq!(both.fields, ["x", "y"]);
        assert!(fights.due_for_retry(at(63)).is_empty());
        assert_eq!(fights.contested(at(64))[&id()].fields, ["y"]);
        assert_eq!(fights.due_for_retry(at(64))[&id()].fields, ["x"], "its time has come first");
        (65..69).for_each(|second| fights.record_revert(&id(), HASH, Revert::Deleted, at(second)));
        assert!(fights.contested(at(69))[&id()].fields.is_empty(), "it is about the whole object");
    }

    #[test]
    fn a_contest_is_tried_again_less_and_less_often_and_forgotten_after_quiet() {
        let mut fights = Contention::default();
        (0..5).for_each(|second| fights.record_revert(&id(), HASH, changed("a", &["x"]), at(second)));
        let mut begun = at(4);
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            let until = begun + at(60 * minutes);
            assert_eq!(fights.next(begun), Some(until));
            let held = fights.contested(until - at(1));
            assert_eq!(held[&id()].manager.as_deref(), Some("a"));
            assert_eq!(held[&id()].fields, ["x"]);
            assert!(fights.contested(until).is_empty(), "it is tried again");
            assert_eq!(fights.next(until), None);
            fights.record_revert(&id(), HASH, changed("a", &["x"]), until);
            begun = until;
        }
        fights.contested(begun + at(3600 + 600));
        assert!(fights.0.is_empty());
    }

    #[test]
    fn a_commit_begins_anew() {
        let mut fights = Contention::default();
        (0..5).for_each(|second| fights.record_revert(&id(), HASH, changed("a", &[]), at(second)));
        assert!(!fights.contested(at(5)).is_empty());
        fights.record_revert(&id(), SpecHash { digest: [2; 32], ..HASH }, changed("a", &[]), at(6));
        assert!(fights.contested(at(6)).is_empty());
    }
}
