//! What a person allows a Sync to do.

use std::collections::{BTreeMap, BTreeSet};

use super::guarded::is_needed_to_run;
use super::protected::protected;
use super::{Contest, Guard, Hold, Replacement, Rollout};
use crate::observed::{Observed, Part};
use moorline_api::SpecHash;
use moorline_core::object::{GroupKind, ObjectId};

/// The wishes of a Sync, as far as the plan depends on them.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Nothing is written.
    pub suspended: bool,
    /// What follows when somebody changes a field that Git sets.
    pub drift: DriftMode,
    /// Every object was applied once as it is wanted now: one that is absent has been deleted since.
    pub was_applied: bool,
    /// Objects that are no longer wanted are deleted.
    pub prune: bool,
    /// How many may be pruned at once without approval.
    pub budget: Budget,
    /// Kinds that are pruned only by approval.
    pub protected: BTreeSet<GroupKind>,
    /// Objects of other kinds of which the same is true, because they take others with them.
    pub guarded: BTreeMap<ObjectId, Guard>,
    /// The approval that a person gave, if any.
    pub approved: Option<String>,
    /// What an approval spoke of when it was given, by uid: some of it may be gone since, and the rest goes all the same.
    pub consented: BTreeMap<ObjectId, Box<str>>,
    /// Changes that need a new object, where the deletion of the old one needs approval.
    pub replacements: BTreeMap<ObjectId, Replacement>,
    /// The objects that other Syncs want, or may want.
    pub claims: BTreeMap<ObjectId, Claim>,
    /// A newer commit or spec that cannot be applied: until it can, prunes ask for approval.
    pub refused: Option<Box<str>>,
    /// The time, in milliseconds since 1970: pauses that people ask for end.
    pub now: i64,
    /// Objects whose repairs others undo, all of them or those of some fields.
    pub contested: BTreeMap<ObjectId, Contest>,
    /// Fields that were left to others for a while, and are claimed again now.
    pub again: BTreeMap<ObjectId, Contest>,
    /// Jobs and Pods that have come to their end, and what they were then.
    pub finished: BTreeMap<ObjectId, SpecHash>,
    /// Of these, whether they ended well, as far as that is written down where it is not lost.
    pub ended_well: BTreeMap<ObjectId, bool>,
    /// How far what is wanted has been rolled out; none once it has come to its end.
    pub rollout: Option<Rollout>,
    /// Objects that bear the marks of another Sync without its proof, although that one does not want them.
    pub disbelieved: BTreeSet<ObjectId>,
    /// The Secret with the keys of the daemon.
    pub own_keys: Option<ObjectId>,
    /// Objects whose number of replicas may be somebody else's, and why nobody can tell now.
    pub in_doubt: BTreeMap<ObjectId, Box<str>>,
}

/// What follows when somebody changes a field that Git sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftMode {
    /// The field is set as in Git.
    Repair,
    /// It is said, and left as it is.
    Report,
    /// It is not looked at.
    Ignore,
}

/// How many objects may be pruned at once. Without any number, both defaults must be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// At most so many objects.
    pub count: Option<usize>,
    /// At most this part of the objects owned, in percent.
    pub percent: Option<u8>,
}

/// Another Sync that wants an object, or may want it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its namespace and name.
    pub sync: Box<str>,
    /// The weight of the claim.
    pub standing: ClaimStanding,
}

/// The weight of a claim on an object that would be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStanding {
    /// The newest render of the other Sync is complete and it is not suspended: it takes the object over.
    Takes,
    /// It wants the object, and cannot take it now.
    CannotTake,
    /// It has not rendered this commit, and its files may hold the object.
    MayWant,
    /// The Sync whose object it is names it as the one to which it moves, and it has not looked since.
    Named,
    /// It wants an object of its own namespace that it has no right to patch. A person decides.
    WithoutRights,
    /// It has been in the way for longer than a deletion waits for others. A person decides.
    Overdue,
}

impl Claim {
    /// The hold of an object that is not deleted while the claim stands, whoever approves.
    pub(super) fn waits(&self) -> Option<Hold> {
        match self.standing {
            ClaimStanding::CannotTake => Some(Hold::ClaimedBy(self.sync.clone())),
            ClaimStanding::MayWant => Some(Hold::MayBeClaimed(self.sync.clone())),
            ClaimStanding::Named => Some(Hold::MovesTo(self.sync.clone())),
            ClaimStanding::Takes | ClaimStanding::WithoutRights | ClaimStanding::Overdue => None,
        }
    }

    /// The hold of an object that is deleted only by approval because of the claim.
    pub(super) fn asks(&self) -> Option<Hold> {
        match self.standing {
            ClaimStanding::WithoutRights => Some(Hold::ClaimedWithoutRights(self.sync.clone())),
            ClaimStanding::Overdue => Some(Hold::ClaimOverdue(self.sync.clone())),
            ClaimStanding::Takes
            | ClaimStanding::CannotTake
            | ClaimStanding::MayWant
            | ClaimStanding::Named => None,
        }
    }
}

const DEFAULT_COUNT: usize = 10;
const DEFAULT_PERCENT: usize = 30;

impl Default for Policy {
    fn default() -> Self {
        Self {
            suspended: false,
            drift: DriftMode::Repair,
            was_applied: false,
            prune: true,
            budget: Budget::default(),
            protected: protected().collect(),
            guarded: BTreeMap::new(),
            approved: None,
            consented: BTreeMap::new(),
            replacements: BTreeMap::new(),
            claims: BTreeMap::new(),
            refused: None,
            now: 0,
            contested: BTreeMap::new(),
            again: BTreeMap::new(),
            finished: BTreeMap::new(),
            ended_well: BTreeMap::new(),
            rollout: Some(Rollout::default()),
            disbelieved: BTreeSet::new(),
            own_keys: None,
            in_doubt: BTreeMap::new(),
        }
    }
}

impl Policy {
    /// Why an object is pruned only by approval, if it is: for its kind, for what it is, or for a claim.
    pub(super) fn asks(&self, id: &ObjectId, seen: &Observed) -> Option<Hold> {
        self.protects(id, seen).or_else(|| self.claims.get(id)?.asks())
    }

    /// Why an object is pruned only by approval, whatever other Syncs want.
    pub(super) fn protects(&self, id: &ObjectId, seen: &Observed) -> Option<Hold> {
        let guard = || self.guarded.get(id).map(|guard| Hold::Guarded(*guard));
        protection(&self.protected, id, seen).or_else(guard)
    }
}

/// Why an object is deleted only by approval as far as its metadata shows that, if it is.
pub fn protection(protected: &BTreeSet<GroupKind>, id: &ObjectId, seen: &Observed) -> Option<Hold> {
    let kind = id.group_kind();
    match protected.contains(&kind) {
        true => Some(Hold::Protected),
        false if seen.part == Part::Installation && is_needed_to_run(&kind) => {
            Some(Hold::Guarded(Guard::OfMoorline))
        }
        false if !seen.proven => Some(Hold::Unproven),
        false => None,
    }
}

impl Budget {
    /// True if `prunes` of `owned` objects are more than may go without approval.
    pub(super) fn is_exceeded(self, prunes: usize, owned: usize) -> bool {
        let over_count = |count| prunes > count;
        let over_percent = |percent| prunes * 100 > owned * percent;
        match (self.count, self.percent) {
            (None, None) => over_count(DEFAULT_COUNT) && over_percent(DEFAULT_PERCENT),
            (Some(count), None) => over_count(count),
            (None, Some(percent)) => over_percent(usize::from(percent)),
            (Some(count), Some(percent)) => over_count(count) && over_percent(usize::from(percent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::given::id;
    use super::*;

    #[test]
    fn what_moorline_needs_to_run_is_pruned_only_by_approval() {
        let part = |is_part| Observed {
            part: if is_part { Part::Installation } else { Part::None },
            proven: true,
            ..Observed::new("1", "1")
        };
        for (text, is_part, expect) in [
            ("apps/Deployment|moorline/moorline", true, Some("Protected")),
            ("apps/Deployment|moorline/moorline", false, None),
            ("rbac.authorization.k8s.io/ClusterRole|/moorline", true, Some("Protected")),
            ("/ServiceAccount|moorline/moorline", true, Some("Protected")),
            ("/ConfigMap|moorline/moorline-5g8k", true, None),
        ] {
            let hold = Policy::default().protects(&id(text), &part(is_part));
            assert_eq!(hold.as_ref().map(Hold::reason), expect, "{text}");
        }
    }

    #[test]
    fn a_budget_that_is_given_counts_alone() {
        let check = |count, percent, prunes, owned, expect| {
            let budget = Budget { count, percent };
            assert_eq!(budget.is_exceeded(prunes, owned), expect, "{budget:?} {prunes} of {owned}");
        };
        check(None, None, 10, 10, false);
        check(None, None, 11, 11, true);
        check(None, None, 30, 100, false);
        check(None, None, 31, 100, true);
        check(Some(0), None, 1, 1000, true);
        check(Some(5), None, 5, 5, false);
        check(None, Some(50), 1, 1, true);
        check(None, Some(100), 1000, 1000, false);
        check(Some(2), Some(50), 3, 100, false);
        check(Some(2), Some(50), 51, 100, true);
    }
}
