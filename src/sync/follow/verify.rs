//! Objects that nobody has looked at since the start, or for long: they are verified one by one.
//!
//! In: what a Sync remembers. Out: one object at a time that is applied once more while nothing better is to do, and
//! an event where that failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::FutureExt as _;

use super::super::carry_out::{Stop, Work};
use super::super::chance;
use super::super::schedule::Event;
use super::{Follower, Told};
use crate::object::ObjectId;
use crate::plan::{Action, Change, Outcome, Step};

impl Follower {
    /// What nobody has looked at for long is verified once more.
    pub(super) fn look_over(&mut self) {
        let Some(memory) = &mut self.memory else { return };
        let stale = memory.stale(self.context.now(), self.context.settings.verify_every);
        if !stale.is_empty() {
            self.order.cluster.distrust(&self.owner, &stale);
            memory.unverified.extend(stale);
        }
    }

    /// Begins to verify one more object, if there is nothing better to do.
    pub(super) fn begin_verifying(&mut self) {
        let Some(memory) = self.memory.as_mut().filter(|_| self.verifying.is_none()) else { return };
        let Some(prepared) = memory.prepared.clone() else { return };
        let Some(id) = memory.unverified.pop_front() else { return };
        let (context, owner, order) = (self.context.clone(), self.owner.clone(), self.order.clone());
        let stop = Arc::<Stop>::default();
        self.verify_stop = stop.clone();
        self.verifying = Some(
            async move {
                context.verify_turn().await;
                let is_open = order.cluster.observed(&owner, |set| {
                    set.get(&id).is_some_and(|seen| seen.standing == crate::observed::Standing::Unverified)
                });
                if !is_open || stop.is_stopped() {
                    return (id, None);
                }
                let work = Work {
                    context: &context,
                    cluster: &order.cluster,
                    owner: &owner,
                    desired: &prepared.desired,
                    conflicts: order.wish.conflicts,
                    stop: &stop,
                };
                let step = Step { id: id.clone(), action: Action::Update(Change::Unverified) };
                let outcome = work.step(&step).await;
                (id, Some(outcome))
            }
            .boxed(),
        );
    }

    /// What failed is for the next pass, which knows when to try again.
    pub(super) fn verified(&mut self, id: ObjectId, outcome: Option<Outcome>) -> Option<Event> {
        self.verifying = None;
        let outcome = outcome?;
        if let Some(memory) = &mut self.memory {
            memory.replied(std::iter::once(id.clone()), self.context.now());
        }
        let failed = matches!(outcome, Outcome::Failed(_));
        if let Some(memory) = self.memory.as_mut().filter(|_| failed) {
            let now = self.context.now();
            if let Some(prepared) = memory.prepared.clone() {
                let outcomes = BTreeMap::from([(id.clone(), outcome.clone())]);
                memory.learn(&outcomes, &prepared.desired, now, chance(), self.context.pauses);
            }
        }
        self.tell(Told::Verified(id, outcome));
        failed.then_some(Event::Dirty)
    }
}
