//! Executes a plan.
//!
//! In: a [`Plan`] and the context that it was made from.
//! Out: the outcome of each object.
//!
//! Stages run one after the other, and the steps of a stage run concurrently. A failure delays
//! higher waves and objects that depend on the failed one, never its peers. Before each write the
//! cancel flag is checked, so that nothing is sent after a newer commit has arrived.

pub(crate) mod apply_object;
pub(crate) mod change_cause;
pub(crate) mod delete_precondition;
mod deletion_limits;
pub(crate) mod extra_fields;
pub(crate) mod field_handover;
pub(crate) mod list_key_conflict;
mod managers;
pub(crate) mod non_empty_guard;
mod object_before;
mod prune;
pub(crate) mod recreate;
pub(crate) mod removed_fields;
pub(crate) mod stale_owner;
pub(crate) mod unconvertible_entries;
pub(crate) mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Context;
use super::memory::field_conflicts::FieldConflicts;
use super::peers::registry::ClaimedObject;
use super::reconcile::webhook_backends::WebhookBackends;
use super::status::events::was_written;
use crate::adopt::AdoptedFrom;
use crate::api::{ConflictPolicy, SpecHash, SyncName};
use crate::cluster::{ApiError, CancelFlag, Cluster, Force, RetryWhen, classify_error};
use crate::controller::reconcile::webhook_backends::{guarded, refusal};
use crate::desired::{DesiredSet, ReplicaCount};
use crate::health::may_report;
use crate::journal::Entry;
use crate::object::ObjectId;
use crate::observed::holds_keys;
use crate::plan::{
    Action, AwaitedKinds, Change, Contest, Failure, Hold, Outcome, Plan, RolloutGate, Stage, Step,
    blocks_more, find_blocker, may_fill_keys,
};
use apply_object::{apply, create_new, refused};
use change_cause::cause_of_step;
use delete_precondition::DeletePrecondition;
pub(crate) use deletion_limits::DeletionLimits;
use field_handover::transfer_fields;
use futures::StreamExt as _;
use list_key_conflict::resolve_list_key_conflict;
use object_before::ObjectBefore;
use prune::prune;
use recreate::{delete_previous_runs, run_again};

/// Steps that are prepared concurrently. The write limiter of the cluster decides how many of them
/// are sent.
const SIDE_BY_SIDE: usize = 64;

/// Dependencies of every step of a plan: client, owner, desired set, conflict policy, cancel flag.
pub(crate) struct ApplyContext<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a Cluster,
    pub(crate) owner: &'a SyncName,
    pub(crate) desired: &'a DesiredSet,
    pub(crate) conflicts: ConflictPolicy,
    /// The tool that managed these objects before, if the Sync was adopted from one.
    pub(crate) predecessor: Option<&'a AdoptedFrom>,
    pub(crate) field_conflicts: &'a FieldConflicts,
    /// Contested objects, whose repairs other controllers undo.
    pub(crate) contested: Arc<BTreeMap<ObjectId, Contest>>,
    /// Numbers of replicas that Git sets.
    pub(crate) numbers: Arc<BTreeMap<ObjectId, ReplicaCount>>,
    pub(crate) deletions: Arc<DeletionLimits>,
    /// Check that the Sync still asks for the deletions.
    pub(crate) asked: &'a DeletePrecondition<'a>,
    /// Webhooks of the desired set, and their backends.
    pub(crate) backends: &'a WebhookBackends,
    /// A newer commit or spec that cannot be applied. While there is one, no object is deleted to
    /// be created again.
    pub(crate) refused: Option<&'a str>,
    pub(crate) stop: &'a CancelFlag,
}

/// Executes every step of a plan except those that only verify.
///
/// `before` are objects that failed earlier and are not retried now; later stages wait for them.
/// `awaits` knows the objects that must be healthy first, and `kinds` knows the resources that go
/// before webhooks.
///
/// # Guarantees
///
/// A step of a later stage is sent only if no earlier failure blocks it. Objects that are held or
/// failed are in the result with their reason.
///
/// # Cancellation
///
/// Once `work.stop` is set, no further step is sent and unsent steps are missing in the result. A
/// hand-over of an object is finished, because its second write must follow the first.
pub(crate) async fn execute(
    work: &ApplyContext<'_>,
    plan: &Plan,
    before: &[(Stage, ObjectId)],
    mut awaits: Option<RolloutGate<'_>>,
    kinds: &mut AwaitedKinds<'_>,
) -> BTreeMap<ObjectId, Outcome> {
    let (mut outcomes, mut blocking) = (BTreeMap::new(), Vec::new());
    for (stage, id) in before {
        if blocks_more(&blocking, *stage, id) {
            blocking.push((*stage, id.clone()));
        }
    }
    for (stage, steps) in &plan.stages {
        if work.stop.is_cancelled() {
            break;
        }
        let stage = *stage;
        let (held, ready): (Vec<_>, Vec<_>) = steps
            .iter()
            .filter(|step| step.action != Action::Update(Change::Unverified))
            .map(|step| {
                let blocker = find_blocker(&blocking, stage, &step.id).or_else(|| kinds.find_blocker(step));
                (blocker.or_else(|| awaits.as_mut()?.find_blocker(step)), step)
            })
            .partition(|(blocker, _)| blocker.is_some());
        let served = work.cluster.kinds();
        let is_served = |id: &ObjectId| served.get(&id.group_kind()).is_some();
        for (blocker, step) in held {
            if let Some(blocker) = blocker {
                let outcome = Outcome::Held(Hold::WaitsFor(blocker));
                kinds.record_outcome(&step.id, &outcome, || is_served(&step.id));
                outcomes.insert(step.id.clone(), outcome);
            }
        }
        let ready = &ready;
        // Indices: a stream of references is not `Send` for the compiler.
        let done = futures::stream::iter(0..ready.len())
            .map(|at| async move {
                let (_, step) = &ready[at];
                let outcome = match work.stop.is_cancelled() {
                    true => None,
                    false => work.step(step).await,
                };
                (step.id.clone(), outcome)
            })
            .buffer_unordered(SIDE_BY_SIDE);
        for (id, outcome) in done.collect::<Vec<_>>().await {
            let Some(outcome) = outcome else { continue };
            kinds.record_outcome(&id, &outcome, || is_served(&id));
            if blocks(&outcome) && blocks_more(&blocking, stage, &id) {
                blocking.push((stage, id.clone()));
            }
            if let Some(awaits) =
                awaits.as_mut().filter(|_| was_written(&outcome) && may_report(&id.group_kind()))
            {
                awaits.on_written(&id);
            }
            outcomes.insert(id, outcome);
        }
    }
    outcomes
}

/// Returns true if later stages must wait for this outcome.
fn blocks(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(_) | Outcome::Pruned { gone: false } => true,
        Outcome::Held(hold) => hold.blocks_later_waves(),
        _ => false,
    }
}

impl ApplyContext<'_> {
    /// Executes one step; `None` if it was cancelled before it was sent. Many steps wait for a
    /// write slot at the same time, and after a newer commit none of them is sent.
    pub(crate) async fn step(&self, step: &Step) -> Option<Outcome> {
        let cluster = match step.action {
            // The first of its two writes belongs to another Sync, and the second must follow.
            Action::HandOver { .. } => self.cluster.clone(),
            _ => self.cluster.cancelled_by(self.stop),
        };
        let cluster = cluster.caused_by(cause_of_step(self, step));
        let (contested, numbers) = (self.contested.clone(), self.numbers.clone());
        let deletions = self.deletions.clone();
        let work = ApplyContext { cluster: &cluster, contested, numbers, deletions, ..*self };
        // An apply that names a proven uid needs no check.
        let is_named = match &step.action {
            Action::Update(Change::RerunHook) => false,
            Action::Update(_) => self.named_uid(&step.id).is_some(),
            _ => false,
        };
        if !is_named && let Err(failure) = self.confirm().await {
            return Some(failed(&failure, false));
        }
        if let Some(hold) = guarded(&work, step).await {
            return Some(Outcome::Held(hold));
        }
        match work.act(step).await {
            Err(ApiError::Superseded) => None,
            Err(failure) => Some(refusal(&work, step, &failure)),
            Ok(outcome) => Some(outcome),
        }
    }

    /// Checks before a write that the cluster of the Sync is the same as before.
    pub(crate) async fn confirm(&self) -> Result<(), ApiError> {
        self.context.targets.confirm(self.owner, self.cluster).await
    }

    /// Returns the uid that an apply of the object may name instead of a check.
    pub(crate) fn named_uid(&self, id: &ObjectId) -> Option<Box<str>> {
        self.context.targets.named_uid(self.owner, self.cluster, id)
    }

    async fn act(&self, step: &Step) -> Result<Outcome, ApiError> {
        match &step.action {
            Action::Create => self.create_or_adopt(&step.id).await,
            Action::ReplaceHookRuns { runs } => match delete_previous_runs(self, runs).await? {
                Some(held) => Ok(held),
                None => self.create_or_adopt(&step.id).await,
            },
            Action::Adopt { managers } => {
                apply(self, &step.id, None, |_| Outcome::Adopted(managers.clone())).await
            }
            Action::Update(Change::RerunHook) => run_again(self, &step.id).await,
            Action::Update(change) => {
                let before = ObjectBefore::read(self, &step.id, change);
                apply(self, &step.id, Some(change), |applied| match before.is_same(applied, self.owner) {
                    true => Outcome::Kept,
                    false if applied.created => Outcome::Created,
                    false => Outcome::Updated(change.clone()),
                })
                .await
            }
            Action::HandOver { to } => self.hand_over_object(&step.id, to).await,
            Action::Prune { uid, resource_version } => prune(self, &step.id, uid, resource_version).await,
        }
    }

    /// Creates or adopts an object that the cache does not have; the write shows if it exists after
    /// all.
    async fn create_or_adopt(&self, id: &ObjectId) -> Result<Outcome, ApiError> {
        if let Some(wanted) = self.desired.get(id) {
            match create_new(self, wanted).await {
                Ok(None) if may_fill_keys(wanted) => {
                    let live = self.cluster.objects().read_metadata(id, &wanted.version).await?;
                    if live.as_ref().is_some_and(holds_keys) {
                        return Ok(Outcome::Held(Hold::DaemonKeys));
                    }
                }
                Ok(None) => {}
                Ok(Some(created)) => return Ok(created),
                Err(failure) => return refused(self, wanted, failure).await,
            }
        }
        apply(self, id, None, |applied| match applied.created {
            true => Outcome::Created,
            false => Outcome::Adopted(Vec::new()),
        })
        .await
    }

    /// Hands an object over to another Sync: applies it as that Sync desires it, then releases our
    /// fields. Nothing is deleted.
    async fn hand_over_object(&self, id: &ObjectId, to: &str) -> Result<Outcome, ApiError> {
        let held = || Ok(Outcome::Held(Hold::ClaimedBy(to.into())));
        let Some(claimed) = self.context.peers.desired_by(self.owner, to, id) else { return held() };
        let ClaimedObject { sync: other, wanted, cluster, receiving } = claimed;
        let Some(leave) = receiving.begin() else { return held() };
        let cause = Entry { other: Some(self.owner.to_string()), ..cluster.cause() };
        let cluster = cluster.cancelled_by(&leave.stop).caused_by(cause);
        // Fields that the other Sync ignores must not be lost with our ownership.
        if let Some(own) = self.cluster.read_observed(self.owner, |set| set.get(id)?.owned_fields()) {
            transfer_fields(self, &wanted, &own, &[]).await?;
        }
        // Uses the permissions of the other Sync: claiming an object must not extend its rights.
        match cluster.apply(&wanted, &other, Force::Yes).await {
            Ok(_) => {}
            Err(failure) if matches!(failure.code(), Some(401 | 403)) => return held(),
            // The other Sync desires something newer. It takes the object itself, or gets it next
            // time.
            Err(ApiError::Superseded) => return held(),
            // The object is still ours.
            Err(failure) if resolve_list_key_conflict(self, &wanted, &failure, true).await? => {
                cluster.apply(&wanted, &other, Force::Yes).await?;
            }
            Err(failure) => return Err(failure),
        }
        drop(leave);
        self.cluster.release_object(id, &wanted.version, &self.owner.owner()).await?;
        // If the watch event is late, the object would be handed over repeatedly until it arrives.
        self.cluster.forget_object(self.owner, id);
        // To the store this was a write of its own, which wakes no one.
        cluster.changed_notify(&other).notify_one();
        Ok(Outcome::HandedOver(to.into()))
    }

    /// Returns the Sync that claims an object, unless a person decides about that claim.
    pub(super) fn claimed(&self, id: &ObjectId) -> Option<Box<str>> {
        self.context.peers.claimed(self.owner, id).filter(|_| !self.deletions.claimed.contains(id))
    }

    /// Returns the hash that is recorded on the object.
    pub(super) fn recorded(&self, id: &ObjectId) -> Option<SpecHash> {
        let read = |set: &crate::observed::ObservedSet| set.get(id).and_then(|seen| seen.recorded_hash);
        self.cluster.read_observed(self.owner, read)
    }
}

/// Maps a failed write to an outcome; with `hides`, the message of the server is left out.
pub(crate) fn failed(failure: &ApiError, hides: bool) -> Outcome {
    // Discovery lags behind a CRD that was established a moment ago. The reconcile retries on its
    // own.
    if matches!(failure, ApiError::UnknownKind(_)) {
        return Outcome::Held(Hold::UnknownKind);
    }
    let answer = classify_error(failure, hides);
    Outcome::Failed(Failure {
        reason: answer.reason,
        message: answer.message,
        manifest: answer.retry_when == RetryWhen::ManifestChanges,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FailureReason;

    #[test]
    fn only_what_is_not_there_as_it_should_be_blocks_what_comes_later() {
        let failed = |manifest| {
            Outcome::Failed(Failure { reason: FailureReason::Invalid, message: String::new(), manifest })
        };
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
            held(Hold::WaitsFor(id)),
        ] {
            assert!(blocks(&blocker), "{blocker:?}");
        }
        for done in [
            Outcome::Created,
            Outcome::Adopted(Vec::new()),
            Outcome::Updated(Change::MaybeDrifted),
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
