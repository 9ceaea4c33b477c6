//! What can be wrong with a complete render once scopes and target namespace are known.

use moorline_core::object::{GroupKind, ObjectId, Origin};
use moorline_render::Place;

/// One thing that keeps a render from becoming a desired set.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A namespace where none can be.
    #[error(
        "{place}: {kind} is cluster-scoped and cannot be in namespace {namespace:?}; remove metadata.namespace"
    )]
    NamespaceOnClusterScoped {
        /// Where the namespace is written.
        place: Place,
        /// The kind.
        kind: GroupKind,
        /// The namespace.
        namespace: String,
    },
    /// The namespace of objects that name none is not one.
    #[error("the target namespace {namespace:?} {rule}")]
    BadNamespace {
        /// The namespace.
        namespace: String,
        /// The rule that it breaks, as a clause.
        rule: &'static str,
    },
    /// An annotation of ours in a place where it does nothing.
    #[error("{place}: {key} {rule}")]
    MisplacedSwitch {
        /// Where it is written.
        place: Place,
        /// The annotation.
        key: &'static str,
        /// What is wrong, as a clause.
        rule: &'static str,
    },
    /// Nobody waits for it any more.
    #[error("this took longer than there was time for")]
    Stopped,
    /// Two objects that are one when the target namespace is filled in.
    #[error(
        "{second}: {id} is written a second time; the first is at {first} (an object that names no namespace goes to {namespace}); remove one"
    )]
    Duplicate {
        /// The object.
        id: ObjectId,
        /// The namespace of objects that name none.
        namespace: String,
        /// Where it is written first.
        first: Origin,
        /// Where it is written again.
        second: Origin,
    },
    /// An annotation of ours with a value that means nothing.
    #[error("{place}: annotation {key} must be {expected}, found {found:?}")]
    BadSwitch {
        /// Where the annotation is written.
        place: Place,
        /// The annotation.
        key: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What was written.
        found: String,
    },
    /// An annotation with our prefix that does not exist: a switch that would silently not switch.
    #[error("{place}: there is no annotation {key}{}", .nearest.map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    UnknownSwitch {
        /// Where the annotation is written.
        place: Place,
        /// What was written.
        key: String,
        /// The annotation of nearly that name.
        nearest: Option<&'static str>,
    },
}

impl Problem {
    /// Leaves the text out that the problem is about, where a value that nobody may see may be part of it.
    pub(super) fn leave_texts_out(&mut self) {
        if let Self::BadSwitch { found, .. } = self {
            *found = "(not shown, a value from a Secret is in the object)".to_owned();
        }
    }

    /// The class of the problem, for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NamespaceOnClusterScoped { .. } => "ManifestInvalid",
            Self::Stopped => "RenderFailed",
            Self::Duplicate { .. } => "DuplicateObject",
            Self::BadNamespace { .. } => "NamespaceInvalid",
            Self::BadSwitch { .. } | Self::MisplacedSwitch { .. } | Self::UnknownSwitch { .. } => {
                "AnnotationInvalid"
            }
        }
    }
}
