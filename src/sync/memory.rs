//! What a Sync remembers from pass to pass. All of it can be lost at any time, and only costs requests.

mod refused;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::awaited::Awaited;
use super::backends::Unreached;
use super::claims::ClaimWaits;
use super::fights::Fights;
use super::guarded::Guarded;
use super::incomparable::Incomparable;
use super::leaving::Leaving;
use super::ledger::Ledger;
use super::namespaces::Namespaces;
use super::prepare::Prepared;
use super::refusal::Refusal;
use super::restless::Restless;
use super::rights::Lacking;
use super::rollout::{RolledOut, Unwell};
use super::scale::Scaling;
use super::schedule::{Backoff, Time};
use super::survey::Ends;
use super::verify::How;
use crate::api::{SpecHash, SyncName};
use crate::cluster::{AllNews, Cluster};
use crate::desired::DesiredSet;
use crate::object::{GroupKind, ObjectId};
use crate::plan::{Action, Change, Hold, Outcome, Plan, Replacement, Stage, Step, Unserved};
use crate::source::{Keys, Revision, Signed};
pub(crate) use refused::Refused;

/// What a Sync remembers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The commit that the cluster is held to.
    pub(crate) prepared: Option<Prepared>,
    /// Objects that could not be written, and when they are tried again.
    pub(crate) failing: BTreeMap<ObjectId, Failing>,
    /// Objects that could not be compared.
    pub(crate) incomparable: Incomparable,
    /// Kinds that may hold objects of this Sync.
    pub(crate) kinds: BTreeSet<GroupKind>,
    /// Namespaces that may hold objects of this Sync.
    pub(crate) places: BTreeSet<Box<str>>,
    /// When the server answered last about each object.
    replied: HashMap<ObjectId, Time>,
    /// What was asked for, and of which revision, when it was last looked at.
    generation: u64,
    revision: Option<Revision>,
    /// So long others may deny an object before its revision is given up, where it may be.
    pub(crate) patience: Option<Duration>,
    /// The revision whose signature was found to be good last, and by which keys.
    pub(crate) trusted: Option<(Revision, Signed, Arc<Keys>)>,
    /// It was looked up where this Sync owned objects before.
    pub(crate) swept: bool,
    /// Some kinds could not be listed then, so that only what is written down tells of objects of them.
    pub(crate) is_blind: bool,
    /// Objects that nobody has looked at since the start, still to be verified.
    pub(crate) unverified: VecDeque<(ObjectId, How)>,
    /// Some of them are compared, and the pass that asked for that has not told all.
    pub(crate) compares: bool,
    /// Who undoes our repairs.
    pub(crate) fights: Fights,
    /// What a person approved and is not gone yet, by uid.
    pub(crate) consented: BTreeMap<ObjectId, Box<str>>,
    /// Changes that need a new object, where the deletion of the old one needs approval.
    pub(crate) replacements: BTreeMap<ObjectId, Replacement>,
    /// Objects on which the mark of another Sync is not believed.
    pub(crate) disbelieved: BTreeSet<ObjectId>,
    /// An apply has found one of these, and the next plan names the approval.
    pub(crate) asks: bool,
    /// What is written to all the time.
    pub(crate) restless: Restless,
    /// Since when objects wait for other Syncs.
    pub(crate) claim_waits: ClaimWaits,
    /// What is on its way out.
    pub(crate) leaving: Leaving,
    /// What takes others with it.
    pub(crate) guarded: Guarded,
    /// What has come to its end.
    pub(crate) ends: Ends,
    /// When the next pause ends for which people ask.
    pub(crate) pause_ends: Option<Time>,
    /// Others' claims on fields.
    pub(crate) ledger: Arc<Ledger>,
    /// What objects wait for.
    pub(crate) namespaces: Namespaces,
    /// Which rights are missing.
    pub(crate) lacking: Option<Lacking>,
    /// What others may scale.
    pub(crate) scaling: Scaling,
    /// The newest commit, while it cannot be rendered.
    pub(crate) refusal: Option<Refusal>,
    /// What has become of definitions and was not heeded yet.
    pub(crate) definitions: AllNews,
    /// Resources whose kinds are not served yet.
    pub(crate) awaited: Awaited,
    /// Objects whose webhooks fail.
    pub(crate) unreached: Unreached,
    /// Which sets have been rolled out.
    pub(crate) rolled_out: RolledOut,
    /// What was not well when the last roll-out was looked at.
    pub(crate) gate: Option<Unwell>,
    /// Objects that others deleted, and that are not there again.
    pub(crate) deleted: BTreeSet<ObjectId>,
    /// Objects that are gone as expected: this Sync deleted them, or they had come to their end. Nobody is blamed for these.
    pub(crate) departed: BTreeSet<ObjectId>,
    /// A person asks to run hooks again that have failed.
    pub(crate) again: bool,
    /// When hooks that have run are deleted, if there are any.
    pub(crate) clears: Option<Time>,
    /// When kinds that the server does not know, and scalers that it does not show, are asked for once more, as long as
    /// there are any.
    pub(crate) unknown: Option<(Time, Backoff)>,
}

/// What is not tried again yet.
#[derive(Debug, Default)]
pub(crate) struct Postponed {
    pub(crate) outcomes: BTreeMap<ObjectId, Outcome>,
    pub(crate) blocking: Vec<(Stage, ObjectId)>,
}

/// After this time it is tried again what waits for somebody's decision, or for what we are told of anyway.
pub(super) const HELD: Duration = Duration::from_secs(60);

/// After this time one of many objects is tried again that may not be written.
const PROBE: Duration = Duration::from_secs(4);

/// A kind in a namespace.
type Place = (GroupKind, Box<str>);

fn place(id: &ObjectId) -> Place {
    (id.group_kind(), id.namespace().unwrap_or_default().into())
}

fn is_forbidden(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(why) if why.reason == "Forbidden")
}

/// An object that could not be written.
#[derive(Debug)]
pub(crate) struct Failing {
    hash: Option<SpecHash>,
    until: Time,
    /// The same by the wall clock, for people.
    next_try: Option<Timestamp>,
    backoff: Backoff,
    /// Since when only another manifest could help, if so, and when that was found out once more.
    refused: Option<(Time, Time)>,
    why: Outcome,
}

/// The pauses after failures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    /// Between attempts that wait for the cluster.
    pub(crate) cluster: Backoff,
    /// Between attempts that wait for another manifest.
    pub(crate) manifest: Duration,
}

/// The same number for an object in every run, so that a restart does not move its time.
fn hash(id: &ObjectId) -> u16 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    (id.as_str().bytes().fold(0x811c_9dc5, step) >> 16) as u16
}

impl Memory {
    /// The last render, if it was made as this order asks for it: what a commit comes to may depend on every field.
    pub(crate) fn rendered_as(&self, order: u64) -> Option<&Prepared> {
        self.prepared.as_ref().filter(|_| self.generation == order)
    }

    /// A revision has rendered completely and is about to be applied. With new input, what failed before is tried again.
    pub(crate) fn takes_up(&mut self, generation: u64, revision: &Revision) {
        if self.generation != generation || self.revision.as_ref() != Some(revision) {
            self.failing.clear();
            self.incomparable.clear();
        }
        self.generation = generation;
        self.revision = Some(revision.clone());
    }

    /// Takes the steps out of a plan that failed and are not to be tried again yet. One that is tried again is
    /// written now: whoever waits for it is told by the pass what it came to.
    pub(crate) fn postpone(&mut self, plan: &mut Plan, desired: &DesiredSet, now: Time) -> Postponed {
        let mut postponed = Postponed::default();
        let namespaces = &self.namespaces;
        self.failing.retain(|_, failing| !namespaces.frees(&failing.why));
        if self.failing.is_empty() {
            return postponed;
        }
        // What is no step any more, because others brought it about or took it away, does not fail any more.
        let steps: BTreeSet<&ObjectId> = plan.steps().map(|step| &step.id).collect();
        self.failing.retain(|id, _| steps.contains(id));
        let waits = |step: &Step| {
            let failing = self.failing.get(&step.id)?;
            let hash = desired.get(&step.id).map(|wanted| wanted.hash);
            (failing.until > now && failing.hash == hash).then(|| failing.why.clone())
        };
        for (stage, steps) in &mut plan.stages {
            steps.retain(|step| match waits(step) {
                Some(why) => {
                    postponed.blocking.push((*stage, step.id.clone()));
                    postponed.outcomes.insert(step.id.clone(), why);
                    false
                }
                None => true,
            });
            let again = steps.iter_mut().filter(|step| self.failing.contains_key(&step.id));
            again.filter(|step| step.action == Action::Update(Change::Unverified)).for_each(|step| {
                step.action = Action::Update(Change::Moved);
            });
        }
        postponed
    }

    /// Tries at once the objects that the Sync which applied them has released.
    pub(crate) fn free_released(&mut self, is_released: impl Fn(&str, &ObjectId) -> bool) {
        self.failing.retain(|id, failing| match &failing.why {
            Outcome::Held(Hold::OwnedBy(other)) => !is_released(other, id),
            _ => true,
        });
    }

    /// The next tries of objects that are refused, as far as they are known.
    pub(crate) fn next_tries(&self) -> BTreeMap<ObjectId, Timestamp> {
        let tries = self.failing.iter().filter_map(|(id, failing)| Some((id.clone(), failing.next_try?)));
        tries.collect()
    }

    /// Notes by the wall clock when objects that were just refused are tried again. The time of a try stays as it was noted.
    pub(crate) fn note_tries(&mut self, outcomes: &BTreeMap<ObjectId, Outcome>, now: Time, wall: Timestamp) {
        for (id, failing) in &mut self.failing {
            let is_refused = matches!(&failing.why, Outcome::Failed(why) if why.manifest);
            if is_refused && outcomes.contains_key(id) {
                failing.next_try = wall.checked_add(failing.until.saturating_sub(now)).ok();
            }
        }
    }

    /// Remembers what failed and forgets what did not, and what was looked at in vain.
    pub(crate) fn learn(
        &mut self,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        desired: &DesiredSet,
        now: Time,
        chance: f64,
        pauses: Pauses,
    ) {
        self.restless.learn(outcomes, now);
        self.unreached.learn(outcomes, now);
        let mut granted = BTreeSet::new();
        for (id, outcome) in outcomes {
            if let Outcome::Held(Hold::ReplacementWaits(replacement)) = outcome {
                self.replacements.insert(id.clone(), (**replacement).clone());
                self.asks = true;
            }
            let hash = desired.get(id).map(|wanted| wanted.hash);
            let mut backoff = match self.failing.get(id) {
                Some(known) if known.hash == hash => known.backoff,
                Some(_) | None => pauses.cluster,
            };
            let pause = match outcome {
                Outcome::Failed(why) if why.manifest => {
                    let left = self.patience_left(id, hash, why, now);
                    left.map_or(pauses.manifest, |left| left.min(pauses.manifest))
                }
                Outcome::Held(Hold::Unserved(_)) => backoff.failed(chance).min(self.unreached.left(id, now)),
                Outcome::Failed(_) => backoff.failed(chance),
                Outcome::Held(
                    Hold::Conflict { .. }
                    | Hold::NamespaceMissing(_)
                    | Hold::NamespaceTerminating(_)
                    | Hold::OwnedBy(_)
                    | Hold::Occupied(_)
                    | Hold::MayBeOccupied(_),
                ) => HELD,
                _ => {
                    let known = self.failing.remove(id);
                    if known.is_some_and(|known| is_forbidden(&known.why)) {
                        granted.insert(place(id));
                    }
                    continue;
                }
            };
            let refused = self.refused_since(id, hash, outcome, now).map(|since| (since, now));
            let (until, why) = (now + pause, outcome.clone());
            let failing = Failing { hash, until, next_try: None, backoff, refused, why };
            self.failing.insert(id.clone(), failing);
        }
        self.probe(&granted, now);
    }

    /// Of what is forbidden, one object of each kind and namespace is tried soon, so that rights that are given are
    /// soon seen; and with it all others once it is not forbidden any more.
    fn probe(&mut self, granted: &BTreeSet<Place>, now: Time) {
        let mut probed = BTreeSet::new();
        for (id, failing) in self.failing.iter_mut().filter(|(_, failing)| is_forbidden(&failing.why)) {
            let place = place(id);
            if granted.contains(&place) {
                failing.until = failing.until.min(now);
            } else if probed.insert(place) {
                failing.until = failing.until.min(now + PROBE);
            }
        }
    }

    /// Remembers when to ask once more for what the server did not tell, if anything is missing.
    pub(crate) fn miss(&mut self, missing: bool, now: Time, chance: f64, pauses: Pauses) {
        let mut backoff = match self.unknown {
            // Asked in between for another reason.
            Some((due, _)) if missing && due > now => return,
            Some((_, backoff)) => backoff,
            None => pauses.cluster,
        };
        self.unknown = missing.then(|| (now + backoff.failed(chance), backoff));
    }

    /// True if others deleted an object that is created now: every object was there, or its end was seen.
    pub(crate) fn was_deleted(&self, id: &ObjectId, was_applied: bool) -> bool {
        was_applied || self.deleted.contains(id) && !self.departed.contains(id)
    }

    /// Remembers which objects are gone as expected, until they are created again or nobody knows of them.
    pub(crate) fn note_departed(
        &mut self,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        is_known: impl Fn(&ObjectId) -> bool,
    ) {
        let going = outcomes.iter().filter(|(_, it)| matches!(it, Outcome::Pruned { gone: false }));
        self.departed.retain(|id| is_known(id) && outcomes.get(id) != Some(&Outcome::Created));
        self.departed.extend(going.map(|(id, _)| id.clone()));
    }

    /// Watches the namespaces that objects wait for.
    pub(crate) fn wait(&mut self, cluster: &Cluster, owner: &SyncName) {
        let waiting = self.failing.values().map(|failing| &failing.why);
        self.namespaces.watch(cluster, owner, waiting);
    }

    /// Objects whose last reply is so long ago that they are verified once more: after three quarters of `every` at
    /// the earliest, and each at a time of its own.
    pub(crate) fn stale(&mut self, now: Time, every: Duration) -> Vec<ObjectId> {
        let due = |id: &ObjectId, replied: Time| {
            let spread = f64::from(hash(id) % 1024) / 2048.0;
            now.saturating_sub(replied) >= every.mul_f64(0.75 + spread)
        };
        let found: Vec<ObjectId> =
            self.replied.iter().filter(|(id, at)| due(id, **at)).map(|(id, _)| id.clone()).collect();
        for id in &found {
            self.replied.remove(id);
        }
        found
    }

    /// The server has answered about these objects now. One that is not wanted any more is forgotten when it is stale.
    pub(crate) fn replied(&mut self, ids: impl Iterator<Item = ObjectId>, now: Time) {
        self.replied.extend(ids.map(|id| (id, now)));
    }

    /// When something that failed is tried again, or something that waits for a time may go on or has waited too long.
    pub(crate) fn next(&self, now: Time, within: Duration) -> Option<Time> {
        let failing = self.failing.values().filter(|it| !it.is_owned()).map(|it| it.until);
        let unknown = self.unknown.map(|(due, _)| due);
        let late = self.leaving.next(now, within);
        let failing =
            failing.chain(self.clears).chain(self.incomparable.next(now)).chain(self.awaited.next(now));
        let failing = failing.chain(self.claim_waits.next(now));
        let again = self.fights.next(now).into_iter().chain(self.restless.next());
        failing.chain(again).chain(self.pause_ends).chain(unknown).chain(late).chain(self.next_try()).min()
    }
}

impl Failing {
    /// The webhook that it waits for, if it does.
    pub(crate) fn unserved(&self) -> Option<&Unserved> {
        match &self.why {
            Outcome::Held(Hold::Unserved(why)) => Some(why),
            _ => None,
        }
    }

    /// True if another Sync applies it: nothing is sent before that one releases it, or a pass has another cause.
    fn is_owned(&self) -> bool {
        matches!(self.why, Outcome::Held(Hold::OwnedBy(_)))
    }

    /// True if it is not tried again yet.
    pub(crate) fn waits(&self, now: Time) -> bool {
        self.until > now
    }
}

#[cfg(test)]
mod tests;
