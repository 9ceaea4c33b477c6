//! What a Sync remembers from pass to pass. All of it can be lost at any time, and only costs requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::ledger::Ledger;
use super::namespaces::Namespaces;
use super::prepare::Prepared;
use super::schedule::{Backoff, Time};
use crate::api::{SpecHash, SyncName};
use crate::cluster::Cluster;
use crate::desired::DesiredSet;
use crate::object::{GroupKind, ObjectId};
use crate::plan::{Hold, Outcome, Plan, Stage, Step};
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
    /// What was asked for, and of which revision, when it was last looked at.
    generation: u64,
    revision: Option<Revision>,
    /// It was looked up where this Sync owned objects before.
    pub(crate) swept: bool,
    /// Objects that nobody has looked at since the start, still to be verified.
    pub(crate) unverified: VecDeque<ObjectId>,
    /// Others' claims on fields.
    pub(crate) ledger: Arc<Ledger>,
    /// What objects wait for.
    pub(crate) namespaces: Namespaces,
}

/// What is not tried again yet.
#[derive(Debug, Default)]
pub(crate) struct Postponed {
    pub(crate) outcomes: BTreeMap<ObjectId, Outcome>,
    pub(crate) blocking: Vec<(Stage, ObjectId)>,
}

/// After this time it is tried again what waits for somebody's decision, or for what we are told of anyway.
const HELD: Duration = Duration::from_secs(60);

/// An object that could not be written.
#[derive(Debug)]
pub(crate) struct Failing {
    hash: Option<SpecHash>,
    until: Time,
    backoff: Backoff,
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

    /// Takes the steps out of a plan that failed and are not to be tried again yet.
    pub(crate) fn postpone(&mut self, plan: &mut Plan, desired: &DesiredSet, now: Time) -> Postponed {
        let mut postponed = Postponed::default();
        let namespaces = &self.namespaces;
        self.failing.retain(|_, failing| !namespaces.frees(&failing.why));
        if self.failing.is_empty() {
            return postponed;
        }
        // What is not to be done any more is not waited for either.
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
            let hash = desired.get(id).map(|wanted| wanted.hash);
            let mut backoff = match self.failing.get(id) {
                Some(known) if known.hash == hash => known.backoff,
                Some(_) | None => pauses.cluster,
            };
            let pause = match outcome {
                Outcome::Failed(why) if why.manifest => pauses.manifest,
                Outcome::Failed(_) => backoff.failed(chance),
                Outcome::Held(
                    Hold::Conflict { .. } | Hold::NamespaceMissing(_) | Hold::NamespaceTerminating(_),
                ) => HELD,
                _ => {
                    self.failing.remove(id);
                    continue;
                }
            };
            let failing = Failing { hash, until: now + pause, backoff, why: outcome.clone() };
            self.failing.insert(id.clone(), failing);
        }
    }

    /// Watches the namespaces that objects wait for.
    pub(crate) fn wait(&mut self, cluster: &Cluster, owner: &SyncName) {
        let waiting = self.failing.values().map(|failing| &failing.why);
        self.namespaces.watch(cluster, owner, waiting);
    }

    /// When something that failed is tried again.
    pub(crate) fn next(&self) -> Option<Time> {
        self.failing.values().map(|failing| failing.until).min()
    }
}
