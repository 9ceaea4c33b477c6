//! What must be done so that the cluster holds what it should.
//!
//! In: a [`DesiredSet`], an [`ObservedSet`] and a [`Policy`]. Out: a [`Plan`]: one action for every object,
//! with its reason, in the stages in which it is carried out. The same function decides in the command line
//! tool, in a preview and in the daemon; nothing else decides.

mod awaited;
mod compare;
mod difference;
mod document;
mod explain;
mod farewell;
mod given;
mod guarded;
mod hold;
mod hooks;
mod order;
mod outcome;
mod policy;
mod preview;
mod protected;
mod prune;
mod removals;
mod replacement;
mod rest;
mod rollout;
mod veil;
mod wait;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

pub use awaited::AwaitedKinds;
pub use compare::compare;
pub use difference::{Difference, HIDDEN};
pub use document::document;
pub use explain::{Extent, Paint, Style, explain, summary};
pub use farewell::farewell;
pub use guarded::{guarded, may_take_more, takes_more};
pub use hold::{Guard, Hold};
pub use hooks::{Over, may_run};
pub use order::{Rank, Stage};
pub use outcome::{Failed, Outcome};
pub use policy::{Budget, Claim, ClaimStanding, DriftMode, Policy, protection};
pub use preview::{Preview, creations, preview};
pub use protected::sections;
pub use replacement::Replacement;
pub use rest::{Contest, next_expiry};
pub use rollout::{Awaits, Rollout};
pub use wait::{holds_back, holds_more};
pub use webhooks::{Backend, Guardian, Request, Unserved, Webhooks, backend_state, may_wait_behind};

use serde_json::{Map, Value};

use crate::desired::{DesiredObject, DesiredSet, Turn};
use crate::observed::{Drift, Mark, Observed, ObservedSet, Part, Standing};
use moorline_api::KEYS_LABEL;
use moorline_core::object::ObjectId;
use prune::Approval;

/// What is to be done with every object, each once.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is written, in the order in which it is written. Stages are carried out one after the other.
    pub stages: Vec<(Stage, Vec<Step>)>,
    /// Objects that are left alone although something would be to do, in the order of their ids.
    pub held: Vec<(ObjectId, Hold)>,
    /// Objects that are as they should be, in the order of their ids.
    pub kept: Vec<ObjectId>,
    /// What `moorline.dev/approve` must say so that the prunes that wait for approval are carried out.
    pub approval: Option<String>,
    /// What a person has approved and is still there, by uid.
    pub consented: BTreeMap<ObjectId, Box<str>>,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The object.
    pub id: ObjectId,
    /// What is done with it, and why.
    pub action: Action,
}

/// What is done with one object. What is kept or held is not written, and stands beside the stages.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The object is not there.
    Create,
    /// The object is a hook and not there, and runs of it under an older name are: they are deleted first.
    Follow {
        /// Those runs.
        runs: Vec<ObjectId>,
    },
    /// The object is there and nobody's: it is taken over from the managers named.
    Adopt {
        /// Who wrote it so far.
        managers: Vec<Box<str>>,
    },
    /// The object is ours and is not as it should be.
    Update(Change),
    /// Another Sync claims the object: it takes it over, and we let go.
    HandOver {
        /// The other Sync.
        to: Box<str>,
    },
    /// The object is ours and is no longer wanted.
    Prune {
        /// The object is deleted only if it is still this one.
        uid: Box<str>,
        /// The object is deleted only if nobody has changed it since.
        resource_version: Box<str>,
    },
}

/// Why an object is updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Git says something else than when it was applied.
    Committed,
    /// Somebody changed fields that Git sets.
    Drifted(Box<Drift>),
    /// Our entry among the managed fields is gone, so nothing is known of the fields.
    EntryLost,
    /// Nobody has looked since this program started.
    Unverified,
    /// Somebody wrote to it since, and whether fields that Git sets were changed is not known.
    Moved,
    /// It is a hook, and what it ran for is not what is wanted now: it is deleted, and runs anew.
    Again,
}

/// Decides what is to be done.
pub fn plan(desired: &DesiredSet, observed: &ObservedSet, policy: &Policy) -> Plan {
    let mut decided = Decided {
        steps: Vec::new(),
        held: Vec::new(),
        kept: Vec::with_capacity(desired.len().min(observed.len())),
    };
    let mut live = observed.iter().peekable();
    let mut unwanted = Vec::new();
    let over = Over::before(desired, policy);
    // Both sides are in the order of the ids, so one walk over both finds every pair.
    for object in desired.objects() {
        while let Some(entry) = live.next_if(|(id, _)| **id < object.id) {
            unwanted.push(entry);
        }
        let seen = live.next_if(|(id, _)| **id == object.id).map(|(_, seen)| seen);
        let is_listed = observed.is_listed(&object.id);
        let decision = wanted(object, (seen, is_listed), over, policy);
        let decision = match (decision, policy.in_doubt.get(&object.id)) {
            (Decision::Write(_), Some(why)) => Decision::Hold(Hold::MayBeScaled(why.clone())),
            (decision, _) => decision,
        };
        decided.add(object.id.clone(), decision, object.switches.turn());
    }
    unwanted.extend(live);
    hooks::follow(desired, &unwanted, policy, &mut decided);
    let replaced = replacement::due(desired, observed, policy, &decided);
    let Approval { asked, consented } =
        prune::decide(desired, observed, policy, (&unwanted, &replaced), &mut decided);
    replacement::hold_back(&replaced, &consented, &mut decided);
    if policy.suspended {
        decided.suspend();
    }
    wait::for_approval(&unwanted, &mut decided);
    wait::hold_back(desired, observed, &unwanted, &mut decided);
    rollout::hold_back(desired, policy, &mut decided);
    decided.held.sort_by(|(a, _), (b, _)| a.cmp(b));
    let stages = order::stages(decided.steps);
    Plan { stages, held: decided.held, kept: decided.kept, approval: asked, consented }
}

/// What one object comes to.
#[derive(Debug)]
enum Decision {
    Write(Action),
    Keep,
    Hold(Hold),
}

/// What all objects come to, before it is put in order.
struct Decided {
    steps: Vec<(Turn, Step)>,
    held: Vec<(ObjectId, Hold)>,
    kept: Vec<ObjectId>,
}

impl Decided {
    fn add(&mut self, id: ObjectId, decision: Decision, turn: Turn) {
        match decision {
            Decision::Write(action) => self.steps.push((turn, Step { id, action })),
            Decision::Keep => self.kept.push(id),
            Decision::Hold(hold) => self.held.push((id, hold)),
        }
    }

    /// A suspended Sync writes nothing.
    fn suspend(&mut self) {
        self.held.extend(self.steps.drain(..).map(|(_, step)| (step.id, Hold::Suspended)));
    }
}

/// What becomes of an object that should exist.
fn wanted(
    object: &DesiredObject,
    (seen, is_listed): (Option<&Observed>, bool),
    over: Over,
    policy: &Policy,
) -> Decision {
    if object.switches.reconcile_disabled {
        return Decision::Hold(Hold::ReconcileDisabled);
    }
    if object.scope.is_none() {
        return Decision::Hold(Hold::UnknownKind);
    }
    let holds_keys =
        || policy.own_keys.as_ref() == Some(&object.id) || seen.is_some_and(|it| it.part == Part::Keys);
    if is_marked_for_keys(object) || holds_keys() && changes_keys(object) {
        return Decision::Hold(Hold::OwnKeys);
    }
    if object.switches.skipped {
        return Decision::Keep;
    }
    if let Some(decision) =
        object.switches.hook.and_then(|hook| hooks::hook(object, hook, seen, over, policy))
    {
        return decision;
    }
    let Some(seen) = seen else {
        return rest::absent(object, is_listed, policy).unwrap_or(Decision::Write(Action::Create));
    };
    match &seen.mark {
        _ if seen.reconcile_disabled => Decision::Hold(Hold::ReconcileDisabled),
        _ if seen.deleting && rest::finished(object, policy) => Decision::Keep,
        _ if seen.deleting => Decision::Hold(Hold::BeingDeleted(seen.finalizers.clone())),
        Mark::Sync(sync) if !(seen.proven || policy.disbelieved.contains(&object.id)) => {
            Decision::Hold(Hold::OwnedBy(sync.clone()))
        }
        // Somebody took our mark off what we have applied just so: an edit by hand like any other.
        Mark::Sync(_) | Mark::Copied | Mark::None if !(seen.applied_by_us && is_recorded(object, seen)) => {
            Decision::Write(Action::Adopt { managers: seen.managers.clone() })
        }
        _ if object.switches.apply_once => Decision::Keep,
        // What another object controls and we once marked is still to be applied: Git wants it.
        Mark::Ours | Mark::Sync(_) | Mark::Copied | Mark::None => owned(object, seen, policy),
    }
}

/// True for a Secret that Git fills with keys of its own choice.
fn is_marked_for_keys(object: &DesiredObject) -> bool {
    let labels = |body: &Map<String, Value>| body.get("metadata")?.get("labels")?.get(KEYS_LABEL).cloned();
    object.id.is("", "Secret") && changes_keys(object) && labels(&object.body()).is_some()
}

/// True for a Secret that may hold the keys of a daemon, for all that Git says of it.
pub fn may_fill_keys(object: &DesiredObject) -> bool {
    object.id.is("", "Secret") && changes_keys(object)
}

/// True for the Secret with the keys where Git says more of it than that it should be there. A hook is deleted to run again, and what
/// is immutable is never filled in.
fn changes_keys(object: &DesiredObject) -> bool {
    let body = object.body();
    object.switches.hook.is_some() || ["data", "immutable"].iter().any(|field| body.contains_key(*field))
}

fn is_recorded(object: &DesiredObject, seen: &Observed) -> bool {
    seen.recorded.as_ref().is_some_and(|recorded| object.is_recorded_as(recorded))
}

/// What becomes of an object that should exist and that we have applied before.
fn owned(object: &DesiredObject, seen: &Observed, policy: &Policy) -> Decision {
    if !is_recorded(object, seen) {
        return match rest::paused(seen, policy) {
            Some(until) => Decision::Hold(Hold::Paused(until)),
            None => Decision::Write(Action::Update(Change::Committed)),
        };
    }
    let mode = rest::mode(seen, policy);
    let repair = |change| rest::repair(object, policy, change);
    let unmarked = seen.mark != Mark::Ours;
    let drift = match &seen.standing {
        Standing::Drifted(drift) => drift.clone(),
        Standing::Verified | Standing::Unverified | Standing::Moved if unmarked => mark_removed(),
        Standing::Verified | Standing::Unverified | Standing::Moved
            if !seen.applied_by_us && !seen.hides_entries() =>
        {
            Box::default()
        }
        Standing::Verified if mode == DriftMode::Repair => return rest::verified(object, seen, policy),
        Standing::Verified => return Decision::Keep,
        Standing::Unverified => return unknown(Change::Unverified, mode, repair),
        Standing::Moved => return unknown(Change::Moved, mode, repair),
    };
    match mode {
        DriftMode::Ignore => Decision::Keep,
        DriftMode::Report => Decision::Hold(Hold::DriftReported(drift)),
        DriftMode::Repair if !seen.applied_by_us => repair(Change::EntryLost),
        DriftMode::Repair => repair(Change::Drifted(drift)),
    }
}

/// What becomes of an object of which nobody knows whether it is as Git says. An apply looks and repairs in one,
/// so that only a Sync that repairs may look in this way.
fn unknown(change: Change, mode: DriftMode, repair: impl FnOnce(Change) -> Decision) -> Decision {
    match mode {
        DriftMode::Repair => repair(change),
        DriftMode::Report => Decision::Hold(Hold::Unverified),
        DriftMode::Ignore => Decision::Keep,
    }
}

/// The identity is a field that we set, and it is gone or another's.
fn mark_removed() -> Box<Drift> {
    let fields = vec![format!("metadata.annotations[{:?}]", moorline_api::ID_ANNOTATION)];
    Box::new(Drift { fields, ..Drift::default() })
}

impl Plan {
    /// Every write, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().flat_map(|(_, steps)| steps)
    }

    /// True if nothing is to be written.
    pub fn is_quiet(&self) -> bool {
        self.stages.is_empty()
    }

    /// Every object that the plan speaks of.
    pub fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        let steps = self.steps().map(|step| &step.id);
        steps.chain(self.held.iter().map(|(id, _)| id)).chain(&self.kept)
    }

    /// The objects that would be pruned if a person approved.
    pub fn waiting(&self) -> BTreeSet<&ObjectId> {
        self.held.iter().filter(|(_, hold)| hold.is_prune_to_approve()).map(|(id, _)| id).collect()
    }
}

impl Action {
    /// The imperative, as people read it.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create | Self::Follow { .. } => "create",
            Self::Adopt { .. } => "adopt",
            Self::Update(_) => "update",
            Self::HandOver { .. } => "hand over",
            Self::Prune { .. } => "prune",
        }
    }
}
