//! Looks at one object of which nobody knows whether it is as Git says.
//!
//! In: an object, and how it may be looked at. Out: an [`Outcome`], and what follows from it. A Sync that repairs
//! applies the object, which looks and heals in one request; one that reports compares the whole object with what an
//! apply would make of it.

use std::collections::{BTreeSet, VecDeque};

use super::carry_out::{Work, failed};
use super::memory::{Memory, Pauses};
use super::schedule::Time;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::{Observed, ObservedSet, Standing};
use crate::plan::{Action, Change, Hold, Outcome, Plan, Step, compare};

/// How an object is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// By an apply.
    Apply,
    /// By a comparison that writes nothing.
    Compare,
}

/// So often a comparison begins anew because somebody wrote between its two requests.
const MAX_COMPARISONS: usize = 3;

/// The objects that the plan only wants to look at; none while the Sync is suspended.
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

/// True if the drift of this very version is what a comparison found, or nothing that one could tell.
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
    /// Looks at one object when it is its turn; none if there is nothing to look at any more.
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
            // One that is gone is told by its watch.
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
    /// Remembers what a verification came to; true if a pass has to say or do something about it.
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
            // What was compared is told as soon as all of it is known.
            _ => self.compares && self.unverified.is_empty(),
        }
    }

    /// What the plan wants to be looked at, but for what failed a moment ago. Gives how many are not compared yet because
    /// they are written to all the time.
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
