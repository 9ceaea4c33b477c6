//! Who undoes our repairs, and for how long we leave it at that.
//!
//! In: repairs and deletions, each with its time. Out: [`Contest`]s for the plan. Repairing against somebody who
//! repairs as fast costs the API server more than the drift costs anybody; so after some rounds about one field the
//! object is left as it is, said to be contested, and tried again less and less often. Who changes one field after
//! another fights for none of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::schedule::Time;
use crate::api::SpecHash;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::plan::{Change, Contest, Outcome};

/// So many repairs of a field against the same manager within [`WINDOW`] are a fight.
const MAX_REPAIRS: usize = 5;
/// More deletions than this within [`WINDOW`] are one as well.
const MAX_DELETIONS: usize = 3;
/// What is older counts no more, and a contest without a repair for so long is over.
const WINDOW: Duration = Duration::from_secs(600);
/// The pauses between attempts: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));

/// All objects that others changed lately.
#[derive(Debug, Default)]
pub(crate) struct Fights(BTreeMap<ObjectId, Fight>);

#[derive(Debug)]
struct Fight {
    hash: SpecHash,
    blows: Vec<(Time, Blow)>,
    contest: Option<(Contest, Time, Duration)>,
}

/// Something that had to be repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Blow {
    /// These fields were changed by this manager, where it is known.
    Changed(Option<Box<str>>, Vec<String>),
    Deleted,
}

impl Blow {
    /// True if both are about this field; about no field in particular, if none is given.
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

    /// True if this is what has been fought about.
    fn goes_on_with(&self, contest: &Contest) -> bool {
        match self {
            Self::Changed(manager, fields) => {
                let same = contest.fields.iter().any(|field| fields.contains(field));
                *manager == contest.manager && (same || contest.fields.is_empty() && fields.is_empty())
            }
            Self::Deleted => contest.manager.is_none() && contest.fields.is_empty(),
        }
    }
}

impl Fight {
    /// The fields about which there have been so many blows like this one, itself among them; empty where blows are
    /// about no field. None if there have not.
    fn contested(&self, blow: &Blow, limit: usize) -> Option<Vec<String>> {
        let is_often = |field: Option<&String>| {
            self.blows.iter().filter(|(_, known)| known.is_like(blow, field)).count() >= limit
        };
        match blow {
            Blow::Changed(_, fields) if !fields.is_empty() => {
                let often: Vec<String> =
                    fields.iter().filter(|field| is_often(Some(field))).cloned().collect();
                (!often.is_empty()).then_some(often)
            }
            Blow::Changed(..) | Blow::Deleted => is_often(None).then(Vec::new),
        }
    }
}

impl Fights {
    /// Takes in what was repaired.
    pub(crate) fn learn<'a>(
        &mut self,
        outcomes: impl IntoIterator<Item = (&'a ObjectId, &'a Outcome)>,
        desired: &DesiredSet,
        now: Time,
    ) {
        for (id, outcome) in outcomes {
            let (Outcome::Updated(change), Some(wanted)) = (outcome, desired.get(id)) else { continue };
            let blow = match change {
                Change::Committed => continue,
                Change::Drifted(drift) => {
                    Blow::Changed(drift.manager.as_deref().map(Box::from), drift.fields.clone())
                }
                // An apply that changes what the last one left has somebody against it who leaves no trace.
                Change::EntryLost | Change::Unverified | Change::Moved => Blow::Changed(None, Vec::new()),
            };
            self.blow(id, wanted.hash, blow, now);
        }
    }

    /// Somebody deleted an object that is wanted.
    pub(crate) fn deleted(&mut self, id: &ObjectId, hash: SpecHash, now: Time) {
        self.blow(id, hash, Blow::Deleted, now);
    }

    fn blow(&mut self, id: &ObjectId, hash: SpecHash, blow: Blow, now: Time) {
        let new = || Fight { hash, blows: Vec::new(), contest: None };
        let fight = self.0.entry(id.clone()).or_insert_with(new);
        if fight.hash != hash {
            // Nobody has undone this commit yet.
            *fight = new();
        }
        fight.blows.retain(|(time, _)| *time + WINDOW > now);
        fight.blows.push((now, blow.clone()));
        let (limit, manager) = match &blow {
            Blow::Changed(manager, _) => (MAX_REPAIRS, manager.clone()),
            Blow::Deleted => (MAX_DELETIONS + 1, None),
        };
        let (fields, pause) = match &fight.contest {
            // What was tried again was undone again; or it was something else, and counts for itself.
            Some((contest, _, pause)) if blow.goes_on_with(contest) => {
                (contest.fields.clone(), (*pause * 2).min(PAUSE.1))
            }
            _ => match fight.contested(&blow, limit) {
                Some(fields) => (fields, PAUSE.0),
                None => return,
            },
        };
        fight.contest = Some((Contest { manager, fields, hash }, now + pause, pause));
    }

    /// What is left as it is for now. What has been quiet is forgotten.
    pub(crate) fn contested(&mut self, now: Time) -> BTreeMap<ObjectId, Contest> {
        self.0.retain(|_, fight| match &fight.contest {
            Some((_, until, _)) => *until + WINDOW > now,
            None => fight.blows.iter().any(|(time, _)| *time + WINDOW > now),
        });
        let waits = |(id, fight): (&ObjectId, &Fight)| {
            let (contest, until, _) = fight.contest.as_ref()?;
            (*until > now).then(|| (id.clone(), contest.clone()))
        };
        self.0.iter().filter_map(waits).collect()
    }

    /// When the next of them is tried again.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        let until = |fight: &Fight| fight.contest.as_ref().map(|(_, until, _)| *until);
        self.0.values().filter_map(until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::CanonicalForm;

    const HASH: SpecHash = SpecHash { form: CanonicalForm::V1, digest: [1; 32] };

    fn at(seconds: u64) -> Time {
        Duration::from_secs(seconds)
    }

    fn id() -> ObjectId {
        ObjectId::parse("/ConfigMap|shop/a").unwrap()
    }

    fn changed(manager: &str, fields: &[&str]) -> Blow {
        Blow::Changed(Some(manager.into()), fields.iter().map(|&field| field.to_owned()).collect())
    }

    /// Whether the object is contested after each of these blows.
    fn after(blows: &[(u64, Blow)]) -> Vec<bool> {
        let mut fights = Fights::default();
        let blow = |(seconds, blow): &(u64, Blow)| {
            fights.blow(&id(), HASH, blow.clone(), at(*seconds));
            !fights.contested(at(*seconds)).is_empty()
        };
        blows.iter().map(blow).collect()
    }

    #[test]
    fn so_many_repairs_against_one_manager_are_a_fight() {
        let each = |every: u64, blow: Blow| (0..5).map(|nth| (nth * every, blow.clone())).collect::<Vec<_>>();
        assert_eq!(after(&each(1, changed("a", &["x"]))), [false, false, false, false, true]);
        assert_eq!(after(&each(1, Blow::Changed(None, Vec::new()))), [false, false, false, false, true]);
        assert_eq!(after(&each(1, Blow::Deleted)), [false, false, false, true, true]);
        assert_eq!(after(&each(151, changed("a", &["x"]))), [false; 5], "too seldom");
        let three = || [(0, changed("a", &["x"])), (1, changed("b", &["x"])), (2, Blow::Deleted)];
        let two: Vec<_> = three().into_iter().chain(three()).collect();
        assert_eq!(after(&two), [false; 6], "each has a count of its own");
    }

    #[test]
    fn one_field_after_another_is_no_fight() {
        let fields = ["a", "b", "c", "d", "e", "f"];
        let blows: Vec<_> = (0..6).map(|nth| (nth, changed("a", &[fields[nth as usize]]))).collect();
        assert_eq!(after(&blows), [false; 6]);
        let mut fights = Fights::default();
        for second in 0..5 {
            fights.blow(&id(), HASH, changed("a", &["x", fields[second as usize]]), at(second));
        }
        assert_eq!(fights.contested(at(5))[&id()].fields, ["x"], "only what was changed again and again");
        // What is undone of another field meanwhile does not make this contest last longer.
        fights.blow(&id(), HASH, changed("a", &["y"]), at(64));
        assert!(fights.contested(at(64)).is_empty());
    }

    #[test]
    fn a_contest_is_tried_again_less_and_less_often_and_forgotten_after_quiet() {
        let mut fights = Fights::default();
        (0..5).for_each(|second| fights.blow(&id(), HASH, changed("a", &["x"]), at(second)));
        let mut begun = at(4);
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            let until = begun + at(60 * minutes);
            assert_eq!(fights.next(begun), Some(until));
            let held = fights.contested(until - at(1));
            assert_eq!(held[&id()].manager.as_deref(), Some("a"));
            assert_eq!(held[&id()].fields, ["x"]);
            assert!(fights.contested(until).is_empty(), "it is tried again");
            assert_eq!(fights.next(until), None);
            fights.blow(&id(), HASH, changed("a", &["x"]), until);
            begun = until;
        }
        fights.contested(begun + at(3600 + 600));
        assert!(fights.0.is_empty());
    }

    #[test]
    fn a_commit_begins_anew() {
        let mut fights = Fights::default();
        (0..5).for_each(|second| fights.blow(&id(), HASH, changed("a", &[]), at(second)));
        assert!(!fights.contested(at(5)).is_empty());
        fights.blow(&id(), SpecHash { digest: [2; 32], ..HASH }, changed("a", &[]), at(6));
        assert!(fights.contested(at(6)).is_empty());
    }
}
