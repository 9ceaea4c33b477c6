//! The aim of a pass: to apply a revision, or to keep the one that was applied before.
//!
//! In: nothing. Out: [`Aim`], by which a pass knows what it may take for granted and what it may delete.

/// The aim of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The revision is applied, if it renders completely.
    Apply,
    /// The revision rendered completely before, and is kept.
    Keep {
        /// The newer commit or spec that cannot be applied. While there is one, deletions ask for approval.
        refused: Option<Box<str>>,
    },
}

impl Aim {
    /// The newer commit or spec that cannot be applied.
    pub(crate) fn refused(&self) -> Option<&str> {
        match self {
            Self::Apply => None,
            Self::Keep { refused } => refused.as_deref(),
        }
    }
}
