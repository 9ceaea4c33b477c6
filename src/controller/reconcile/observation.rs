//! Observes the cluster: prepares the desired set, and waits until all of its kinds are watched.
//!
//! In: a revision, and the memory of the Sync.
//! Out: the prepared revision and the watches that it needs, or nothing if a newer commit comes
//! first.

use std::time::Duration;

use super::autoscalers::{leave_to_scalers, scaled};
use super::crd_changes::{follow_definitions, heed_definitions};
use super::inventory_scope::{needed_watches, scope};
use super::prepare::{PreparedRevision, cluster_error};
use super::revision::{has_all_kinds, prepare_revision};
use super::status_records::record_scope;
use super::{ReconcileContext, ReconcileResult, render_memory};
use crate::clock;
use crate::cluster::{CancelFlag, WatchRequirements};
use crate::controller::memory::SyncMemory;
use crate::object::ObjectId;
use crate::report::ReconcileError;

/// Time that new CRDs may take until their kinds are served.
const ESTABLISH: Duration = Duration::from_secs(30);
/// Pause between two checks if they are served.
const ESTABLISH_LOOK: Duration = Duration::from_millis(100);

/// Prepares and observes the revision. Until the first write, a newer commit interrupts
/// everything that takes long: the result is none then.
pub(super) async fn observe_or_give_way(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    report: &mut ReconcileResult,
) -> Result<Option<(PreparedRevision, WatchRequirements)>, ReconcileError> {
    tokio::select! {
        seen = observe_cluster(inputs, memory, report) => seen.map(Some),
        () = inputs.stop.wait_until_cancelled() => Ok(None),
        () = given_way(inputs.gives_way) => {
            report.gave_way = true;
            Ok(None)
        }
    }
}

/// Prepares the desired set, and waits until all of its kinds are observed.
async fn observe_cluster(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    report: &mut ReconcileResult,
) -> Result<(PreparedRevision, WatchRequirements), ReconcileError> {
    heed_definitions(inputs, memory).await?;
    let mut prepared = prepare_revision(inputs, memory).await?;
    let need = needed_watches(&prepared, memory);
    follow_definitions(inputs, &need, prepared.looks_at_kinds());
    // Without a status, the earlier inventory is found by listing, if that is permitted.
    if memory.inventory_incomplete
        || inputs.resource_recorder.is_none_or(|resource_recorder| resource_recorder.scope().is_some())
    {
        // Recorded before anything is applied there, so that the next daemon knows the
        // inventory.
        record_scope(inputs, scope(&need)).await?;
    }
    let (blind, scaled) = tokio::join!(
        inputs.cluster.ensure_watches(inputs.owner, &need, inputs.wish.timeout),
        scaled(inputs, &mut memory.scaling, &prepared.rendered)
    );
    report.unobserved = blind;
    let scaled = scaled.map_err(|failure| cluster_error(&failure))?;
    leave_to_scalers(inputs, memory, &mut prepared, scaled).await;
    // Only now: otherwise a later verification would take back the numbers of autoscalers.
    memory.accept_revision(inputs.rendered_spec_revision, inputs.revision);
    let before = memory.prepared.as_ref().filter(|before| before.revision.commit != inputs.revision.commit);
    let before = before.map(|before| (&*before.rendered, before.revision.commit));
    memory.claim_waits.takes_up(before, &prepared.rendered);
    memory.prepared = Some(prepared.clone());
    let _ = inputs.bytes.set(render_memory::bytes(&prepared.rendered));
    Ok((prepared, need))
}

/// Waits for the kinds that this reconcile has defined; returns true if more kinds are served
/// now.
pub(super) async fn wait_for_new_kinds(inputs: &ReconcileContext<'_>, memory: &SyncMemory) -> bool {
    let Some(prepared) = memory.prepared.as_ref().filter(|prepared| !has_all_kinds(inputs, prepared)) else {
        return false;
    };
    let defines = |id: &ObjectId| id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition");
    if !prepared.desired.objects().iter().any(|object| defines(&object.id)) {
        return false;
    }
    let within = ESTABLISH.min(inputs.wish.timeout).min(memory.awaited.left(inputs.context.now()));
    let until = clock::now() + within;
    while clock::now() < until && !inputs.stop.is_cancelled() {
        match inputs.cluster.refresh_discovery().await {
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
