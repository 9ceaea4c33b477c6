//! Reasons of the Events that no condition reports.

use std::fmt;

/// Reason of an Event that no condition reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventReason {
    /// A person approved a pending deletion.
    Approved,
    /// A person acted on the console.
    ConsoleAction,
    /// Edits and deletions by others were repaired.
    DriftRepaired,
    /// The history of the new commit does not contain the previous one.
    ForcePush,
    /// It is unknown if the history of the new commit contains the previous one.
    HistoryUnknown,
    /// A Sync was deleted and its objects stay in the cluster.
    ObjectsOrphaned,
    /// A person applied a revision in a closed window.
    Overridden,
    /// Objects that Git no longer contains were deleted.
    Pruned,
    /// A revision was rolled back because its objects did not become healthy.
    RolledBack,
}

impl EventReason {
    /// All reasons, in the order of the README.
    pub const ALL: [Self; 9] = [
        Self::Approved,
        Self::ConsoleAction,
        Self::DriftRepaired,
        Self::ForcePush,
        Self::HistoryUnknown,
        Self::ObjectsOrphaned,
        Self::Overridden,
        Self::Pruned,
        Self::RolledBack,
    ];
}

impl fmt::Display for EventReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
