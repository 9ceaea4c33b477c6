//! First part of a reconcile: prepares the desired set of a commit, and waits until all of its
//! kinds are watched.
//!
//! In: a revision, the aim of the reconcile, and the memory of the Sync.
//! Out: the prepared revision and the watches that it needs, or nothing if a newer commit comes
//! first.
//!
//! A commit that was to be applied and cannot be rendered is remembered as refused.

use std::time::Duration;

use super::super::chance;
use super::autoscalers::{leave_to_scalers, scaled};
use super::crd_changes::{follow_definitions, heed_definitions};
use super::inventory_scope::{needed_watches, record_scope, scope, watches_of_scope, written_scope};
use super::prepare::{PreparedRevision, prepare};
use super::refused_commit::refuse;
use super::remote_bases::RemoteBaseContext;
use super::renderer::RenderContext;
use super::revision_gate::check_approval;
use super::unrendered_commit::UnrenderedCommit;
use super::window_gate::check_windows;
use super::{Aim, ReconcileContext, ReconcileResult, render_memory};
use crate::clock;
use crate::cluster::{ApiError, CancelFlag, WatchRequirements};
use crate::controller::memory::SyncMemory;
use crate::controller::reconcile_errors::cluster_error;
use crate::controller::status::StatusRecorder;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::ObjectId;
use crate::report::{ErrorCause, ReconcileError};

/// Time that new CRDs may take until their kinds are served.
const ESTABLISH: Duration = Duration::from_secs(30);
/// Pause between two checks if they are served.
const ESTABLISH_LOOK: Duration = Duration::from_millis(100);
/// Most delete hooks that a status names; only their existence matters.
const MAX_NAMED: usize = 10;

/// Prepares and observes the revision. Until the first write, a newer commit interrupts
/// everything that takes long: the result is none then.
pub(super) async fn observe_or_yield(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    report: &mut ReconcileResult,
) -> Result<Option<(PreparedRevision, WatchRequirements)>, ReconcileError> {
    tokio::select! {
        seen = observe_cluster(inputs, memory, report) => seen.map(Some),
        () = inputs.stop.wait_until_cancelled() => Ok(None),
        () = given_way(inputs.yield_flag.as_ref()) => {
            report.deferred = true;
            Ok(None)
        }
    }
}

/// Prepares the desired set, and waits until all of its kinds are observed.
async fn observe_cluster(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    report: &mut ReconcileResult,
) -> Result<(PreparedRevision, WatchRequirements), ReconcileError> {
    heed_definitions(inputs, memory).await?;
    let mut prepared = prepare_revision(inputs, memory).await?;
    let need = needed_watches(&prepared, memory);
    check_approval(inputs, memory, &prepared, &need).await?;
    // Scaled objects do not count: an approval and a window see the objects of Git.
    if let Some(digest) = prepared.digest.recorded_hash() {
        let _ = inputs.digest.set(digest.to_string());
    }
    check_windows(inputs, memory, &prepared, &need, report).await?;
    follow_definitions(inputs, &need, prepared.looks_at_kinds());
    // Without a status, the earlier inventory is found by listing, if that is permitted.
    if memory.inventory_incomplete
        || inputs
            .resource_recorder
            .as_ref()
            .is_none_or(|resource_recorder| resource_recorder.scope().is_some())
    {
        // Recorded before anything is applied there, so that the next daemon knows the
        // inventory.
        record_scope(inputs, scope(&need)).await?;
    }
    let (blind, scaled) = tokio::join!(
        inputs.cluster().ensure_watches(&inputs.owner, &need, inputs.valid_spec().timeout),
        scaled(inputs, &mut memory.autoscaled_replicas, &prepared.rendered)
    );
    report.unobserved = blind;
    let scaled = scaled.map_err(|failure| cluster_error(&failure))?;
    leave_to_scalers(inputs, memory, &mut prepared, scaled).await;
    // Only now: otherwise a later verification would take back the numbers of autoscalers.
    memory.accept_revision(inputs.rendered_order.spec_revision, &inputs.revision);
    let before = memory.prepared.as_ref().filter(|before| before.revision.commit != inputs.revision.commit);
    let before = before.map(|before| (&*before.rendered, before.revision.commit));
    memory.claim_waits.takes_up(before, &prepared.rendered);
    memory.prepared = Some(prepared.clone());
    let _ = inputs.bytes.set(render_memory::bytes(&prepared.rendered));
    Ok((prepared, need))
}

/// Waits for the kinds that this reconcile has defined; returns true if more kinds are served
/// now.
pub(super) async fn wait_for_new_kinds(inputs: &ReconcileContext, memory: &SyncMemory) -> bool {
    let Some(prepared) = memory.prepared.as_ref().filter(|prepared| !has_all_kinds(inputs, prepared)) else {
        return false;
    };
    let defines = |id: &ObjectId| id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition");
    if !prepared.desired.objects().iter().any(|object| defines(&object.id)) {
        return false;
    }
    let within =
        ESTABLISH.min(inputs.valid_spec().timeout).min(memory.awaited_resources.left(inputs.context.now()));
    let until = clock::now() + within;
    while clock::now() < until && !inputs.stop.is_cancelled() {
        match inputs.cluster().discovery().refresh().await {
            Ok(true) => return true,
            Ok(false) | Err(_) => tokio::time::sleep(ESTABLISH_LOOK).await,
        }
    }
    false
}

/// Waits until the reconcile has to give way; forever if it never has to.
async fn given_way(stop: Option<&CancelFlag>) {
    match stop {
        Some(stop) => stop.wait_until_cancelled().await,
        None => std::future::pending().await,
    }
}

/// Renders the commit, and loads the earlier inventory of this Sync.
pub(super) async fn prepare_revision(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
) -> Result<PreparedRevision, ReconcileError> {
    if let Err(failure) = inputs.cluster().discovery().ensure().await {
        tell_tried(inputs, memory.prepared.as_ref()).await;
        return Err(cluster_error(&failure));
    }
    let last = memory.rendered_as(inputs.rendered_order.spec_revision).cloned();
    // A held revision is not rendered again: its sources may be gone.
    let kept = last.clone().filter(|last| keeps(inputs, last));
    // The cluster and the repository are queried concurrently.
    let (earlier, prepared) = tokio::join!(load_earlier_inventory(inputs, memory.inventory_loaded), async {
        match kept {
            Some(kept) => Ok(kept),
            None => render_revision(inputs, last.as_ref()).await,
        }
    });
    let (earlier, is_blind) = earlier.map_err(|failure| cluster_error(&failure))?;
    memory.inventory_incomplete |= is_blind;
    memory.inventory_kinds.extend(earlier.kinds);
    memory.inventory_namespaces.extend(earlier.namespaces);
    if !memory.inventory_loaded {
        memory
            .completed
            .restore(&inputs.resource_recorder.as_ref().map(StatusRecorder::finished).unwrap_or_default());
        inputs
            .resource_recorder
            .iter()
            .for_each(|resource_recorder| memory.rolled_out.restore(&resource_recorder.status()));
        memory.inventory_loaded = true;
    }
    let mut prepared = note_refusal(inputs, memory, prepared).await?;
    // A missing kind may have been added since discovery.
    if !has_all_kinds(inputs, &prepared) && inputs.cluster().discovery().refresh().await.unwrap_or_default() {
        let again = render_revision(inputs, None).await;
        prepared = note_refusal(inputs, memory, again).await?;
    }
    Ok(prepared.with_keys(inputs.cluster().notary().content_keys(), memory.rolled_out.recorded()))
}

/// Returns true if this is the held revision, and nothing about it is unknown.
fn keeps(inputs: &ReconcileContext, last: &PreparedRevision) -> bool {
    inputs.aim != Aim::Apply && last.complete && last.revision.has_same_files(&inputs.revision)
}

async fn render_revision(
    inputs: &ReconcileContext,
    last: Option<&PreparedRevision>,
) -> Result<PreparedRevision, ReconcileError> {
    let by = clock::now() + inputs.valid_spec().timeout;
    let base_context = &RemoteBaseContext::of_sync(
        &inputs.context,
        &inputs.owner,
        inputs.valid_spec(),
        &inputs.followed,
        inputs.valid_spec().interval,
    );
    let (helm, login) = (&inputs.context.sources.helm, &inputs.rendered_order.chart_login);
    let (cluster, mounts) = (inputs.cluster(), &inputs.rendered_order.mounts);
    let render_context =
        RenderContext { cluster, helm, base_context, login, mounts, is_for_strangers: false };
    prepare(
        &inputs.rendered_order.repository,
        &inputs.revision,
        inputs.valid_spec(),
        render_context,
        last,
        by,
    )
    .await
}

/// Remembers that a commit which was to be applied cannot be rendered. An unreachable cluster
/// says nothing about a commit, and neither does a render that was stopped for a newer one.
async fn note_refusal(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    rendered: Result<PreparedRevision, ReconcileError>,
) -> Result<PreparedRevision, ReconcileError> {
    let says_nothing = |reconcile_error: &ReconcileError| {
        matches!(
            reconcile_error.cause,
            ErrorCause::ClusterUnreachable
                | ErrorCause::RightsMissing
                | ErrorCause::Stopped
                | ErrorCause::Progressing
        ) || inputs.stop.is_cancelled()
    };
    match &rendered {
        // One that waits for approval is refused until it has it.
        Ok(_) if inputs.aim == Aim::Apply => {
            memory.refused_commit = memory.refused_commit.take().filter(|it| it.request.is_some());
        }
        Err(reconcile_error) if inputs.aim == Aim::Apply && !says_nothing(reconcile_error) => {
            let moment = (inputs.context.now(), chance());
            let of = (&inputs.revision, inputs.rendered_order.spec_revision);
            refuse(memory, of, reconcile_error.clone(), moment, inputs.context.pauses());
            tell_tried(inputs, memory.prepared.as_ref()).await;
        }
        // The commit may be valid but was not rendered: its files show which objects it may
        // contain.
        Err(_) if inputs.aim == Aim::Apply && !inputs.stop.is_cancelled() => {
            tell_tried(inputs, memory.prepared.as_ref()).await;
        }
        Ok(_) | Err(_) => {}
    }
    rendered
}

async fn tell_tried(inputs: &ReconcileContext, last: Option<&PreparedRevision>) {
    if inputs.aim != Aim::Apply {
        return;
    }
    let unrendered = UnrenderedCommit {
        context: &inputs.context,
        owner: &inputs.owner,
        order: &inputs.order,
        revision: &inputs.revision,
    };
    unrendered.tell(last).await;
}

/// Loads the earlier inventory of this Sync, if it is not known: from its status or the Lease,
/// or from the cluster if both are lost. The flag is true if some kinds could not be listed.
async fn load_earlier_inventory(
    inputs: &ReconcileContext,
    known: bool,
) -> Result<(WatchRequirements, bool), ApiError> {
    if known {
        return Ok((WatchRequirements::default(), false));
    }
    match written_scope(inputs) {
        Some(scope) => Ok((watches_of_scope(&scope), false)),
        None => {
            let (kinds, complete) = inputs.cluster().discover_labelled_kinds(&inputs.owner).await?;
            Ok((WatchRequirements { kinds, ..WatchRequirements::default() }, !complete))
        }
    }
}

/// Returns true if the server serves the kind of every object. A CRD in the same commit gives
/// the scope of its kind earlier than that.
pub(super) fn has_all_kinds(inputs: &ReconcileContext, prepared: &PreparedRevision) -> bool {
    let kinds = inputs.cluster().kinds();
    let served = |object: &DesiredObject| kinds.get(&object.id.group_kind()).is_some();
    prepared.complete && prepared.desired.objects().iter().all(served)
}

/// Records the commit of a reconcile and its desired set in the result.
pub(super) fn describe(report: &mut ReconcileResult, prepared: &PreparedRevision) {
    report.commits.clear();
    report.names(&prepared.revision, prepared.summary.clone());
    report.set = Some(prepared.desired.clone());
    report.last_hooks = named_delete_hooks(&prepared.desired);
    report.desired = prepared.desired.len();
    report.digest = Some(prepared.digest.clone());
    report.tree = prepared.tree.map(|id| id.to_string());
    report.caution.clone_from(&prepared.caution);
}

/// Returns the delete hooks of a set, as the status names them.
fn named_delete_hooks(desired: &DesiredSet) -> Vec<String> {
    let runs_at_deletion =
        |object: &&DesiredObject| object.annotations.hook.is_some_and(|hook| hook.delete_phase.is_some());
    let hooks = desired.objects().iter().filter(runs_at_deletion);
    hooks.take(MAX_NAMED).map(|object| object.id.to_string()).collect()
}
