//! Policy of a Sync: everything beside desired and observed state that a plan depends on.

use std::collections::{BTreeMap, BTreeSet};

use super::protected_kinds::default_protected_kinds;
use super::prune_guards::is_needed_to_run;
use super::{Contest, Hold, PruneGuard, Replacement, Rollout};
use crate::observed::{InstallationRole, Observed};
use moorline_api::SpecHash;
use moorline_core::object::{GroupKind, ObjectId};

/// Policy of a Sync.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Nothing is written.
    pub suspended: bool,
    /// Reaction to a change of a field that Git sets.
    pub drift: DriftMode,
    /// True if every object was applied in its current desired form before: a missing one was
    /// deleted since.
    pub was_applied: bool,
    /// True if objects that are no longer desired are deleted.
    pub prune: bool,
    /// Number of objects that may be pruned at once without approval.
    pub budget: PruneBudget,
    /// Kinds that are pruned only by approval.
    pub protected: BTreeSet<GroupKind>,
    /// Objects of other kinds that are pruned only by approval, because their deletion affects
    /// others.
    pub guards: BTreeMap<ObjectId, PruneGuard>,
    /// The approval of a person, if any.
    pub approved: Option<String>,
    /// Objects that an earlier approval covered, by uid: some may be gone since, and the rest is
    /// still approved.
    pub approved_objects: BTreeMap<ObjectId, Box<str>>,
    /// Replacements in which the deletion of the old object needs approval.
    pub replacements: BTreeMap<ObjectId, Replacement>,
    /// Objects that other Syncs claim or may claim.
    pub claims: BTreeMap<ObjectId, Claim>,
    /// A newer commit or spec that cannot be applied: until it can, prunes need approval.
    pub refused_newer: Option<Box<str>>,
    /// The current time in milliseconds since 1970, for pauses.
    pub now: i64,
    /// Objects whose repairs others revert, completely or in some fields.
    pub contested: BTreeMap<ObjectId, Contest>,
    /// Fields that were left to others for a while and are claimed again now.
    pub reclaimed: BTreeMap<ObjectId, Contest>,
    /// Completed Jobs and Pods, with the hash that they ran with.
    pub completed: BTreeMap<ObjectId, SpecHash>,
    /// Success of the objects in `completed`, as far as the status records it.
    pub succeeded: BTreeMap<ObjectId, bool>,
    /// Progress of the rollout; none once it is complete.
    pub rollout: Option<Rollout>,
    /// Objects with the annotations of another Sync but without its proof, which that Sync does not
    /// claim.
    pub unproven_foreign: BTreeSet<ObjectId>,
    /// The Secret with the keys of the daemon.
    pub own_keys: Option<ObjectId>,
    /// Objects whose replica count an autoscaler may own, with the reason why that is unknown now.
    pub uncertain_replicas: BTreeMap<ObjectId, Box<str>>,
}

/// Reaction to a change of a field that Git sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftMode {
    /// The field is set as in Git.
    Repair,
    /// The drift is reported and not repaired.
    Report,
    /// Drift is not checked.
    Ignore,
}

/// Number of objects that may be pruned at once. If neither is set, both defaults must be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneBudget {
    /// Maximum number of objects.
    pub count: Option<usize>,
    /// Maximum share of the owned objects, in percent.
    pub percent: Option<u8>,
}

/// Another Sync that claims an object, or may claim it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Namespace and name of that Sync.
    pub sync: Box<str>,
    /// State of the claim.
    pub state: ClaimState,
}

/// State of a claim on an object that would be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimState {
    /// The other Sync has a complete newest render and is not suspended: it adopts the object.
    WillAdopt,
    /// It claims the object and cannot adopt it now.
    CannotAdopt,
    /// It has not rendered this commit, and its files may contain the object.
    Possible,
    /// The owning Sync names it as the receiver of its objects, and it has not polled since.
    MoveTarget,
    /// It claims an object of its own namespace that it may not patch. A person decides.
    WithoutRights,
    /// It has blocked a deletion for longer than the claim timeout. A person decides.
    Overdue,
}

impl Claim {
    /// Returns the hold of an object that is not deleted while the claim exists, even with
    /// approval.
    pub(super) fn waiting_hold(&self) -> Option<Hold> {
        match self.state {
            ClaimState::CannotAdopt => Some(Hold::ClaimedBy(self.sync.clone())),
            ClaimState::Possible => Some(Hold::PossiblyClaimed(self.sync.clone())),
            ClaimState::MoveTarget => Some(Hold::AwaitsMoveTarget(self.sync.clone())),
            ClaimState::WillAdopt | ClaimState::WithoutRights | ClaimState::Overdue => None,
        }
    }

    /// Returns the hold of an object that is deleted only by approval because of the claim.
    pub(super) fn approval_hold(&self) -> Option<Hold> {
        match self.state {
            ClaimState::WithoutRights => Some(Hold::ClaimedWithoutRights(self.sync.clone())),
            ClaimState::Overdue => Some(Hold::ClaimOverdue(self.sync.clone())),
            ClaimState::WillAdopt
            | ClaimState::CannotAdopt
            | ClaimState::Possible
            | ClaimState::MoveTarget => None,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            suspended: false,
            drift: DriftMode::Repair,
            was_applied: false,
            prune: true,
            budget: PruneBudget::default(),
            protected: default_protected_kinds().collect(),
            guards: BTreeMap::new(),
            approved: None,
            approved_objects: BTreeMap::new(),
            replacements: BTreeMap::new(),
            claims: BTreeMap::new(),
            refused_newer: None,
            now: 0,
            contested: BTreeMap::new(),
            reclaimed: BTreeMap::new(),
            completed: BTreeMap::new(),
            succeeded: BTreeMap::new(),
            rollout: Some(Rollout::default()),
            unproven_foreign: BTreeSet::new(),
            own_keys: None,
            uncertain_replicas: BTreeMap::new(),
        }
    }
}

impl Policy {
    /// Returns the reason why an object is pruned only by approval, if it is: its kind, the object
    /// itself, or a claim.
    pub(super) fn approval_hold(&self, id: &ObjectId, seen: &Observed) -> Option<Hold> {
        self.protection_hold(id, seen).or_else(|| self.claims.get(id)?.approval_hold())
    }

    /// Returns the reason why an object is pruned only by approval, independent of claims.
    pub(super) fn protection_hold(&self, id: &ObjectId, seen: &Observed) -> Option<Hold> {
        let guard = || self.guards.get(id).map(|guard| Hold::Guarded(*guard));
        metadata_protection(&self.protected, id, seen).or_else(guard)
    }
}

/// Returns the reason why an object is deleted only by approval, as far as metadata show it.
pub fn metadata_protection(protected: &BTreeSet<GroupKind>, id: &ObjectId, seen: &Observed) -> Option<Hold> {
    let kind = id.group_kind();
    match protected.contains(&kind) {
        true => Some(Hold::Protected),
        false if seen.installation_role == InstallationRole::Installation && is_needed_to_run(&kind) => {
            Some(Hold::Guarded(PruneGuard::PartOfMoorline))
        }
        false if !seen.proven => Some(Hold::Unproven),
        false => None,
    }
}

impl PruneBudget {
    /// Maximum number of objects, if no limit is set.
    pub const DEFAULT_COUNT: u8 = 10;
    /// Maximum share of the owned objects in percent, if no limit is set.
    pub const DEFAULT_PERCENT: u8 = 30;

    /// True if pruning `prunes` of `owned` objects needs approval.
    pub(super) fn is_exceeded(self, prunes: usize, owned: usize) -> bool {
        let over_count = |count| prunes > count;
        let over_percent = |percent| prunes * 100 > owned * percent;
        match (self.count, self.percent) {
            (None, None) => {
                over_count(usize::from(Self::DEFAULT_COUNT))
                    && over_percent(usize::from(Self::DEFAULT_PERCENT))
            }
            (Some(count), None) => over_count(count),
            (None, Some(percent)) => over_percent(usize::from(percent)),
            (Some(count), Some(percent)) => over_count(count) && over_percent(usize::from(percent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::test_fixtures::id;

    #[test]
    fn what_moorline_needs_to_run_is_pruned_only_by_approval() {
        let part = |is_part| Observed {
            installation_role: if is_part { InstallationRole::Installation } else { InstallationRole::None },
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
            let hold = Policy::default().protection_hold(&id(text), &part(is_part));
            assert_eq!(hold.as_ref().map(Hold::reason), expect, "{text}");
        }
    }

    #[test]
    fn a_budget_that_is_given_counts_alone() {
        let check = |count, percent, prunes, owned, expect| {
            let budget = PruneBudget { count, percent };
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
