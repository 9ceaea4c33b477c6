//! Causes of the errors that keep a reconcile from starting or ending.
//!
//! In: the place of the error in the code. Out: [`ErrorCause`], on which code decides, and its
//! reason for people.

/// Cause of a [`super::ReconcileError`]. Code decides on it, never on the text of its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCause {
    /// The revision waits for approval.
    ApprovalRequired,
    /// The API server does not answer, or fails.
    ClusterUnreachable,
    /// The objects of the Sync are being deleted.
    Deleting,
    /// The deletion of the Sync waits for a person.
    DeletionHeld,
    /// Syncs depend on each other in a circle.
    DependencyCycle,
    /// A Sync of `spec.dependsOn` is not ready.
    DependencyNotReady,
    /// Trusted keys cannot be read.
    KeysInvalid,
    /// A remote base of a kustomization cannot be built.
    KustomizeInvalid,
    /// The memory for renders is in use.
    MemoryBusy,
    /// The render needs more memory than it may have.
    MemoryExceeded,
    /// The spec names no reference.
    NoReference,
    /// The revision does not contain the path.
    PathNotFound,
    /// A step is not finished yet, or the API server asks to wait.
    Progressing,
    /// The repository does not have the reference.
    ReferenceNotFound,
    /// The render failed.
    RenderFailed,
    /// The repository refuses the login.
    RepositoryAccessDenied,
    /// There is no such repository.
    RepositoryNotFound,
    /// The identity of the server is not proven.
    RepositoryUntrusted,
    /// The identity of the Sync lacks permissions.
    RightsMissing,
    /// A Secret does not exist, or lacks a key.
    SecretMissing,
    /// The identity of the Sync may not read the Secret, or not use it for this host.
    SecretNotAllowed,
    /// The Sync has to name a ServiceAccount.
    ServiceAccountRequired,
    /// The spec is invalid.
    SpecInvalid,
    /// The status cannot be written.
    StatusUnwritable,
    /// The work was stopped.
    Stopped,
    /// An object with values for substitution does not exist.
    ValuesMissing,
    /// A change window holds the revision.
    WindowClosed,
    /// A reason of the repository, the files, a chart or helm on which no decision depends.
    Input(&'static str),
}

impl ErrorCause {
    /// Returns the reason for conditions, Events and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ApprovalRequired => "ApprovalRequired",
            Self::ClusterUnreachable => "ClusterUnreachable",
            Self::Deleting => "Deleting",
            Self::DeletionHeld => "DeletionHeld",
            Self::DependencyCycle => "DependencyCycle",
            Self::DependencyNotReady => "DependencyNotReady",
            Self::KeysInvalid => "KeysInvalid",
            Self::KustomizeInvalid => "KustomizeInvalid",
            Self::MemoryBusy => "MemoryBusy",
            Self::MemoryExceeded => "MemoryExceeded",
            Self::NoReference => "NoReference",
            Self::PathNotFound => "PathNotFound",
            Self::Progressing => "Progressing",
            Self::ReferenceNotFound => "ReferenceNotFound",
            Self::RenderFailed => "RenderFailed",
            Self::RepositoryAccessDenied => "RepositoryAccessDenied",
            Self::RepositoryNotFound => "RepositoryNotFound",
            Self::RepositoryUntrusted => "RepositoryUntrusted",
            Self::RightsMissing => "RightsMissing",
            Self::SecretMissing => "SecretMissing",
            Self::SecretNotAllowed => "SecretNotAllowed",
            Self::ServiceAccountRequired => "ServiceAccountRequired",
            Self::SpecInvalid => "SpecInvalid",
            Self::StatusUnwritable => "StatusUnwritable",
            Self::Stopped => "Stopped",
            Self::ValuesMissing => "ValuesMissing",
            Self::WindowClosed => "WindowClosed",
            Self::Input(reason) => reason,
        }
    }

    /// True if the wait ends by itself, so that it is no warning.
    pub fn resolves_itself(self) -> bool {
        matches!(self, Self::DependencyNotReady | Self::Progressing)
    }
}
