//! Outcomes of the objects of a plan after its execution.

use super::{Change, Hold};

/// Outcome of one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was created.
    Created,
    /// It existed and is now owned by this Sync; these managers had written it.
    Adopted(Vec<Box<str>>),
    /// It was updated to its desired state.
    Updated(Change),
    /// It was deleted and recreated, because an immutable field changed.
    Recreated,
    /// An apply confirmed that it is in its desired state.
    Kept,
    /// It was released, and this Sync owns it now.
    HandedOver(Box<str>),
    /// It was deleted.
    Pruned {
        /// False while finalizers block its deletion.
        gone: bool,
    },
    /// It was held.
    Held(Hold),
    /// The action failed.
    Failed(Failure),
}

/// Failure of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Reason for conditions, events and metrics.
    pub reason: &'static str,
    /// Message for people.
    pub message: String,
    /// True if, as far as known, only a change of the manifest can help.
    pub manifest: bool,
}

impl Failure {
    /// True if the identity of the Sync lacks the permission.
    pub fn is_forbidden(&self) -> bool {
        self.reason == "Forbidden"
    }

    /// True if the API server does not serve the kind.
    pub fn is_kind_missing(&self) -> bool {
        self.reason == "KindMissing"
    }
}

impl Outcome {
    /// True if the cluster was changed.
    pub fn changes_cluster(&self) -> bool {
        match self {
            Self::Created
            | Self::Adopted(_)
            | Self::Updated(_)
            | Self::Recreated
            | Self::HandedOver(_)
            | Self::Pruned { .. } => true,
            Self::Kept | Self::Held(_) | Self::Failed(_) => false,
        }
    }

    /// Returns the verb for logs and metrics, in the past tense.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Adopted(_) => "adopted",
            Self::Updated(_) => "updated",
            Self::Recreated => "recreated",
            Self::Kept => "kept",
            Self::HandedOver(_) => "handed over",
            Self::Pruned { .. } => "pruned",
            Self::Held(_) => "held",
            Self::Failed(_) => "failed",
        }
    }
}
