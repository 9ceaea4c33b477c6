//! First part of a reconcile: from the commit to its desired objects.
//!
//! In: a revision, the aim of the reconcile, and the memory of the Sync.
//! Out: a [`PreparedRevision`].
//!
//! A commit that was to be applied and cannot be rendered is remembered as refused.

use super::super::chance;
use super::super::memory::SyncMemory;
use super::inventory_scope;
use super::prepare::{PreparedRevision, cluster_error, prepare};
use super::refused_commit::refuse;
use super::remote_bases::RemoteBaseContext;
use super::renderer::RenderContext;
use super::status_records::written_scope;
use super::unrendered_commit::UnrenderedCommit;
use super::{Aim, ReconcileContext, ReconcileResult};
use crate::clock;
use crate::cluster::{ApiError, WatchRequirements};
use crate::controller::status::StatusRecorder;
use crate::desired::{DesiredObject, DesiredSet};
use crate::report::{ErrorCause, ReconcileError};

/// Most delete hooks that a status names; only their existence matters.
const MAX_NAMED: usize = 10;

/// Renders the commit, and loads the earlier inventory of this Sync.
pub(super) async fn prepare_revision(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
) -> Result<PreparedRevision, ReconcileError> {
    if let Err(failure) = inputs.cluster.ensure_discovery().await {
        tell_tried(inputs, memory.prepared.as_ref()).await;
        return Err(cluster_error(&failure));
    }
    let last = memory.rendered_as(inputs.rendered_spec_revision).cloned();
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
        memory.completed.restore(&inputs.resource_recorder.map(StatusRecorder::finished).unwrap_or_default());
        inputs
            .resource_recorder
            .iter()
            .for_each(|resource_recorder| memory.rolled_out.restore(&resource_recorder.status()));
        memory.inventory_loaded = true;
    }
    let mut prepared = note_refusal(inputs, memory, prepared).await?;
    // A missing kind may have been added since discovery.
    if !has_all_kinds(inputs, &prepared) && inputs.cluster.refresh_discovery().await.unwrap_or_default() {
        let again = render_revision(inputs, None).await;
        prepared = note_refusal(inputs, memory, again).await?;
    }
    Ok(prepared.with_keys(inputs.cluster.notary().content_keys(), memory.rolled_out.recorded()))
}

/// Returns true if this is the held revision, and nothing about it is unknown.
fn keeps(inputs: &ReconcileContext<'_>, last: &PreparedRevision) -> bool {
    inputs.aim != Aim::Apply && last.complete && last.revision.commit == inputs.revision.commit
}

async fn render_revision(
    inputs: &ReconcileContext<'_>,
    last: Option<&PreparedRevision>,
) -> Result<PreparedRevision, ReconcileError> {
    let by = clock::now() + inputs.wish.timeout;
    let ground = &RemoteBaseContext::of_sync(
        inputs.context,
        inputs.owner,
        inputs.wish,
        inputs.followed,
        inputs.wish.interval,
    );
    let means = RenderContext { cluster: inputs.cluster, helm: &inputs.context.sources.helm, ground };
    prepare(inputs.repository, inputs.revision, inputs.wish, means, last, by).await
}

/// Remembers that a commit which was to be applied cannot be rendered. An unreachable cluster
/// says nothing about a commit, and neither does a render that was stopped for a newer one.
async fn note_refusal(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    rendered: Result<PreparedRevision, ReconcileError>,
) -> Result<PreparedRevision, ReconcileError> {
    let says_nothing = |trouble: &ReconcileError| {
        matches!(
            trouble.cause,
            ErrorCause::ClusterUnreachable
                | ErrorCause::RightsMissing
                | ErrorCause::Stopped
                | ErrorCause::Progressing
        ) || inputs.stop.is_cancelled()
    };
    match &rendered {
        Ok(_) if inputs.aim == Aim::Apply => memory.refusal = None,
        Err(trouble) if inputs.aim == Aim::Apply && !says_nothing(trouble) => {
            let moment = (inputs.context.now(), chance());
            let of = (inputs.revision, inputs.rendered_spec_revision);
            refuse(memory, of, trouble.clone(), moment, inputs.context.pauses());
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

async fn tell_tried(inputs: &ReconcileContext<'_>, last: Option<&PreparedRevision>) {
    if inputs.aim != Aim::Apply {
        return;
    }
    let unrendered = UnrenderedCommit {
        context: inputs.context,
        owner: inputs.owner,
        order: inputs.spec_revision,
        cluster: inputs.cluster,
        repository: inputs.repository,
        revision: inputs.revision,
        wish: inputs.wish,
    };
    unrendered.tell(last).await;
}

/// Loads the earlier inventory of this Sync, if it is not known: from its status or the Lease,
/// or from the cluster if both are lost. The flag is true if some kinds could not be listed.
async fn load_earlier_inventory(
    inputs: &ReconcileContext<'_>,
    known: bool,
) -> Result<(WatchRequirements, bool), ApiError> {
    if known {
        return Ok((WatchRequirements::default(), false));
    }
    match written_scope(inputs) {
        Some(scope) => Ok((inventory_scope::watches_of_scope(&scope), false)),
        None => {
            let (kinds, complete) = inputs.cluster.discover_labelled_kinds(inputs.owner).await?;
            Ok((WatchRequirements { kinds, ..WatchRequirements::default() }, !complete))
        }
    }
}

/// Returns true if the server serves the kind of every object. A CRD in the same commit gives
/// the scope of its kind earlier than that.
pub(super) fn has_all_kinds(inputs: &ReconcileContext<'_>, prepared: &PreparedRevision) -> bool {
    let kinds = inputs.cluster.kinds();
    let served = |object: &DesiredObject| kinds.get(&object.id.group_kind()).is_some();
    prepared.complete && prepared.desired.objects().iter().all(served)
}

/// Records the commit of a reconcile and its desired set in the result.
pub(super) fn describe(report: &mut ReconcileResult, prepared: &PreparedRevision) {
    report.commits.clear();
    report.names(&prepared.revision, prepared.words.clone());
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
