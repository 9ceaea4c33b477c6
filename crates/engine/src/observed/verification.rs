//! Verification state of the fields that Git sets in one object.

use super::Drift;

/// State of the fields that Git sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// They are as applied: a reply of the server to a request of ours has shown it.
    Verified,
    /// They are as applied, by the evidence in the first list after a start; no request has asked.
    Believed,
    /// Not checked since this program started.
    Unverified,
    /// Another manager wrote to the object since, and may have changed our fields.
    MaybeDrifted,
    /// Another manager changed them.
    Drifted(Box<Drift>),
}

impl Verification {
    /// True while nothing speaks against the fields.
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Verified | Self::Believed => true,
            Self::Unverified | Self::MaybeDrifted | Self::Drifted(_) => false,
        }
    }

    /// Returns the state after a write that may have changed our fields.
    pub(super) fn after_write(&self) -> Self {
        match self {
            Self::Verified | Self::Believed | Self::MaybeDrifted => Self::MaybeDrifted,
            Self::Unverified | Self::Drifted(_) => self.clone(),
        }
    }

    /// Returns the state after a write that changed our fields.
    pub(super) fn after_drift(&self, mut drift: Drift) -> Self {
        // A later writer may hide the first one in `managedFields`; an author once known is kept.
        if let (Self::Drifted(before), None) = (self, &drift.manager) {
            drift.manager.clone_from(&before.manager);
            drift.time.clone_from(&before.time);
        }
        Self::Drifted(Box::new(drift))
    }
}
