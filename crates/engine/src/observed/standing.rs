//! What is known of the fields that Git sets in one object.

use super::Drift;

/// What is known of the fields that Git sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// They are as they were applied.
    Verified,
    /// Nobody has looked since this program started.
    Unverified,
    /// Somebody wrote to the object since, and whether fields of ours were changed is not known.
    Moved,
    /// Somebody changed them.
    Drifted(Box<Drift>),
}

impl Standing {
    /// The standing after a write that may have changed fields of ours.
    pub(super) fn moved(&self) -> Self {
        match self {
            Self::Verified | Self::Moved => Self::Moved,
            Self::Unverified | Self::Drifted(_) => self.clone(),
        }
    }

    /// The standing after a write that changed fields of ours.
    pub(super) fn drifted(&self, mut drift: Drift) -> Self {
        // Who wrote later may hide who wrote first; a name once known is kept.
        if let (Self::Drifted(before), None) = (self, &drift.manager) {
            drift.manager.clone_from(&before.manager);
            drift.time.clone_from(&before.time);
        }
        Self::Drifted(Box::new(drift))
    }
}
