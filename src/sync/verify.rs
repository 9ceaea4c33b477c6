//! Verifies one object that may differ from Git.
//!
//! In: an object, and the method of verification.
//! Out: an [`Outcome`], and if a reconcile has to follow.
//!
//! A Sync that repairs drift applies the object, which verifies and repairs it in one request. A
//! Sync that only reports drift compares the live object with the result of a dry-run apply.

use std::collections::{BTreeSet, VecDeque};

use super::carry_out::{Work, failed};
use super::memory::{Memory, Pauses};
use super::schedule::Time;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::{Observed, ObservedSet, Standing};
use crate::plan::{Action, Change, Hold, Outcome, Plan, Step, compare};

/// Method of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// An apply.
    Apply,
    /// A dry-run comparison that writes nothing.
    Compare,
}

/// Attempts to compare an object that changes between the two requests.
const MAX_COMPARISONS: usize = 3;

/// Returns the objects that the plan only verifies; empty while the Sync is suspended.
pub(crate) fn to_verify(plan: &Plan, observed: &ObservedSet, suspended: bool) -> VecDeque<(ObjectId, How)> {
    if suspended {
        return VecDeque::new();
    }
    let unverified = plan.steps().filter(|step| step.action == Action::Update(Change::Unverified));
    let applied = unverified.map(|step| (step.id.clone(), How::Apply));
    let open = plan.held.iter().filter(|(id, hold)| match hold {
        Hold::Unverified => true,
        Hold::DriftReported(_) => observed.get(id).is_some_and(|seen| !is_compared(seen)),
        _ => false,
    });
    applied.chain(open.map(|(id, _)| (id.clone(), How::Compare))).collect()
}

/// Returns true if the drift of this version was found by a comparison, or is none that a
/// comparison could find.
fn is_compared(seen: &Observed) -> bool {
    let known = seen.baseline.as_ref().map(|baseline| &baseline.resource_version);
    !matches!(seen.standing, Standing::Drifted(_)) || known == Some(&seen.resource_version)
}

fn is_open(seen: &Observed, how: How) -> bool {
    match how {
        How::Apply => seen.standing == Standing::Unverified,
        How::Compare => match seen.standing {
            Standing::Unverified | Standing::Moved => true,
            Standing::Drifted(_) => !is_compared(seen),
            Standing::Verified => false,
        },
    }
}

impl Work<'_> {
    /// Verifies one object when the rate limit allows it; `None` if there is nothing to verify any
    /// more.
    pub(crate) async fn verify(&self, id: &ObjectId, how: How) -> Option<Outcome> {
        self.context.verify_turn().await;
        let open =
            self.cluster.observed(self.owner, |set| set.get(id).is_some_and(|seen| is_open(seen, how)));
        if !open || self.stop.is_stopped() {
            return None;
        }
        match how {
            How::Apply => {
                self.step(&Step { id: id.clone(), action: Action::Update(Change::Unverified) }).await
            }
            How::Compare => Some(
                self.compare(id)
                    .await
                    .unwrap_or_else(|failure| failed(&failure, self.desired.hides(id, None))),
            ),
        }
    }

    async fn compare(&self, id: &ObjectId) -> Result<Outcome, crate::cluster::Failure> {
        let Some(wanted) = self.desired.get(id) else { return Ok(Outcome::Kept) };
        for _ in 0..MAX_COMPARISONS {
            // If it is gone, its watch reports that.
            let Some(live) = self.cluster.whole(id, Some(&wanted.version)).await? else { break };
            let would_be = self.cluster.would_be(wanted, self.owner, &self.ledger.yielded(wanted)).await?;
            if live.metadata("resourceVersion") != would_be.metadata("resourceVersion") {
                continue;
            }
            let known = self.cluster.compared(self.owner, &live, compare(&live.body, &would_be.body));
            return Ok(match known.map(|known| known.standing) {
                Some(Standing::Drifted(drift)) => Outcome::Held(Hold::DriftReported(drift)),
                Some(Standing::Verified | Standing::Unverified | Standing::Moved) | None => Outcome::Kept,
            });
        }
        Ok(Outcome::Held(Hold::Unverified))
    }
}

impl Memory {
    /// Records the outcome of a verification; returns true if a reconcile has to report or do
    /// something.
    pub(crate) fn verified(
        &mut self,
        id: &ObjectId,
        outcome: &Outcome,
        desired: &DesiredSet,
        now: Time,
        chance: f64,
        pauses: Pauses,
    ) -> bool {
        let outcomes = [(id.clone(), outcome.clone())].into_iter().collect();
        self.learn(&outcomes, desired, now, chance, pauses);
        self.incomparable.learn(id, outcome, now, chance, pauses);
        self.fights.learn(&outcomes, desired, now);
        match outcome {
            Outcome::Failed(_) | Outcome::Held(_) => true,
            // Results of comparisons are reported once all of them are known.
            _ => self.compares && self.unverified.is_empty(),
        }
    }

    /// Queues verifications, except for objects that failed recently. Returns the number of
    /// comparisons that are throttled because the objects are written to all the time.
    pub(crate) fn queue(&mut self, found: VecDeque<(ObjectId, How)>, now: Time) -> usize {
        self.unverified = found;
        let compared: BTreeSet<&ObjectId> =
            self.unverified.iter().filter(|(_, how)| *how == How::Compare).map(|(id, _)| id).collect();
        self.incomparable.retain(|id| compared.contains(id));
        let failing = &self.failing;
        self.unverified.retain(|(id, _)| failing.get(id).is_none_or(|known| !known.waits(now)));
        let incomparable = &self.incomparable;
        self.unverified.retain(|(id, how)| *how == How::Apply || !incomparable.waits(id, now));
        let (restless, before) = (&mut self.restless, self.unverified.len());
        self.unverified.retain(|(id, how)| *how == How::Apply || !restless.waits(id, now));
        let spared = before - self.unverified.len();
        self.compares = self.unverified.iter().any(|(_, how)| *how == How::Compare);
        spared
    }
}
