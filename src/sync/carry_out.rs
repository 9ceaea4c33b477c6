//! Carries out a plan.
//!
//! In: a [`Plan`] and what it was made from. Out: what became of each object. Stages go one after the other, the
//! steps of a stage side by side. What failed holds back higher waves and what cannot be without it, never its
//! peers. Before each write it is asked whether a newer commit has come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Context;
use super::asked::Asked;
use super::backends::Backends;
use super::event::is_change;
use super::ledger::Ledger;
use super::registry::Claimed;
use crate::adopt::Predecessor;
use crate::api::{Conflicts, PROOF_ANNOTATION, SpecHash, SyncName};
use crate::cluster::{Applied, Cluster, Failure, Force, Remedy, Stop, answer};
use crate::desired::{DesiredSet, Replicas};
use crate::fields::{FieldPath, FieldSet};
use crate::health::may_report;
use crate::object::{GroupKind, ObjectId};
use crate::observed::{Observed, Own, Part, holds_keys};
use crate::plan::{
    Action, AwaitedKinds, Awaits, Change, Contest, Failed, Hold, Outcome, Plan, Stage, Step, holds_back,
    holds_more, may_fill_keys,
};
use futures::StreamExt as _;

/// Steps that wait for their turn at one time. How many of them are sent is for the gate before the cluster to say.
const SIDE_BY_SIDE: usize = 64;

/// Who writes, where, and what.
pub(crate) struct Work<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a Cluster,
    pub(crate) owner: &'a SyncName,
    pub(crate) desired: &'a DesiredSet,
    pub(crate) conflicts: Conflicts,
    /// Whose objects these were before.
    pub(crate) predecessor: Option<&'a Predecessor>,
    pub(crate) ledger: &'a Ledger,
    /// Whose repairs others undo.
    pub(crate) contested: Arc<BTreeMap<ObjectId, Contest>>,
    /// The numbers of replicas that Git says.
    pub(crate) numbers: Arc<BTreeMap<ObjectId, Replicas>>,
    pub(crate) deletions: Arc<Deletions>,
    /// Whether that is still what is asked for.
    pub(crate) asked: &'a Asked<'a>,
    /// The webhooks of the set, and their backends.
    pub(crate) backends: &'a Backends,
    /// A newer commit or spec that cannot be applied: until it can, nothing is deleted to be created again.
    pub(crate) refused: Option<&'a str>,
    pub(crate) stop: &'a Stop,
}

/// What is known about deletions when a plan is made.
#[derive(Debug, Default)]
pub(crate) struct Deletions {
    /// Objects that other Syncs claim, where a person decides about the claim.
    pub(crate) claimed: BTreeSet<ObjectId>,
    /// Kinds whose objects are deleted only by approval.
    pub(crate) protected: BTreeSet<GroupKind>,
    /// Approved deletions, by uid.
    pub(crate) consented: BTreeMap<ObjectId, Box<str>>,
}

/// Carries out every step but those that only verify.
/// `before` could not be done before, and is not tried now; `awaits` knows what has to be well first, and `kinds` which
/// resources go before webhooks.
pub(crate) async fn carry_out(
    work: &Work<'_>,
    plan: Plan,
    before: Vec<(Stage, ObjectId)>,
    mut awaits: Option<Awaits<'_>>,
    kinds: &mut AwaitedKinds<'_>,
) -> BTreeMap<ObjectId, Outcome> {
    let (mut outcomes, mut blocking) = (BTreeMap::new(), Vec::new());
    for (stage, id) in before {
        if holds_more(&blocking, stage, &id) {
            blocking.push((stage, id));
        }
    }
    for (stage, steps) in plan.stages {
        if work.stop.is_stopped() {
            break;
        }
        let (held, ready): (Vec<_>, Vec<_>) = steps
            .into_iter()
            .filter(|step| step.action != Action::Update(Change::Unverified))
            .map(|step| {
                let blocker = holds_back(&blocking, stage, &step.id).or_else(|| kinds.before(&step));
                (blocker.or_else(|| awaits.as_mut()?.before(&step)), step)
            })
            .partition(|(blocker, _)| blocker.is_some());
        let served = work.cluster.kinds();
        let is_served = |id: &ObjectId| served.get(&id.group_kind()).is_some();
        for (blocker, step) in held {
            if let Some(blocker) = blocker {
                let outcome = Outcome::Held(Hold::Waits(blocker));
                kinds.note(&step.id, &outcome, || is_served(&step.id));
                outcomes.insert(step.id, outcome);
            }
        }
        let done = futures::stream::iter(ready)
            .map(|(_, step)| async move {
                let outcome = match work.stop.is_stopped() {
                    true => None,
                    false => work.step(&step).await,
                };
                (step.id, outcome)
            })
            .buffer_unordered(SIDE_BY_SIDE);
        for (id, outcome) in done.collect::<Vec<_>>().await {
            let Some(outcome) = outcome else { continue };
            kinds.note(&id, &outcome, || is_served(&id));
            if blocks(&outcome) && holds_more(&blocking, stage, &id) {
                blocking.push((stage, id.clone()));
            }
            if let Some(awaits) =
                awaits.as_mut().filter(|_| is_change(&outcome) && may_report(&id.group_kind()))
            {
                awaits.written(&id);
            }
            outcomes.insert(id, outcome);
        }
    }
    outcomes
}

/// True if what comes later must wait.
fn blocks(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(_) | Outcome::Pruned { gone: false } => true,
        Outcome::Held(hold) => hold.is_missing(),
        _ => false,
    }
}

impl Work<'_> {
    /// Carries out one step; none if it was stopped while it waited for its turn. Many wait there at a time, and after
    /// a newer commit none of them is sent.
    pub(crate) async fn step(&self, step: &Step) -> Option<Outcome> {
        let cluster = match step.action {
            // Of its two writes the first is another Sync's, and the second must follow.
            Action::HandOver { .. } => self.cluster.clone(),
            _ => self.cluster.until(self.stop),
        };
        let (contested, numbers) = (self.contested.clone(), self.numbers.clone());
        let deletions = self.deletions.clone();
        let work = Work { cluster: &cluster, contested, numbers, deletions, ..*self };
        if let Some(hold) = work.guarded(step).await {
            return Some(Outcome::Held(hold));
        }
        match work.act(step).await {
            Err(Failure::Superseded) => None,
            Err(failure) => Some(work.refusal(step, &failure)),
            Ok(outcome) => Some(outcome),
        }
    }

    async fn act(&self, step: &Step) -> Result<Outcome, Failure> {
        match &step.action {
            Action::Create => self.first_contact(&step.id).await,
            Action::Follow { runs } => match self.make_room(runs).await? {
                Some(held) => Ok(held),
                None => self.first_contact(&step.id).await,
            },
            Action::Adopt { managers } => {
                self.apply(&step.id, None, |_| Outcome::Adopted(managers.clone())).await
            }
            Action::Update(Change::Again) => self.run_again(&step.id).await,
            Action::Update(change) => {
                let (before, own) = (self.version(&step.id), self.own(&step.id, change));
                let fields = self.fields_without_proof(&step.id, change);
                let is_same = |applied: &Applied| {
                    applied.version == before
                        || own.as_ref().is_some_and(|own| self.has_left(own, applied))
                        || fields.as_ref().is_some_and(|fields| self.has_only_proven(fields, applied))
                };
                self.apply(&step.id, Some(change), |applied| match is_same(applied) {
                    true => Outcome::Kept,
                    false if applied.created => Outcome::Created,
                    false => Outcome::Updated(change.clone()),
                })
                .await
            }
            Action::HandOver { to } => self.hand_over(&step.id, to).await,
            Action::Prune { uid, resource_version } => self.prune(&step.id, uid, resource_version).await,
        }
    }

    /// The object was not seen. That it is there all the same is found out by the write itself.
    async fn first_contact(&self, id: &ObjectId) -> Result<Outcome, Failure> {
        if let Some(wanted) = self.desired.get(id) {
            match self.create_new(wanted).await {
                Ok(None) if may_fill_keys(wanted) => {
                    let live = self.cluster.metadata(id, &wanted.version).await?;
                    if live.as_ref().is_some_and(holds_keys) {
                        return Ok(Outcome::Held(Hold::OwnKeys));
                    }
                }
                Ok(None) => {}
                Ok(Some(created)) => return Ok(created),
                Err(failure) => return self.refused(wanted, failure).await,
            }
        }
        self.apply(id, None, |applied| match applied.created {
            true => Outcome::Created,
            false => Outcome::Adopted(Vec::new()),
        })
        .await
    }

    /// Another Sync wants the object: it is applied as that one says, and then we let go of it. Nothing is deleted.
    async fn hand_over(&self, id: &ObjectId, to: &str) -> Result<Outcome, Failure> {
        let held = || Ok(Outcome::Held(Hold::ClaimedBy(to.into())));
        let Some(claimed) = self.context.registry.wanted_by(to, id) else { return held() };
        let Claimed { sync: other, wanted, cluster, receiving } = claimed;
        let Some(leave) = receiving.begin() else { return held() };
        let cluster = cluster.until(&leave.stop);
        // What the other leaves to others must not go with us.
        if let Some(own) = self.cluster.observed(self.owner, |set| set.get(id)?.owned()) {
            self.hand_fields_over(&wanted, &own, &[]).await?;
        }
        // With the rights of the other: to claim something gives nobody more than he has.
        match cluster.apply(&wanted, &other, Force::Yes).await {
            Ok(_) => {}
            Err(failure) if matches!(failure.code(), Some(401 | 403)) => return held(),
            // It wants something newer, which it takes itself, or is given next time.
            Err(Failure::Superseded) => return held(),
            // The object is still ours.
            Err(failure) if self.make_way(&wanted, &failure, true).await? => {
                cluster.apply(&wanted, &other, Force::Yes).await?;
            }
            Err(failure) => return Err(failure),
        }
        drop(leave);
        self.cluster.release(id, &wanted.version, &self.owner.to_string()).await?;
        // Where the watch tells of it late, it would be handed over again and again until then.
        self.cluster.let_go(self.owner, id);
        // To the store this was a write of its own, which wakes nobody.
        cluster.wake(&other).notify_one();
        Ok(Outcome::HandedOver(to.into()))
    }

    /// The Sync that claims an object, unless a person decides about that claim.
    pub(super) fn claimed(&self, id: &ObjectId) -> Option<Box<str>> {
        self.context.claimed(self.owner, id).filter(|_| !self.deletions.claimed.contains(id))
    }

    /// Looks once more, and deletes what is still the object that was meant, if that is still meant.
    async fn prune(&self, id: &ObjectId, uid: &str, version: &str) -> Result<Outcome, Failure> {
        // Somebody may want it since the plan was made.
        if let Some(sync) = self.claimed(id) {
            return Ok(Outcome::Held(Hold::ClaimedBy(sync)));
        }
        let Some(live) = self.cluster.look(id, self.owner).await? else {
            return Ok(Outcome::Pruned { gone: true });
        };
        let is_meant = *live.uid == *uid && live.mark == crate::observed::Mark::Ours && live.applied_by_us;
        if live.part == Part::Keys {
            return Ok(Outcome::Held(Hold::OwnKeys));
        }
        if !is_meant || live.controlled || live.prune_disabled || live.reconcile_disabled {
            return Ok(Outcome::Held(Hold::NotAppliedByUs));
        }
        if !live.proven && self.deletions.consented.get(id).is_none_or(|consented| **consented != *uid) {
            return Ok(Outcome::Held(Hold::Unproven));
        }
        if let Some(hold) = self.occupied(id).await? {
            return Ok(Outcome::Held(hold));
        }
        if let Err(instead) = self.asked.still(self.context).await {
            return Ok(instead);
        }
        let version = if live.resource_version.is_empty() { version } else { &live.resource_version };
        // Before its end is told.
        self.context.registry.note_pruned(uid);
        let gone = self.cluster.delete(id, self.owner, uid, version).await?;
        Ok(Outcome::Pruned { gone })
    }

    /// Our entry before an object is looked at to which somebody wrote.
    fn own(&self, id: &ObjectId, change: &Change) -> Option<Own> {
        let is_look = matches!(change, Change::Moved);
        self.cluster
            .observed(self.owner, |set| set.get(id)?.baseline.as_ref()?.own.clone())
            .filter(|_| is_look)
    }

    /// True if an apply has left our entry as it was, time included: then it changed nothing, and a newer version is of
    /// somebody who wrote at the same moment.
    fn has_left(&self, own: &Own, applied: &Applied) -> bool {
        let now = Observed::applied(&applied.object, self.owner).baseline.and_then(|baseline| baseline.own);
        now.is_some_and(|now| (now.digest, &now.time) == (own.digest, &own.time))
    }

    /// Our fields of an object whose proof is missing or of a former key, before the look that follows every start.
    fn fields_without_proof(&self, id: &ObjectId, change: &Change) -> Option<FieldSet> {
        let proof = self.cluster.notary().prove(self.owner, id)?;
        self.cluster
            .observed(self.owner, |set| {
                let seen = set.get(id).filter(|seen| seen.proof.as_deref() != Some(&proof))?;
                seen.owned()
            })
            .filter(|_| *change == Change::Unverified)
    }

    /// True if an apply has changed none of our fields but the proof: then the object was as Git says.
    fn has_only_proven(&self, before: &FieldSet, applied: &Applied) -> bool {
        let Some(now) = Observed::seen(&applied.object, self.owner).owned() else { return false };
        let proof = FieldPath::of_fields(&["metadata", "annotations", PROOF_ANNOTATION]);
        before.minus(&now).is_empty() && now.minus(before).members().iter().all(|path| *path == proof)
    }

    /// The hash that was recorded on the object.
    pub(super) fn recorded(&self, id: &ObjectId) -> Option<SpecHash> {
        let read = |set: &crate::observed::ObservedSet| set.get(id).and_then(|seen| seen.recorded);
        self.cluster.observed(self.owner, read)
    }

    fn version(&self, id: &ObjectId) -> Box<str> {
        let read = |set: &crate::observed::ObservedSet| set.get(id).map(|seen| seen.resource_version.clone());
        self.cluster.observed(self.owner, read).unwrap_or_default()
    }
}

/// What a failed write comes to; of some objects the server's words are not told.
pub(crate) fn failed(failure: &Failure, hides: bool) -> Outcome {
    // Discovery lags behind a definition that was established a moment ago. The pass asks again by itself.
    if matches!(failure, Failure::UnknownKind(_)) {
        return Outcome::Held(Hold::UnknownKind);
    }
    let answer = answer(failure, hides);
    Outcome::Failed(Failed {
        reason: answer.reason,
        message: answer.message,
        manifest: answer.remedy == Remedy::Manifest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_there_as_it_should_be_blocks_what_comes_later() {
        let failed = |manifest| Outcome::Failed(Failed { reason: "Any", message: String::new(), manifest });
        let held = Outcome::Held;
        let id = ObjectId::parse("/ConfigMap|a/x").unwrap();
        for blocker in [
            failed(true),
            failed(false),
            Outcome::Pruned { gone: false },
            held(Hold::UnknownKind),
            held(Hold::OwnedBy("ops/other".into())),
            held(Hold::Conflict { managers: Vec::new(), fields: Vec::new() }),
            held(Hold::NamespaceMissing("a".into())),
            held(Hold::NamespaceTerminating("a".into())),
            held(Hold::BeingDeleted(Box::default())),
            held(Hold::Waits(id)),
        ] {
            assert!(blocks(&blocker), "{blocker:?}");
        }
        for done in [
            Outcome::Created,
            Outcome::Adopted(Vec::new()),
            Outcome::Updated(Change::Moved),
            Outcome::Recreated,
            Outcome::Kept,
            Outcome::HandedOver("ops/other".into()),
            Outcome::Pruned { gone: true },
            held(Hold::ReconcileDisabled),
            held(Hold::PruneDisabled),
            held(Hold::Protected),
            held(Hold::NotAppliedByUs),
        ] {
            assert!(!blocks(&done), "{done:?}");
        }
    }
}
