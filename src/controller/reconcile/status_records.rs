//! Records in the status that have to exist before the first write of a round.
//!
//! In: the scope and the revision of the reconcile.
//! Out: nothing, once the API server has them; an error if they could not be written. A run without
//! a Sync writes them to its Lease.

use super::{ReconcileContext, ReconcileResult};
use crate::api::{HeldRevision, Scope};
use crate::controller::status::StatusRecorder;
use crate::controller::status::lease_record::LeaseRecord;
use crate::plan::Plan;
use crate::report::{ErrorCause, ReconcileError};

/// Returns the recorded scope: the kinds and namespaces in which the Sync may own objects.
pub(super) fn written_scope(inputs: &ReconcileContext<'_>) -> Option<Scope> {
    let notebook = inputs.context.reporting.notebook.as_deref();
    let written =
        inputs.resource_recorder.map_or_else(|| notebook.and_then(LeaseRecord::scope), StatusRecorder::scope);
    // An empty record is treated as a missing one.
    written.filter(|scope| !scope.kinds.is_empty())
}

/// Records the scope before anything is applied in it.
pub(super) async fn record_scope(inputs: &ReconcileContext<'_>, scope: Scope) -> Result<(), ReconcileError> {
    match (inputs.resource_recorder, &inputs.context.reporting.notebook) {
        (Some(resource_recorder), _) => {
            let stands = resource_recorder.record(scope, inputs.wish.timeout).await;
            return if stands { Ok(()) } else { Err(unwritten()) };
        }
        (None, Some(notebook)) => notebook.record(scope).await,
        (None, None) => {}
    }
    Ok(())
}

/// Names the revision in the status before its first write: a daemon that starts later keeps
/// exactly this one.
pub(super) async fn names_revision(
    inputs: &ReconcileContext<'_>,
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
fn revision_record(inputs: &ReconcileContext<'_>) -> HeldRevision {
    HeldRevision { bytes: inputs.bytes.get().copied(), ..inputs.record.clone() }
}

pub(super) async fn record_revision(inputs: &ReconcileContext<'_>) -> Result<(), ReconcileError> {
    match inputs.resource_recorder {
        Some(resource_recorder)
            if !resource_recorder.record_revision(revision_record(inputs), inputs.wish.timeout).await =>
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

/// Returns the error of a status that could not be written: nothing is applied before its scope is
/// recorded.
fn unwritten() -> ReconcileError {
    let message =
        "the kinds and namespaces about to be applied could not be recorded in the status".to_owned();
    ReconcileError { cause: ErrorCause::StatusUnwritable, message, problems: Vec::new(), permanent: false }
}
