//! The plan: the decision for every object.
//!
//! In: a [`DesiredSet`], an [`ObservedSet`] and a [`Policy`].
//! Out: a [`Plan`]: one action for every object with its reason, in stages of execution. The same
//! function decides for the command line, for previews and for the daemon; no other code decides.

mod awaited_kinds;
mod blocking;
mod deferral;
mod deletion;
mod difference;
mod document;
mod dry_run_fields;
mod explain;
mod hold;
mod hooks;
mod order;
mod outcome;
mod policy;
mod preview;
mod protected_kinds;
mod prune;
mod prune_guards;
mod redaction;
mod removed_fields;
mod repair_policy;
mod replacement;
mod revision_request;
mod rollout;
mod test_fixtures;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

pub use awaited_kinds::AwaitedKinds;
pub use blocking::{blocks_more, find_blocker};
pub use deferral::{Deferrals, DuePlan, FailedStep};
pub use deletion::{DeletionPlan, DeletionScope, plan_deletion};
pub use difference::{Difference, HIDDEN, compare_bodies};
pub use document::plan_document;
pub use dry_run_fields::changed_fields;
pub use explain::{ColourMode, DetailLevel, Style, format_plan, summary};
pub use hold::{Hold, PruneGuard};
pub use hooks::{CompletedHooks, is_run_kind};
pub use order::{Rank, Stage};
pub use outcome::{Failure, FailureReason, Outcome};
pub use policy::{Claim, ClaimState, DriftMode, Policy, PruneBudget, metadata_protection};
pub use preview::{Preview, created_bodies, preview};
pub use protected_kinds::protected_kinds_by_loss;
pub use prune_guards::{deletes_others, guarded_kinds, needs_body_check};
pub use repair_policy::{Contest, next_pause_end};
pub use replacement::Replacement;
pub use revision_request::{RenderedRevision, RevisionChanges, RevisionRequest, request_revision};
pub use rollout::{Rollout, RolloutGate};
pub use webhooks::{
    AdmissionRequest, BackendState, GuardingWebhook, UnservedWebhook, Webhooks, backend_state,
    may_wait_for_service,
};

use serde_json::{Map, Value};

use crate::desired::{DesiredObject, DesiredSet, PhaseWave};
use crate::observed::{Drift, InstallationRole, Observed, ObservedSet, Ownership, Verification};
use moorline_api::KEYS_LABEL;
use moorline_core::object::ObjectId;
use prune::Approval;

/// The decision for every object, each once.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Writes in the order of execution. Stages are executed one after the other.
    pub stages: Vec<(Stage, Vec<Step>)>,
    /// Objects that are held although they differ from the desired state, sorted by id.
    pub held: Vec<(ObjectId, Hold)>,
    /// Objects in the desired state, sorted by id.
    pub kept: Vec<ObjectId>,
    /// Value of `moorline.dev/approve` that approves the pending prunes.
    pub approval: Option<String>,
    /// Approved objects that still exist, with their uids.
    pub consented: BTreeMap<ObjectId, Box<str>>,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The object.
    pub id: ObjectId,
    /// The action and its reason.
    pub action: Action,
}

/// The action for one object. Objects that are kept or held are not written and have no action.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The object does not exist.
    Create,
    /// The object is a hook and does not exist, but runs of it under older names do: they are
    /// deleted first.
    ReplaceHookRuns {
        /// The runs to delete.
        runs: Vec<ObjectId>,
    },
    /// The object exists without an owner: it is adopted from these managers.
    Adopt {
        /// The managers that have written it.
        managers: Vec<Box<str>>,
    },
    /// We own the object, and it differs from the desired state.
    Update(Change),
    /// Another Sync claims the object: that one becomes its owner, and we release it.
    HandOver {
        /// The other Sync.
        to: Box<str>,
    },
    /// We own the object, and it is no longer desired.
    Prune {
        /// Precondition of the deletion: the uid.
        uid: Box<str>,
        /// Precondition of the deletion: the resourceVersion.
        resource_version: Box<str>,
    },
}

/// The reason for an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Git changed the object since the last apply.
    Committed,
    /// Others changed fields that Git sets.
    Drifted(Box<Drift>),
    /// Our entry in `managedFields` is missing, so drift cannot be determined.
    EntryLost,
    /// The object was not checked since this program started.
    Unverified,
    /// Another manager wrote to the object, and fields that Git sets may have changed.
    MaybeDrifted,
    /// It is a hook that ran for an earlier set: it is deleted and runs again.
    RerunHook,
}

/// Makes the decision for every object.
pub fn plan(desired: &DesiredSet, observed: &ObservedSet, policy: &Policy) -> Plan {
    let mut decided = PlanBuilder {
        steps: Vec::new(),
        held: Vec::new(),
        kept: Vec::with_capacity(desired.len().min(observed.len())),
    };
    let mut live = observed.iter().peekable();
    let mut unwanted = Vec::new();
    let over = CompletedHooks::from_recorded(desired, policy);
    // Both sides are sorted by id, so one walk over both finds every pair.
    for object in desired.objects() {
        while let Some(entry) = live.next_if(|(id, _)| **id < object.id) {
            unwanted.push(entry);
        }
        let seen = live.next_if(|(id, _)| **id == object.id).map(|(_, seen)| seen);
        let is_listed = observed.is_listed(&object.id);
        let decision = wanted(object, (seen, is_listed), over, policy);
        let decision = match (decision, policy.uncertain_replicas.get(&object.id)) {
            (Decision::Write(_), Some(why)) => Decision::Hold(Hold::AutoscalerUnknown(why.clone())),
            (decision, _) => decision,
        };
        decided.add(object.id.clone(), decision, object.annotations.phase_wave());
    }
    unwanted.extend(live);
    hooks::replace_older_runs(desired, &unwanted, policy, &mut decided);
    let replaced = replacement::due_replacements(desired, observed, policy, &decided);
    let Approval { asked, consented } =
        prune::decide(desired, observed, policy, (&unwanted, &replaced), &mut decided);
    replacement::hold_unapproved(&replaced, &consented, &mut decided);
    if policy.suspended {
        decided.suspend();
    }
    crate::plan::blocking::hold_operators(&unwanted, &mut decided);
    crate::plan::blocking::hold_blocked(desired, observed, &unwanted, &mut decided);
    rollout::hold_unhealthy(desired, policy, &mut decided);
    decided.held.sort_by(|(a, _), (b, _)| a.cmp(b));
    let stages = order::stages(decided.steps);
    Plan { stages, held: decided.held, kept: decided.kept, approval: asked, consented }
}

/// The decision about one object.
#[derive(Debug)]
enum Decision {
    Write(Action),
    Keep,
    Hold(Hold),
}

/// The decisions about all objects, not yet in order.
struct PlanBuilder {
    steps: Vec<(PhaseWave, Step)>,
    held: Vec<(ObjectId, Hold)>,
    kept: Vec<ObjectId>,
}

impl PlanBuilder {
    fn add(&mut self, id: ObjectId, decision: Decision, turn: PhaseWave) {
        match decision {
            Decision::Write(action) => self.steps.push((turn, Step { id, action })),
            Decision::Keep => self.kept.push(id),
            Decision::Hold(hold) => self.held.push((id, hold)),
        }
    }

    /// Holds every step: a suspended Sync writes nothing.
    fn suspend(&mut self) {
        self.held.extend(self.steps.drain(..).map(|(_, step)| (step.id, Hold::Suspended)));
    }
}

/// Decides about an object that should exist.
fn wanted(
    object: &DesiredObject,
    (seen, is_listed): (Option<&Observed>, bool),
    over: CompletedHooks,
    policy: &Policy,
) -> Decision {
    if object.annotations.reconcile_disabled {
        return Decision::Hold(Hold::ReconcileDisabled);
    }
    if object.scope.is_none() {
        return Decision::Hold(Hold::UnknownKind);
    }
    let holds_keys = || {
        policy.own_keys.as_ref() == Some(&object.id)
            || seen.is_some_and(|it| it.installation_role == InstallationRole::Keys)
    };
    if is_marked_for_keys(object) || holds_keys() && changes_keys(object) {
        return Decision::Hold(Hold::DaemonKeys);
    }
    if object.annotations.skipped {
        return Decision::Keep;
    }
    if let Some(decision) =
        object.annotations.hook.and_then(|hook| hooks::decide_hook(object, hook, seen, over, policy))
    {
        return decision;
    }
    let Some(seen) = seen else {
        return crate::plan::repair_policy::decide_missing(object, is_listed, policy)
            .unwrap_or(Decision::Write(Action::Create));
    };
    match &seen.ownership {
        _ if seen.reconcile_disabled => Decision::Hold(Hold::ReconcileDisabled),
        _ if seen.deleting && crate::plan::repair_policy::has_completed(object, policy) => Decision::Keep,
        _ if seen.deleting => Decision::Hold(Hold::BeingDeleted(seen.finalizers.clone())),
        Ownership::OtherSync(sync) if !(seen.proven || policy.unproven_foreign.contains(&object.id)) => {
            Decision::Hold(Hold::OwnedBy(sync.clone()))
        }
        // Our identity was removed from an object that we applied in exactly this form: a manual
        // edit like any other.
        Ownership::OtherSync(_) | Ownership::Copy | Ownership::Unowned
            if !(seen.applied_by_us && is_recorded(object, seen)) =>
        {
            Decision::Write(Action::Adopt { managers: seen.managers.clone() })
        }
        _ if object.annotations.apply_once => Decision::Keep,
        // An object of ours that another object controls is still applied: Git contains it.
        Ownership::Ours | Ownership::OtherSync(_) | Ownership::Copy | Ownership::Unowned => {
            owned(object, seen, policy)
        }
    }
}

/// True for a Secret in Git that is labelled as key Secret and would get keys from Git.
fn is_marked_for_keys(object: &DesiredObject) -> bool {
    let labels = |body: &Map<String, Value>| body.get("metadata")?.get("labels")?.get(KEYS_LABEL).cloned();
    object.id.is_kind("", "Secret") && changes_keys(object) && labels(&object.body()).is_some()
}

/// True if the desired Secret could write the keys of a daemon.
pub fn may_fill_keys(object: &DesiredObject) -> bool {
    object.id.is_kind("", "Secret") && changes_keys(object)
}

/// True if Git does more than ensure that the key Secret exists. A hook is deleted to run again,
/// and an immutable Secret could never be filled.
fn changes_keys(object: &DesiredObject) -> bool {
    let body = object.body();
    object.annotations.hook.is_some() || ["data", "immutable"].iter().any(|field| body.contains_key(*field))
}

fn is_recorded(object: &DesiredObject, seen: &Observed) -> bool {
    seen.recorded_hash.as_ref().is_some_and(|recorded| object.is_recorded_as(recorded))
}

/// Decides about an object that should exist and that we own.
fn owned(object: &DesiredObject, seen: &Observed, policy: &Policy) -> Decision {
    if !is_recorded(object, seen) {
        return match crate::plan::repair_policy::pause_end(seen, policy) {
            Some(until) => Decision::Hold(Hold::Paused(until)),
            None => Decision::Write(Action::Update(Change::Committed)),
        };
    }
    let mode = crate::plan::repair_policy::effective_drift_mode(seen, policy);
    let repair = |change| crate::plan::repair_policy::decide_repair(object, policy, change);
    let unmarked = seen.ownership != Ownership::Ours;
    let drift = match &seen.verification {
        Verification::Drifted(drift) => drift.clone(),
        Verification::Verified
        | Verification::Believed
        | Verification::Unverified
        | Verification::MaybeDrifted
            if unmarked =>
        {
            mark_removed()
        }
        Verification::Verified
        | Verification::Believed
        | Verification::Unverified
        | Verification::MaybeDrifted
            if !seen.applied_by_us && !seen.has_hidden_entry() =>
        {
            Box::default()
        }
        Verification::Verified | Verification::Believed if mode == DriftMode::Repair => {
            return crate::plan::repair_policy::decide_verified(object, seen, policy);
        }
        Verification::Verified | Verification::Believed => return Decision::Keep,
        Verification::Unverified => return unknown(Change::Unverified, mode, repair),
        Verification::MaybeDrifted => return unknown(Change::MaybeDrifted, mode, repair),
    };
    match mode {
        DriftMode::Ignore => Decision::Keep,
        DriftMode::Report => Decision::Hold(Hold::DriftReported(drift)),
        DriftMode::Repair if !seen.applied_by_us => repair(Change::EntryLost),
        DriftMode::Repair => repair(Change::Drifted(drift)),
    }
}

/// Decides about an object with an unknown verification state. An apply checks and repairs at once,
/// so only a Sync that repairs may check in this way.
fn unknown(change: Change, mode: DriftMode, repair: impl FnOnce(Change) -> Decision) -> Decision {
    match mode {
        DriftMode::Repair => repair(change),
        DriftMode::Report => Decision::Hold(Hold::Unverified),
        DriftMode::Ignore => Decision::Keep,
    }
}

/// Describes the removal of our identity annotation as drift.
fn mark_removed() -> Box<Drift> {
    let fields = vec![format!("metadata.annotations[{:?}]", moorline_api::ID_ANNOTATION)];
    Box::new(Drift { fields, ..Drift::default() })
}

impl Plan {
    /// Returns every write, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().flat_map(|(_, steps)| steps)
    }

    /// True if the plan writes nothing.
    pub fn writes_nothing(&self) -> bool {
        self.stages.is_empty()
    }

    /// Returns every object of the plan.
    pub fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        let steps = self.steps().map(|step| &step.id);
        steps.chain(self.held.iter().map(|(id, _)| id)).chain(&self.kept)
    }

    /// Returns the objects that would be pruned after an approval.
    pub fn pending_prunes(&self) -> BTreeSet<&ObjectId> {
        self.held.iter().filter(|(_, hold)| hold.is_prune_to_approve()).map(|(id, _)| id).collect()
    }
}

impl Action {
    /// Returns the verb for people, in the imperative.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create | Self::ReplaceHookRuns { .. } => "create",
            Self::Adopt { .. } => "adopt",
            Self::Update(_) => "update",
            Self::HandOver { .. } => "hand over",
            Self::Prune { .. } => "prune",
        }
    }
}
