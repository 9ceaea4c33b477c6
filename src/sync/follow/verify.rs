//! Objects that nobody has looked at since the start, or for long: they are verified one by one.
//!
//! In: what a Sync remembers. Out: one object at a time that is looked at once more while nothing better is to do, and
//! an event where that failed.

use std::sync::Arc;

use futures::future::FutureExt as _;

use super::super::asked::Asked;
use super::super::carry_out::{Deletions, Work};
use super::super::chance;
use super::super::schedule::Event;
use super::{Follower, Told};
use crate::cluster::Stop;
use crate::object::ObjectId;
use crate::plan::Outcome;

impl Follower {
    /// What nobody has looked at for long is verified once more.
    pub(super) fn look_over(&mut self) -> Option<Event> {
        // A repository that is silent for that long must not keep repairs waiting.
        if self.looking.is_some() && self.begins_to_keep() {
            return Some(Event::Keeps);
        }
        let memory = self.memory.as_mut()?;
        let stale = memory.stale(self.context.now(), self.context.settings().verify_every);
        if !stale.is_empty() {
            self.order.cluster.distrust(&self.owner, &stale);
            // How they may be looked at is for the plan to say.
            return Some(Event::Dirty);
        }
        None
    }

    /// Objects without a valid proof are verified once more. While drift was only reported nothing was written, also no proof.
    pub(super) fn distrusts_unproven(&self) {
        let cluster = &self.order.cluster;
        let unproven: Vec<ObjectId> = cluster.observed(&self.owner, |seen| {
            seen.iter().filter(|(_, seen)| !seen.proven).map(|(id, _)| id.clone()).collect()
        });
        cluster.distrust(&self.owner, &unproven);
    }

    /// Begins to verify one more object, if there is nothing better to do.
    pub(super) fn begin_verifying(&mut self) {
        let cluster = self.order.cluster.of_this_term();
        if !cluster.may_write() {
            return;
        }
        let Some(memory) = self.memory.as_mut().filter(|_| self.verifying.is_none()) else { return };
        let Some(prepared) = memory.prepared.clone() else { return };
        let Some((id, how)) = memory.unverified.pop_front() else { return };
        let (context, owner, order) = (self.context.clone(), self.owner.clone(), self.order.clone());
        let (stop, ledger) = (Stop::default(), memory.ledger.clone());
        let (contested, numbers) = (memory.fights.contested(context.now()), memory.scaling.numbers());
        let backends = memory.unreached.shared(context.now());
        let (refused, desk) = (self.refused.clone(), self.desk.clone());
        let deletions = Arc::new(Deletions {
            protected: order.wish.protected.clone(),
            consented: memory.consented.clone(),
            ..Deletions::default()
        });
        self.verify_stop = stop.clone();
        self.verifying = Some(
            async move {
                // An apply may find that the object can only change by being created anew.
                let asked = Asked::by(order.generation, desk.as_ref());
                let work = Work {
                    context: &context,
                    cluster: &cluster,
                    owner: &owner,
                    desired: &prepared.desired,
                    conflicts: order.wish.conflicts,
                    predecessor: order.predecessor.as_ref(),
                    ledger: &ledger,
                    contested: Arc::new(contested),
                    deletions,
                    numbers,
                    asked: &asked,
                    backends: &backends,
                    refused: refused.as_deref(),
                    stop: &stop,
                };
                let outcome = work.verify(&id, how).await;
                (id, outcome)
            }
            .boxed(),
        );
    }

    /// What failed is for the next pass, which knows when to try again.
    pub(super) fn verified(&mut self, id: ObjectId, outcome: Option<Outcome>) -> Option<Event> {
        self.verifying = None;
        let mut outcome = outcome?;
        let (now, pauses) = (self.context.now(), self.context.pauses());
        let due = self.memory.as_mut().is_some_and(|memory| {
            let desired = memory.prepared.as_ref().map(|prepared| prepared.desired.clone());
            desired.is_some_and(|set| memory.verified(&id, &outcome, &set, now, chance(), pauses))
        });
        let prepared = self.memory.as_ref().and_then(|memory| memory.prepared.as_ref());
        if prepared.is_some_and(|prepared| prepared.desired.is_tainted(&id)) {
            outcome.veil();
        }
        if let Some(memory) = &mut self.memory {
            memory.replied(std::iter::once(id.clone()), now);
        }
        self.tell(Told::Verified(id, outcome));
        due.then_some(Event::Dirty)
    }
}
