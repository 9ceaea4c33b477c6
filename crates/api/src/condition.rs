//! Types and reasons of the conditions of a Sync.

use std::fmt;

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::StrDeserializer;

/// Condition types of a Sync. kstatus and `kubectl wait` read them by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The newest revision is applied completely, and healthy where the spec waits for health.
    Ready,
    /// A reconcile is under way.
    Reconciling,
    /// No progress is possible until a person changes something.
    Stalled,
    /// Every object is healthy by its own status.
    Healthy,
    /// Objects differ from their applied state.
    Drifted,
}

/// Reasons of conditions that the controller decides itself. Rendering, Git and health have their
/// own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Reason {
    /// All objects are applied.
    Applied,
    /// The reconcile is in progress.
    Progressing,
    /// The Sync is suspended: no object is written.
    Suspended,
    /// The Sync is being deleted and still owns objects.
    Deleting,
    /// The Sync is being deleted, and a person must decide about its objects.
    DeletionHeld,
    /// The spec names something that does not exist or is impossible.
    SpecInvalid,
    /// A manifest of the revision is invalid, so none of its objects is applied.
    ManifestInvalid,
    /// Some objects could not be applied.
    ApplyFailed,
    /// Some objects are on hold although they differ from Git.
    ObjectsHeld,
    /// A deletion waits for approval.
    PruneHeld,
    /// A revision waits for approval.
    ApprovalRequired,
    /// A change window holds the revision, and none was applied before.
    WindowClosed,
    /// Another running daemon serves the Sync.
    HeldByOther,
    /// The Sync is in a namespace that may not use the daemon's own permissions.
    ServiceAccountRequired,
    /// A dependency has not applied the required revision yet.
    DependencyNotReady,
    /// The Sync depends on itself through other Syncs.
    DependencyCycle,
    /// The ServiceAccount lacks permissions that the plan needs.
    RightsMissing,
    /// Every object is healthy by its own status.
    Healthy,
    /// An object failed, or made no progress before its deadline.
    Degraded,
    /// The health of an object cannot be determined.
    HealthUnknown,
    /// The objects of the newest commit did not become healthy; the last healthy revision is
    /// applied again.
    RolledBack,
    /// A person holds the Sync at a revision that is not the newest one.
    RevisionHeld,
    /// Objects differ from their applied state.
    FieldsDiffer,
    /// Another controller keeps changing fields back.
    Contested,
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Reason {
    /// Parses the reason of a written condition; `None` for a reason of rendering, Git or a newer
    /// version.
    pub fn parse(text: &str) -> Option<Self> {
        let text: StrDeserializer<'_, serde::de::value::Error> = text.into_deserializer();
        Self::deserialize(text).ok()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
