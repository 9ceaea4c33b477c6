//! Actions of people on Syncs: what they are, the right that each takes, and their requests.
//!
//! In: a path, a form, and the viewer. Out: an [`ActionRequest`] to the task that writes, once
//! Kubernetes has granted the verb to the person. Nothing is written here.

mod change;
mod decide;
mod form;

use std::sync::Arc;

use tokio::sync::oneshot;

use super::viewer::Person;
use crate::api::SyncName;
use crate::object::ObjectId;
pub use change::{SyncChange, change_of};
pub(super) use decide::{action_path, decide};
pub(super) use form::{MAX_FORM, parse_form};

/// Kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Poll the repository now.
    Sync,
    /// Apply nothing until the Sync is resumed.
    Suspend,
    /// End that.
    Resume,
    /// Approve what waits for approval.
    Approve,
    /// Hold the Sync at an earlier revision.
    Rollback,
    /// End that.
    Release,
    /// Try again what was refused.
    Retry,
    /// Restart the Pods of a workload.
    Restart,
}

impl ActionKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Sync,
        Self::Suspend,
        Self::Resume,
        Self::Approve,
        Self::Rollback,
        Self::Release,
        Self::Retry,
        Self::Restart,
    ];

    /// Its name in a path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Approve => "approve",
            Self::Rollback => "rollback",
            Self::Release => "release",
            Self::Retry => "retry",
            Self::Restart => "restart",
        }
    }

    /// The verb on Syncs that a person needs; `None` if it takes `patch` on a workload instead.
    pub const fn verb(self) -> Option<&'static str> {
        match self {
            Self::Sync | Self::Retry => Some("sync"),
            Self::Suspend | Self::Resume => Some("suspend"),
            Self::Approve => Some("approve"),
            Self::Rollback | Self::Release => Some("rollback"),
            Self::Restart => None,
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// An action with what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Poll the repository now.
    Sync,
    /// Apply nothing until the Sync is resumed.
    Suspend,
    /// End that.
    Resume,
    /// Approve the pending deletions with this hash, which was shown.
    Approve(String),
    /// Hold the Sync at a revision of its history.
    Rollback {
        /// The revision.
        revision: String,
        /// The reason. The status and the page show it.
        reason: String,
    },
    /// Release the Sync from this revision, which was shown.
    Release(String),
    /// Try again what was refused.
    Retry,
    /// Restart the Pods of a workload.
    Restart(ObjectId),
}

/// The reason why an action was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The form is incomplete or wrong.
    #[error("{0}")]
    Invalid(String),
    /// The person may not.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such Sync or object for this person.
    #[error("there is no such Sync or object")]
    Unknown,
    /// The Sync is not as it was shown.
    #[error("{0}: look again")]
    Changed(String),
    /// The API server refused it, or did not answer.
    #[error("{0}")]
    Failed(String),
}

impl ActionError {
    /// HTTP status code.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Invalid(_) => 400,
            Self::Forbidden(_) => 403,
            Self::Unknown => 404,
            Self::Changed(_) => 409,
            Self::Failed(_) => 502,
        }
    }
}

/// An action on its way to the task that writes. The person may do it.
#[derive(Debug)]
pub struct ActionRequest {
    /// The person.
    pub person: Arc<Person>,
    /// The Sync.
    pub sync: SyncName,
    /// The action.
    pub action: Action,
    /// Receives what was done, as a sentence.
    pub answer: oneshot::Sender<Result<String, ActionError>>,
}
