//! Why an Event tells something, beside the reasons of conditions.

use std::fmt;

/// Why an Event tells something that no condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventReason {
    /// A person approved deletions that waited.
    Approved,
    /// Edits and deletions by others were repaired.
    DriftRepaired,
    /// The new commit does not have the one before in its history.
    ForcePush,
    /// Whether it has is not known.
    HistoryUnknown,
    /// A Sync is gone, and objects of it stay.
    ObjectsOrphaned,
    /// Objects that Git has no more were deleted.
    Pruned,
    /// A revision was given up because its objects did not become well.
    RolledBack,
}

impl EventReason {
    /// All of them, in the order of the README.
    pub const ALL: [Self; 7] = [
        Self::Approved,
        Self::DriftRepaired,
        Self::ForcePush,
        Self::HistoryUnknown,
        Self::ObjectsOrphaned,
        Self::Pruned,
        Self::RolledBack,
    ];
}

impl fmt::Display for EventReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
