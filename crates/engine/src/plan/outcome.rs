//! Outcomes of the objects of a plan after its execution.

use std::fmt;

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
    pub reason: FailureReason,
    /// Message for people.
    pub message: String,
    /// True if, as far as known, only a change of the manifest can help.
    pub manifest: bool,
}

/// Reason of a [`Failure`]. Its text is the name of the variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReason {
    /// The API server cannot read the object.
    BadRequest,
    /// Somebody else changed the object at the same time.
    Conflict,
    /// Versions of the kind could not be converted into each other.
    ConversionFailed,
    /// The deletion of an object in the way takes too long.
    DeletionStuck,
    /// The identity of the Sync lacks the permission.
    Forbidden,
    /// A field may not change once it is set.
    Immutable,
    /// The API server rejects the object.
    Invalid,
    /// The response of the API server could not be read.
    InvalidResponse,
    /// The API server does not serve the kind.
    KindMissing,
    /// The namespace does not exist.
    NamespaceMissing,
    /// The namespace is being deleted.
    NamespaceTerminating,
    /// This daemon does not hold the Lease any more.
    NotLeader,
    /// The kind does not support the request.
    NotSupported,
    /// The Pod Security level of the namespace forbids the object.
    PodSecurity,
    /// A ValidatingAdmissionPolicy denied the write.
    PolicyDenied,
    /// A ResourceQuota of the namespace is used up, or unknown.
    QuotaExceeded,
    /// The object does not have the types of its schema.
    SchemaMismatch,
    /// The API server failed.
    ServerError,
    /// A newer reconcile took the place of this one.
    Superseded,
    /// The Sync changed after the deletion was planned.
    SyncChanged,
    /// The API server has too much to do.
    Throttled,
    /// The API server did not respond in time.
    Timeout,
    /// The object is too large.
    TooLarge,
    /// The API server does not accept the credentials.
    Unauthorized,
    /// There is no connection to the API server.
    Unreachable,
    /// A version of a CustomResourceDefinition is still stored.
    VersionStored,
    /// An admission webhook denied the write.
    WebhookDenied,
    /// An admission webhook could not be called.
    WebhookFailed,
}

impl FailureReason {
    /// Returns the text for conditions, Events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Conflict => "Conflict",
            Self::ConversionFailed => "ConversionFailed",
            Self::DeletionStuck => "DeletionStuck",
            Self::Forbidden => "Forbidden",
            Self::Immutable => "Immutable",
            Self::Invalid => "Invalid",
            Self::InvalidResponse => "InvalidResponse",
            Self::KindMissing => "KindMissing",
            Self::NamespaceMissing => "NamespaceMissing",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::NotLeader => "NotLeader",
            Self::NotSupported => "NotSupported",
            Self::PodSecurity => "PodSecurity",
            Self::PolicyDenied => "PolicyDenied",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::SchemaMismatch => "SchemaMismatch",
            Self::ServerError => "ServerError",
            Self::Superseded => "Superseded",
            Self::SyncChanged => "SyncChanged",
            Self::Throttled => "Throttled",
            Self::Timeout => "Timeout",
            Self::TooLarge => "TooLarge",
            Self::Unauthorized => "Unauthorized",
            Self::Unreachable => "Unreachable",
            Self::VersionStored => "VersionStored",
            Self::WebhookDenied => "WebhookDenied",
            Self::WebhookFailed => "WebhookFailed",
        }
    }

    /// True if admission denied the write (a webhook, a policy or Pod Security) and not the API
    /// server itself. Such denials may depend on more than the manifest.
    pub fn is_admission_denial(self) -> bool {
        matches!(self, Self::PodSecurity | Self::PolicyDenied | Self::WebhookDenied)
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Failure {
    /// True if the identity of the Sync lacks the permission.
    pub fn is_forbidden(&self) -> bool {
        self.reason == FailureReason::Forbidden
    }

    /// True if the API server does not serve the kind.
    pub fn is_kind_missing(&self) -> bool {
        self.reason == FailureReason::KindMissing
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
