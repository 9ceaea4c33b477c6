//! Errors in a complete render, found once scopes and target namespace are known.

use moorline_core::object::{GroupKind, ObjectId, Origin};
use moorline_core::position::SourcePosition;

/// An error that keeps a render from becoming a desired set.
#[derive(Debug, thiserror::Error)]
pub enum DesiredStateError {
    /// A cluster-scoped object with a namespace.
    #[error(
        "{place}: {kind} is cluster-scoped and cannot be in namespace {namespace:?}; remove metadata.namespace"
    )]
    NamespaceOnClusterScoped {
        /// Position of the namespace.
        place: SourcePosition,
        /// The kind.
        kind: GroupKind,
        /// The namespace.
        namespace: String,
    },
    /// An invalid target namespace.
    #[error("the target namespace {namespace:?} {rule}")]
    BadNamespace {
        /// The namespace.
        namespace: String,
        /// The rule that it breaks, as a clause.
        rule: &'static str,
    },
    /// An annotation of ours in a place where it has no effect.
    #[error("{place}: {key} {rule}")]
    MisplacedAnnotation {
        /// Position of the annotation.
        place: SourcePosition,
        /// The annotation.
        key: &'static str,
        /// The error, as a clause.
        rule: &'static str,
    },
    /// The result is no longer needed.
    #[error("this exceeded its time limit")]
    Stopped,
    /// Two objects that are the same one once the target namespace is filled in.
    #[error(
        "{second}: {id} is written a second time; the first is at {first} (an object that names no namespace goes to {namespace}); remove one"
    )]
    Duplicate {
        /// The object.
        id: ObjectId,
        /// The target namespace.
        namespace: String,
        /// Position of the first one.
        first: Origin,
        /// Position of the second one.
        second: Origin,
    },
    /// An annotation of ours with an invalid value.
    #[error("{place}: annotation {key} must be {expected}, found {found:?}")]
    InvalidAnnotation {
        /// Position of the annotation.
        place: SourcePosition,
        /// The annotation.
        key: &'static str,
        /// The valid values.
        expected: &'static str,
        /// The invalid value.
        found: String,
    },
    /// An unknown annotation with our prefix, which would silently have no effect.
    #[error("{place}: there is no annotation {key}{}", .nearest.map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    UnknownAnnotation {
        /// Position of the annotation.
        place: SourcePosition,
        /// The unknown annotation.
        key: String,
        /// The known annotation with the most similar name.
        nearest: Option<&'static str>,
    },
}

impl DesiredStateError {
    /// Removes the text of an object that contains a value of a Secret.
    pub(super) fn redact_texts(&mut self) {
        if let Self::InvalidAnnotation { found, .. } = self {
            *found = "(not shown, the object contains a secret value)".to_owned();
        }
    }

    /// Returns the reason for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NamespaceOnClusterScoped { .. } => "ManifestInvalid",
            Self::Stopped => "RenderFailed",
            Self::Duplicate { .. } => "DuplicateObject",
            Self::BadNamespace { .. } => "NamespaceInvalid",
            Self::InvalidAnnotation { .. }
            | Self::MisplacedAnnotation { .. }
            | Self::UnknownAnnotation { .. } => "AnnotationInvalid",
        }
    }
}
