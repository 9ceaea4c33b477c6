//! Finalizes a Sync that is being deleted.
//!
//! In: a Sync with a deletion timestamp.
//! Out: its objects are deleted in reverse order if the Sync asks for that, and its finalizer is
//! removed.
//!
//! An object that another Sync claims is handed over. An object that may not be deleted, or takes
//! too long, stays and is reported. While the Sync is suspended, or its policy has changed to
//! `Orphan`, nothing more is deleted; `deletion/decision.rs` decides that.

mod cancellation;
pub(crate) mod claims;
mod common_steps;
mod decision;
pub(crate) mod delete_hooks;
mod held_deletion;
pub mod object_release;
pub(crate) mod orphans;
mod remote_deletion;
mod status_texts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::apply::change_cause::cause_of_sync;
use super::apply::delete_precondition::DeletePrecondition;
use super::apply::{ApplyContext, DeletionLimits};
use super::memory::field_conflicts::FieldConflicts;
use super::memory::prune_guards::{PruneGuardInputs, PruneGuards};
use super::peers::claims::ClaimWaits;
use super::reconcile::webhook_backends::WebhookBackends;
use super::spec::ValidatedSpec;
use super::status::StatusRecorder;
use super::status::log_lines::{LogSubject, Tone};
use super::targets::is_remote;
use super::{Context, chance};
use crate::api::{FINALIZER, SyncName, SyncStatus};
use crate::clock;
use crate::cluster::{ApiError, Cluster, WatchRequirements};
use crate::desired::{DeletePhase, DesiredSet};
use crate::journal::Reason;
use crate::object::ObjectId;
use crate::observed::{ObservedSet, Ownership};
use crate::plan::{DeletionPlan, DeletionScope, Hold, Outcome, Policy, plan_deletion};
pub(crate) use cancellation::DeletionStop;
pub(crate) use decision::{DeletionDecision, has_begun};
use delete_hooks::run_delete_hooks;
use orphans::Orphans;
use remote_deletion::delete_remote;

/// Pause between two rounds of a deletion.
const PAUSE: Duration = Duration::from_millis(500);

/// The same pause while every object waits for something else.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// The validated spec of a Sync that is being deleted, or the reason why it is invalid; with an
/// invalid spec all of its objects stay.
pub(crate) type DeletionRequest = Result<Box<ValidatedSpec>, &'static str>;

/// Context of the deletion of one Sync.
pub(crate) struct DeletionContext<'a> {
    pub(crate) context: &'a Context,
    pub(crate) resource_recorder: &'a StatusRecorder,
    pub(crate) sync: &'a Value,
    pub(crate) brake: &'a DeletionStop,
    /// True if the deletion had begun before this worker started.
    pub(crate) has_begun: bool,
}

/// Deletes the objects of a Sync and removes its finalizer; returns true if it has to be retried.
///
/// # Guarantees
///
/// No object is deleted unless the decision is [`DeletionDecision::Delete`]. Objects that stay are
/// reported before the finalizer is removed.
///
/// # Cancellation
///
/// It can be dropped at any time; the next call continues with the objects that exist then.
pub(crate) async fn finalize(
    going: &DeletionContext<'_>,
    leaving: &DeletionRequest,
    mandate: DeletionDecision,
) -> bool {
    let (context, name) = (going.context, going.resource_recorder.name());
    // A Sync that is being deleted desires nothing: otherwise two deleted Syncs would hand their
    // objects over to each other. A hand-over that has begun ends first: its object is seen.
    context.peers.withdraw_desired(name);
    context.peers.wait_for_hand_overs(name).await;
    if !going.brake.decided_by.finalizers.iter().any(|one| one == FINALIZER) {
        return false;
    }
    let parent = terminating_parent(context, name).await;
    if let (Err(why), DeletionDecision::Delete) = (leaving, mandate)
        && !matches!(parent, Ok(Some(_)))
        && is_remote(going.resource_recorder)
    {
        // Only a person may decide to leave the objects in another cluster.
        going.report_status(status_texts::away(name, &format!("it cannot be served ({why})")));
        return true;
    }
    let orphans = match (parent, mandate) {
        (Ok(Some(why)), _) => going.all_stay(leaving, why).await,
        (_, DeletionDecision::OrphanByPerson) => going.all_stay(leaving, "Answered").await,
        (_, DeletionDecision::Held(pause)) => {
            crate::controller::deletion::held_deletion::wait(going, leaving, pause).await
        }
        (_, DeletionDecision::Orphan) => Orphans::default(),
        (_, DeletionDecision::Delete) => match leaving {
            Err(why) => Orphans::all(None, name, why),
            Ok(valid_spec) => delete_owned(going, valid_spec).await,
        },
    };
    // Reported before the finalizer goes: its removal ends the worker and everything that the
    // worker still had to report.
    orphans.tell(context, name, going.sync).await;
    going.release().await
}

/// Deletes the objects of the Sync, and returns those that stay.
async fn delete_owned(going: &DeletionContext<'_>, valid_spec: &ValidatedSpec) -> Orphans {
    let (context, name) = (going.context, going.resource_recorder.name());
    if is_remote(going.resource_recorder) {
        return delete_remote(going, valid_spec).await;
    }
    let cluster = context.target_of(going.resource_recorder, valid_spec).await.ok();
    let (mut pauses, until) = (context.pauses().cluster, clock::now() + valid_spec.timeout);
    // Dependents are deleted first, in reverse order of creation.
    let _ = tokio::time::timeout_at(until.into(), context.peers.wait_for_dependents(name, GRACE)).await;
    loop {
        // Without an answer the objects are not known, and nothing is released before the timeout.
        let failure = match delete(going, valid_spec, until).await {
            Ok(orphans) => return orphans,
            Err(failure) => failure,
        };
        let text = format!("the objects of the Sync could not be listed yet: {failure}");
        context.reporting.lines.log_condition(name, LogSubject::Deletion, Tone::Warning, "Unseen", &text);
        if clock::now() > until || is_denied(&failure) {
            return Orphans::all(cluster.as_ref(), name, "Unseen");
        }
        tokio::time::sleep(pauses.failed(chance())).await;
    }
}

/// Time to wait for dependents that are deleted together with the Sync: deletions of several Syncs
/// do not arrive at the same instant.
const GRACE: Duration = Duration::from_secs(3);

/// The permissions are gone, and waiting does not bring them back.
fn is_denied(failure: &ApiError) -> bool {
    matches!(failure.code(), Some(401 | 403))
}

/// Makes sure that all objects of the Sync are in the cache.
async fn look(
    cluster: &Cluster,
    name: &SyncName,
    sync: &Value,
    valid_spec: &ValidatedSpec,
) -> Result<(), ApiError> {
    cluster.discovery().ensure().await?;
    let status: Option<SyncStatus> =
        sync.get("status").cloned().and_then(|status| serde_json::from_value(status).ok());
    let need = match status.and_then(|status| status.scope).filter(|scope| !scope.kinds.is_empty()) {
        Some(scope) => crate::controller::reconcile::inventory_scope::watches_of_scope(&scope),
        None => WatchRequirements {
            kinds: cluster.discover_labelled_kinds(name).await?.0,
            ..WatchRequirements::default()
        },
    };
    let blind = cluster.ensure_watches(name, &need, valid_spec.timeout).await;
    blind.into_iter().next().map_or(Ok(()), |(_, failure)| Err(failure))
}

/// Returns the reason to delete nothing, if the Sync goes only because its namespace or the CRD of
/// Syncs does. Deleting a namespace or a CRD is no request to delete the objects of a Sync.
async fn terminating_parent(context: &Context, name: &SyncName) -> Result<Option<&'static str>, ApiError> {
    find_terminating(context, name, "syncs.moorline.dev").await
}

/// Returns the reason for which a resource only goes with its namespace or its definition.
pub(crate) async fn find_terminating(
    context: &Context,
    name: &SyncName,
    definition: &str,
) -> Result<Option<&'static str>, ApiError> {
    context.cluster.discovery().ensure().await?;
    let around = [
        (ObjectId::new("", "Namespace", "", &name.namespace), "NamespaceTerminating"),
        (ObjectId::new(CRD.0, CRD.1, "", definition), "DefinitionTerminating"),
    ];
    for (id, why) in around {
        let Ok(id) = id else { continue };
        match context.cluster.objects().read_metadata(&id, "v1").await {
            Ok(live) if live.as_ref().is_none_or(|it| it.metadata("deletionTimestamp").is_some()) => {
                return Ok(Some(why));
            }
            Ok(_) => {}
            // Without the right to read CRDs, their end cannot be noticed.
            Err(failure) if is_denied(&failure) && id.kind() == CRD.1 => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(None)
}

/// Group and kind of CRDs.
const CRD: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

async fn delete(
    going: &DeletionContext<'_>,
    valid_spec: &ValidatedSpec,
    until: Instant,
) -> Result<Orphans, ApiError> {
    let (context, resource_recorder, sync) = (going.context, going.resource_recorder, going.sync);
    let name = resource_recorder.name();
    let cluster = &match context.target_of(going.resource_recorder, valid_spec).await {
        Ok(cluster) => cluster,
        Err(reconcile_error) => return Err(ApiError::Unreachable(reconcile_error.message.into())),
    };
    let cluster = &cluster.caused_by(cause_of_sync(name, valid_spec, Reason::Deleted));
    if let Some(why) = terminating_parent(context, name).await? {
        return Ok(Orphans::all(Some(cluster), name, why));
    }
    look(cluster, name, sync, valid_spec).await?;
    // An empty cluster may be another one than before.
    context.targets.confirm(name, cluster).await?;
    let status: SyncStatus =
        sync.get("status").cloned().map(serde_json::from_value).and_then(Result::ok).unwrap_or_default();
    let uid = sync.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    let last = match delete_hooks::find(context, cluster, name, (&status, uid), valid_spec, until).await {
        Ok(last) => last.unwrap_or_else(|| Arc::new(DesiredSet::empty())),
        Err(reconcile_error) if clock::now() < until => {
            return Err(ApiError::Unreachable(reconcile_error.message.into()));
        }
        Err(reconcile_error) => {
            tracing::warn!(sync = %name, reason = reconcile_error.reason(), "the delete hooks could not be loaded: {}", reconcile_error.message);
            return Ok(Orphans::all(Some(cluster), name, "HooksUnknown"));
        }
    };
    let (field_conflicts, asked, backends) =
        (FieldConflicts::default(), DeletePrecondition::unconditional(), WebhookBackends::default());
    let work = ApplyContext {
        context,
        cluster,
        owner: name,
        desired: &last,
        conflicts: valid_spec.conflicts,
        predecessor: None,
        field_conflicts: &field_conflicts,
        contested: Arc::default(),
        numbers: Arc::default(),
        deletions: Arc::new(DeletionLimits {
            protected: valid_spec.protected.clone(),
            ..DeletionLimits::default()
        }),
        asked: &asked,
        backends: &backends,
        refused: None,
        stop: &going.brake.stop,
    };
    // Hooks are deleted last, so that a retry can tell which of them have run. Once all other
    // objects are gone, a hook before the deletion has nothing left to save.
    let is_hook = |id: &ObjectId| last.get(id).is_some();
    let others =
        |seen: &ObservedSet| seen.iter().any(|(id, it)| it.ownership == Ownership::Ours && !is_hook(id));
    if cluster.read_observed(name, others)
        && !run_delete_hooks(&work, DeletePhase::PreDelete, resource_recorder, until).await?
    {
        return Ok(Orphans::all(Some(cluster), name, "HookFailed"));
    }
    let mut orphans = delete_batch(going, &work, valid_spec, until, |id| !is_hook(id)).await?;
    if orphans.all.is_some() {
        return Ok(orphans);
    }
    // Their result changes nothing any more.
    let _ = run_delete_hooks(&work, DeletePhase::PostDelete, resource_recorder, until).await?;
    let left = delete_batch(going, &work, valid_spec, until, is_hook).await?;
    orphans.objects.extend(left.objects);
    Ok(Orphans { all: left.all, ..orphans })
}

/// Deletes the matching objects, round by round.
async fn delete_batch(
    going: &DeletionContext<'_>,
    work: &ApplyContext<'_>,
    valid_spec: &ValidatedSpec,
    until: Instant,
    is_meant: impl Fn(&ObjectId) -> bool,
) -> Result<Orphans, ApiError> {
    let (context, cluster, name) = (work.context, work.cluster, work.owner);
    let (mut forbidden, mut guarded) = (BTreeSet::new(), PruneGuards::default());
    let (wake, mut is_slow) = (cluster.changed_notify(name), going.has_begun);
    let (begun, mut waits) = (clock::now(), ClaimWaits::default());
    loop {
        guarded.look(PruneGuardInputs { context, cluster, owner: name, way_back: false }, |_| false).await;
        let decide = |observed: &ObservedSet| {
            let mut claims =
                claims::claims(context, name, (valid_spec, going.sync), observed, begun)?.by_object;
            waits.judge(&mut claims, None, context.now(), context.settings().claim_timeout);
            let (guarded, own_keys) = (guarded.ids(), cluster.notary().key_secret());
            let policy = Policy { guards: guarded, claims, own_keys, ..valid_spec.policy(None) };
            let scope = DeletionScope { includes: &is_meant, forbidden: &forbidden };
            Ok(plan_deletion(observed, &policy, &scope))
        };
        let planned = match cluster.read_observed(name, decide) {
            Ok(planned) => planned,
            Err(open) => {
                context.peers.query_rights(open).await;
                continue;
            }
        };
        if !is_open(&planned, &forbidden) || clock::now() > until {
            return Ok(orphans(&planned));
        }
        let plan = planned.plan;
        if is_slow {
            going.report_status(crate::controller::deletion::status_texts::deleting(
                &plan,
                &going.left(cluster),
            ));
        }
        is_slow = true;
        let pause = if plan.steps().next().is_none() { IDLE_PAUSE } else { PAUSE };
        for (id, outcome) in going.write(work, plan).await {
            match outcome {
                Outcome::Failed(why) => {
                    if why.is_forbidden() {
                        forbidden.insert(id.clone());
                    }
                    let text = format!("not deleted: {}", why.message);
                    context.reporting.lines.log_condition(
                        name,
                        LogSubject::Object(&id),
                        Tone::Warning,
                        why.reason.as_str(),
                        &text,
                    );
                }
                outcome => tracing::info!(sync = %name, object = %id, "{}", outcome.verb()),
            }
        }
        let _ = tokio::time::timeout(pause, wake.notified()).await;
        if let Some(why) = terminating_parent(context, name).await? {
            return Ok(Orphans::all(Some(cluster), name, why));
        }
    }
}

/// Returns the objects that stay if nothing more is done.
fn orphans(planned: &DeletionPlan) -> Orphans {
    let late = planned.plan.steps().map(|step| (step.id.clone(), "Timeout"));
    let forbidden = planned.forbidden.iter().map(|id| (id.clone(), "Forbidden"));
    let held = planned
        .plan
        .held
        .iter()
        .map(|(id, hold)| (id.clone(), if is_passing(hold) { "Timeout" } else { hold.reason() }));
    Orphans { objects: late.chain(forbidden).chain(held).collect(), all: None }
}

/// Returns true while there are objects to delete or to wait for.
fn is_open(planned: &DeletionPlan, forbidden: &BTreeSet<ObjectId>) -> bool {
    let waits = |hold: &Hold| match hold {
        Hold::WaitsFor(other) => !forbidden.contains(other),
        hold => is_passing(hold),
    };
    planned.plan.steps().next().is_some() || planned.plan.held.iter().any(|(_, hold)| waits(hold))
}

/// Returns true for a hold that ends without a person.
fn is_passing(hold: &Hold) -> bool {
    matches!(
        hold,
        Hold::BeingDeleted(_)
            | Hold::WaitsFor(_)
            | Hold::WebhookUnserved(_)
            | Hold::PossiblyClaimed(_)
            | Hold::AwaitsMoveTarget(_)
    )
}
