//! What a Sync remembers from pass to pass. All of it can be lost at any time, and only costs requests.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::prepare::Prepared;
use super::schedule::{Backoff, Time};
use crate::api::SpecHash;
use crate::desired::DesiredSet;
use crate::object::{GroupKind, ObjectId};
use crate::plan::{Action, Change, Failed, Outcome, Plan, Step};
use crate::source::Revision;

/// What a Sync remembers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The commit that the cluster is held to.
    pub(crate) prepared: Option<Prepared>,
    /// Objects that could not be written, and when they are tried again.
    pub(crate) failing: BTreeMap<ObjectId, Failing>,
    /// Kinds that may hold objects of this Sync.
    pub(crate) kinds: BTreeSet<GroupKind>,
    /// When the server answered last about each object.
    replied: HashMap<ObjectId, Time>,
    /// What was asked for, and of which revision, when it was last looked at.
    generation: u64,
    revision: Option<Revision>,
    /// It was looked up where this Sync owned objects before.
    pub(crate) swept: bool,
    /// Objects that nobody has looked at since the start, still to be verified.
    pub(crate) unverified: VecDeque<ObjectId>,
}

/// An object that could not be written.
#[derive(Debug)]
pub(crate) struct Failing {
    hash: Option<SpecHash>,
    until: Time,
    backoff: Backoff,
    why: Failed,
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
    /// With new input, what failed before is tried again; and what a commit comes to may depend on everything
    /// that is asked for.
    pub(crate) fn renew(&mut self, generation: u64, revision: &Revision) {
        if self.generation != generation {
            self.prepared = None;
        }
        if self.generation != generation || self.revision.as_ref() != Some(revision) {
            self.failing.clear();
        }
        self.generation = generation;
        self.revision = Some(revision.clone());
    }

    /// Takes the steps out of a plan that failed and are not to be tried again yet. One that is tried again is
    /// written now: whoever waits for it is told by the pass what it came to.
    pub(crate) fn postpone(
        &mut self,
        plan: &mut Plan,
        desired: &DesiredSet,
        now: Time,
    ) -> BTreeMap<ObjectId, Outcome> {
        let mut postponed = BTreeMap::new();
        if self.failing.is_empty() {
            return postponed;
        }
        // What is no step any more, because others brought it about or took it away, does not fail any more.
        let steps: BTreeSet<ObjectId> = plan.steps().map(|step| step.id.clone()).collect();
        self.failing.retain(|id, _| steps.contains(id));
        let waits = |step: &Step| {
            let failing = self.failing.get(&step.id)?;
            let hash = desired.get(&step.id).map(|wanted| wanted.hash);
            (failing.until > now && failing.hash == hash).then(|| failing.why.clone())
        };
        for (_, steps) in &mut plan.stages {
            steps.retain(|step| match waits(step) {
                Some(why) => {
                    postponed.insert(step.id.clone(), Outcome::Failed(why));
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

    /// Remembers what failed and forgets what did not.
    pub(crate) fn learn(
        &mut self,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        desired: &DesiredSet,
        now: Time,
        chance: f64,
        pauses: Pauses,
    ) {
        for (id, outcome) in outcomes {
            let Outcome::Failed(why) = outcome else {
                self.failing.remove(id);
                continue;
            };
            let hash = desired.get(id).map(|wanted| wanted.hash);
            let mut backoff = match self.failing.get(id) {
                Some(known) if known.hash == hash => known.backoff,
                Some(_) | None => pauses.cluster,
            };
            let pause = if why.manifest { pauses.manifest } else { backoff.failed(chance) };
            let failing = Failing { hash, until: now + pause, backoff, why: why.clone() };
            self.failing.insert(id.clone(), failing);
        }
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

    /// The server has answered about these objects now; all others that are not wanted are forgotten.
    pub(crate) fn replied(&mut self, ids: impl Iterator<Item = ObjectId>, now: Time) {
        self.replied.extend(ids.map(|id| (id, now)));
    }

    /// When something that failed is tried again.
    pub(crate) fn next(&self) -> Option<Time> {
        self.failing.values().map(|failing| failing.until).min()
    }
}
