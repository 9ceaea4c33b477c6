//! Defers the steps of a plan that are not due: failed ones until their next attempt, and
//! verifications of objects that are written to all the time.
//!
//! In: a plan, and the retry state of its objects. Out: a [`DuePlan`].

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Change, Hold, Outcome, Plan, Stage, Step};
use crate::desired::DesiredSet;
use moorline_api::SpecHash;
use moorline_core::object::ObjectId;

/// Retry state of objects.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Deferrals {
    /// Steps that failed, by object.
    pub failed: BTreeMap<ObjectId, FailedStep>,
    /// Objects whose verification is throttled.
    pub throttled: BTreeSet<ObjectId>,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedStep {
    /// Hash of the object that was sent; `None` if Git does not contain the object.
    pub hash: Option<SpecHash>,
    /// True if the next attempt is due.
    pub is_due: bool,
    /// Outcome of the last attempt.
    pub outcome: Outcome,
}

/// A plan whose steps are due.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct DuePlan {
    /// The due steps, and what is held and kept.
    pub plan: Plan,
    /// Outcome of the last attempt of each postponed step.
    pub postponed: BTreeMap<ObjectId, Outcome>,
    /// The postponed steps, with their stages: they block what comes after them.
    pub blocking: Vec<(Stage, ObjectId)>,
    /// Objects whose verification was left out.
    pub throttled: BTreeSet<ObjectId>,
    /// Failed objects that still need a step. The other failed objects were changed or deleted by
    /// somebody else, and no longer count as failed.
    pub still_failing: BTreeSet<ObjectId>,
}

impl Plan {
    /// Leaves out the steps that are not due. A retried step is executed at once instead of being
    /// verified later, so that its result is reported. Objects whose verification is about to start
    /// are not reported as held.
    pub fn defer(mut self, desired: &DesiredSet, deferrals: &Deferrals) -> DuePlan {
        self.held.retain(|(_, hold)| *hold != Hold::Unverified);
        let all = std::mem::take(&mut self.stages);
        let mut due = DuePlan {
            plan: self,
            postponed: BTreeMap::new(),
            blocking: Vec::new(),
            throttled: BTreeSet::new(),
            still_failing: BTreeSet::new(),
        };
        for (stage, steps) in all {
            let steps = steps.into_iter().filter_map(|step| due.keep(stage, step, desired, deferrals));
            let steps = steps.collect();
            due.plan.stages.push((stage, steps));
        }
        due
    }
}

impl DuePlan {
    /// Returns the step if it is due, else records it as left out.
    fn keep(
        &mut self,
        stage: Stage,
        mut step: Step,
        desired: &DesiredSet,
        deferrals: &Deferrals,
    ) -> Option<Step> {
        if let Some(failed) = deferrals.failed.get(&step.id) {
            self.still_failing.insert(step.id.clone());
            let is_same = failed.hash == desired.get(&step.id).map(|wanted| wanted.hash);
            if is_same && !failed.is_due {
                self.blocking.push((stage, step.id.clone()));
                self.postponed.insert(step.id, failed.outcome.clone());
                return None;
            }
            if step.action == Action::Update(Change::Unverified) {
                step.action = Action::Update(Change::MaybeDrifted);
            }
        }
        let is_verification = step.action == Action::Update(Change::MaybeDrifted);
        if is_verification && deferrals.throttled.contains(&step.id) {
            self.throttled.insert(step.id);
            return None;
        }
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{Phase, PhaseWave};
    use crate::plan::Rank;
    use crate::plan::test_fixtures::{id, manifest, wanted};

    const STAGE: Stage =
        Stage::Apply { turn: PhaseWave { phase: Phase::Sync, wave: 0 }, rank: Rank::Configuration };

    const A: &str = "/ConfigMap|a/a";
    const B: &str = "/ConfigMap|a/b";

    fn set() -> DesiredSet {
        wanted(&[manifest(A, 0), manifest(B, 0)])
    }

    /// Defers updates of the objects A and B; compares the changes that are due.
    fn check(change: &Change, deferrals: &Deferrals, expect: &[(&str, Change)]) -> DuePlan {
        let step = |text: &str| Step { id: id(text), action: Action::Update(change.clone()) };
        let plan = Plan {
            stages: vec![(STAGE, vec![step(A), step(B)])],
            held: vec![(id("/ConfigMap|a/c"), Hold::Unverified), (id("/ConfigMap|a/d"), Hold::Suspended)],
            kept: Vec::new(),
            approval: None,
            consented: BTreeMap::new(),
        };
        let due = plan.defer(&set(), deferrals);
        let found: Vec<(ObjectId, Action)> =
            due.plan.steps().map(|step| (step.id.clone(), step.action.clone())).collect();
        let expect: Vec<(ObjectId, Action)> =
            expect.iter().map(|(text, change)| (id(text), Action::Update(change.clone()))).collect();
        assert_eq!(found, expect);
        assert_eq!(due.plan.held, [(id("/ConfigMap|a/d"), Hold::Suspended)]);
        due
    }

    fn failed(text: &str, is_due: bool, hash: Option<SpecHash>) -> Deferrals {
        let step = FailedStep { hash, is_due, outcome: Outcome::Held(Hold::Suspended) };
        Deferrals { failed: [(id(text), step)].into(), throttled: BTreeSet::new() }
    }

    #[test]
    fn everything_is_due_if_nothing_is_deferred() {
        let due = check(
            &Change::Unverified,
            &Deferrals::default(),
            &[(A, Change::Unverified), (B, Change::Unverified)],
        );
        assert!(due.postponed.is_empty() && due.blocking.is_empty() && due.still_failing.is_empty());
    }

    #[test]
    fn a_failed_step_waits_with_its_outcome_and_blocks_until_it_is_due() {
        let hash = set().get(&id(A)).map(|wanted| wanted.hash);
        let due = check(&Change::Unverified, &failed(A, false, hash), &[(B, Change::Unverified)]);
        assert_eq!(due.postponed, [(id(A), Outcome::Held(Hold::Suspended))].into());
        assert_eq!(due.blocking, [(STAGE, id(A))]);
        assert_eq!(due.still_failing, [id(A)].into());
        // It is executed at once when it is due, and with another manifest.
        let all = [(A, Change::MaybeDrifted), (B, Change::Unverified)];
        let _ = check(&Change::Unverified, &failed(A, true, hash), &all);
        let due = check(&Change::Unverified, &failed(A, false, None), &all);
        assert_eq!(due.still_failing, [id(A)].into());
    }

    #[test]
    fn a_failed_object_without_a_step_has_not_failed_any_more() {
        let all = [(A, Change::Committed), (B, Change::Committed)];
        let due = check(&Change::Committed, &failed("/ConfigMap|a/x", false, None), &all);
        assert_eq!(due.still_failing, BTreeSet::new());
    }

    #[test]
    fn only_verifications_are_throttled() {
        let deferrals = Deferrals { throttled: [id(A), id("/ConfigMap|a/x")].into(), ..Deferrals::default() };
        let due = check(&Change::MaybeDrifted, &deferrals, &[(B, Change::MaybeDrifted)]);
        assert_eq!(due.throttled, [id(A)].into());
        assert_eq!(due.blocking, []);
        let all = [(A, Change::Committed), (B, Change::Committed)];
        let _ = check(&Change::Committed, &deferrals, &all);
    }
}
