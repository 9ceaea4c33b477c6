//! Aim of a reconcile: apply a revision, or keep the one that was applied before.
//!
//! In: nothing.
//! Out: [`Aim`], which decides what a reconcile may assume and delete.

/// Aim of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The revision is applied, if it renders completely.
    Apply,
    /// The revision rendered completely before, and is kept.
    Keep {
        /// A newer commit or spec that cannot be applied. While there is one, deletions need
        /// approval.
        refused: Option<Box<str>>,
    },
}

impl Aim {
    /// Returns the newer commit or spec that cannot be applied.
    pub(crate) fn refused(&self) -> Option<&str> {
        match self {
            Self::Apply => None,
            Self::Keep { refused } => refused.as_deref(),
        }
    }
}
