//! Events of the worker of a Sync, from which its status, metrics and log lines follow.
//!
//! In: nothing. Out: [`WorkerEvent`].

use std::sync::Arc;

use super::reconcile_result::ReconcileResult;
use super::revision_change::RevisionChange;
use crate::health::HealthSummary;
use crate::object::ObjectId;
use crate::plan::Outcome;
use crate::report::board::HealthTable;
use crate::report::{ReconcileError, RolledBackRevision};
use crate::source::Revision;

/// Event of a Sync, recorded in its status, metrics and log.
#[derive(Debug)]
pub(crate) enum WorkerEvent {
    /// The repository was polled.
    Polled {
        found: Result<Revision, ReconcileError>,
        /// Identifier of the repository and ref.
        source: Box<str>,
        /// The value of the request annotation that this poll answers.
        request: Option<String>,
    },
    /// A reconcile has ended.
    Reconciled(Box<ReconcileResult>),
    /// An object was verified.
    Verified(ObjectId, Outcome),
    /// The newest revision waits for something, or no longer waits.
    Waiting(Option<ReconcileError>),
    /// The newest revision was rolled back, or is accepted again.
    RolledBack(Option<RolledBackRevision>),
    /// The relation of a new commit to the previous one is known.
    RevisionChanged(RevisionChange),
    /// Health of the objects: the summary, the health of each object while the status page is read,
    /// and true if the Sync is ready only when they are healthy.
    HealthChanged(Box<HealthSummary>, Arc<HealthTable>, bool),
}
