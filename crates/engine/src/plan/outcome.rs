//! What became of the objects of a plan once it was carried out.

use super::{Change, Hold};

/// What became of one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was not there and is now.
    Created,
    /// It was there, and is ours now; it was written by the managers named.
    Adopted(Vec<Box<str>>),
    /// It was not as it should be and is now.
    Updated(Change),
    /// It was deleted and created anew, because a field of it cannot change.
    Recreated,
    /// It was looked at by an apply and was as it should be.
    Kept,
    /// We let go of it, and the Sync named has it.
    HandedOver(Box<str>),
    /// It was deleted.
    Pruned {
        /// False while its finalizers keep it.
        gone: bool,
    },
    /// It was left alone.
    Held(Hold),
    /// It could not be done.
    Failed(Failed),
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// One word for conditions, events and metrics.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// True if only another manifest can help, as far as anyone knows.
    pub manifest: bool,
}

impl Outcome {
    /// True if something is otherwise on the cluster than before.
    pub fn is_change(&self) -> bool {
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

    /// The past tense, for logs and metrics.
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
