//! Names a revision in the status, claims its objects, and opens the Sync for hand-overs from other
//! Syncs.
//!
//! In: the revision of the reconcile, and its desired objects.
//! Out: the registered claim; an error if the status could not be written. A run without a Sync
//! names the revision in its Lease.
//!
//! Another Sync hands an object over by writing it as this revision contains it. Therefore the
//! status names the revision before the claim is registered.

use std::sync::Arc;

use super::inventory_scope::unwritten;
use super::prepare::PreparedRevision;
use super::{ReconcileContext, ReconcileResult};
use crate::api::HeldRevision;
use crate::controller::apply::change_cause::cause_of_revision;
use crate::desired::DesiredSet;
use crate::journal::Reason;
use crate::observed::Ownership;
use crate::plan::Plan;
use crate::report::ReconcileError;

/// Publishes the desired set to the other Syncs, and the rendered commit to those that wait for
/// it. While a newer commit cannot be rendered, its claims are unknown, and nothing is handed
/// over to this Sync.
pub(super) async fn publish(
    inputs: &ReconcileContext,
    prepared: &PreparedRevision,
) -> Result<(), ReconcileError> {
    let is_newest = inputs.aim.refused().is_none();
    publish_claims(inputs, prepared, !inputs.valid_spec().suspend && is_newest).await?;
    if is_newest {
        publish_rendered(inputs);
    }
    Ok(())
}

/// Publishes the rendered commit to the Syncs of the same repository, which may wait for it.
fn publish_rendered(inputs: &ReconcileContext) {
    let held = inputs.revision.commit;
    // A Sync that is held at a revision publishes its newest commit as evidence only.
    let newest = if inputs.order.hold.is_some() { held } else { inputs.newest.commit };
    inputs.context.peers.set_rendered(&inputs.owner, inputs.order.spec_revision, held, newest);
}

/// Claims the objects of a revision. With `takes`, other Syncs may hand them over from now on.
async fn publish_claims(
    inputs: &ReconcileContext,
    prepared: &PreparedRevision,
    takes: bool,
) -> Result<(), ReconcileError> {
    let wants = &prepared.desired;
    if takes && (has_new_claim(inputs, wants) || may_receive(inputs, wants)) {
        // Hand-overs in flight still use the revision that the status names until then.
        inputs.context.peers.close_other_hand_overs(&inputs.owner, wants).await;
        record_revision(inputs).await?;
    }
    // Another Sync may hand an object over with this cluster.
    let cause = cause_of_revision(&inputs.owner, inputs.valid_spec(), prepared, Reason::HandOver);
    inputs.context.peers.set_desired(&inputs.owner, wants, &inputs.cluster().caused_by(cause), takes);
    inputs.context.peers.wait_for_hand_overs(&inputs.owner).await;
    Ok(())
}

/// Returns true if the new claim differs from the registered one. A Sync that notices a
/// hand-over late hands the object over again, in the new form.
fn has_new_claim(inputs: &ReconcileContext, wants: &Arc<DesiredSet>) -> bool {
    let before = inputs.context.peers.claimed_set(&inputs.owner);
    before.is_some_and(|before| !Arc::ptr_eq(&before, wants) && before.digest().hash != wants.digest().hash)
}

/// Returns true if some object is not owned by this Sync yet.
fn may_receive(inputs: &ReconcileContext, desired: &DesiredSet) -> bool {
    inputs.cluster().read_observed(&inputs.owner, |seen| {
        let is_own = |id| seen.get(id).is_some_and(|seen| seen.ownership == Ownership::Ours);
        desired.objects().iter().any(|object| !is_own(&object.id))
    })
}

/// Names the revision in the status before its first write: a daemon that starts later keeps
/// exactly this one.
pub(super) async fn names_revision(
    inputs: &ReconcileContext,
    plan: &Plan,
    report: &mut ReconcileResult,
) -> Result<(), ReconcileError> {
    report.held = Some(revision_record(inputs));
    match plan.stages.is_empty() {
        true => Ok(()),
        false => record_revision(inputs).await,
    }
}

/// Returns the revision as the status names it.
pub(super) fn revision_record(inputs: &ReconcileContext) -> HeldRevision {
    let (bytes, digest) = (inputs.bytes.get().copied(), inputs.digest.get().cloned());
    HeldRevision { bytes, digest, ..inputs.record.clone() }
}

pub(super) async fn record_revision(inputs: &ReconcileContext) -> Result<(), ReconcileError> {
    match inputs.resource_recorder.as_ref() {
        Some(resource_recorder)
            if !resource_recorder
                .record_revision(revision_record(inputs), inputs.valid_spec().timeout)
                .await =>
        {
            return Err(unwritten());
        }
        Some(_) => {}
        None => {
            if let Some(notebook) = &inputs.context.reporting.notebook {
                notebook.record_revision(revision_record(inputs)).await;
            }
        }
    }
    Ok(())
}
