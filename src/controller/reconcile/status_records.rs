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

impl ReconcileContext<'_> {
    /// Returns the recorded scope: the kinds and namespaces in which the Sync may own objects.
    pub(super) fn written_scope(&self) -> Option<Scope> {
        let notebook = self.context.notebook.as_deref();
        let written = self.desk.map_or_else(|| notebook.and_then(LeaseRecord::scope), StatusRecorder::scope);
        // An empty record is treated as a missing one.
        written.filter(|scope| !scope.kinds.is_empty())
    }

    /// Records the scope before anything is applied in it.
    pub(super) async fn record(&self, scope: Scope) -> Result<(), ReconcileError> {
        match (self.desk, &self.context.notebook) {
            (Some(desk), _) => {
                let stands = desk.record(scope, self.wish.timeout).await;
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
        &self,
        plan: &Plan,
        report: &mut ReconcileResult,
    ) -> Result<(), ReconcileError> {
        report.held = Some(self.named());
        match plan.stages.is_empty() {
            true => Ok(()),
            false => self.record_revision().await,
        }
    }

    /// Returns the revision as the status names it.
    fn named(&self) -> HeldRevision {
        HeldRevision { bytes: self.bytes.get().copied(), ..self.record.clone() }
    }

    pub(super) async fn record_revision(&self) -> Result<(), ReconcileError> {
        match self.desk {
            Some(desk) if !desk.record_revision(self.named(), self.wish.timeout).await => {
                return Err(unwritten());
            }
            Some(_) => {}
            None => {
                if let Some(notebook) = &self.context.notebook {
                    notebook.record_revision(self.named()).await;
                }
            }
        }
        Ok(())
    }
}

/// Returns the error of a status that could not be written: nothing is applied before its scope is
/// recorded.
fn unwritten() -> ReconcileError {
    let message =
        "the kinds and namespaces about to be applied could not be recorded in the status".to_owned();
    ReconcileError { cause: ErrorCause::StatusUnwritable, message, problems: Vec::new(), permanent: false }
}
