//! One row of the object table: an object with its states.
//!
//! In: parts of [`super::ObjectList`]. Out: [`ObjectRow`], which pages and their JSON read.

use super::objects::{ObjectHealth, ObjectState};
use crate::object::{GroupKind, ObjectId, Origin};
use crate::observed::Drift;

/// A kind in a namespace, or a kind of cluster-scoped objects.
pub type ObjectPlace = (GroupKind, Option<Box<str>>);

/// One row of the object table on the page.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRow<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// State compared with Git.
    pub state: ObjectState,
    /// True if it is held because a person asked for it.
    pub requested: bool,
    /// The last action since the daemon started, in the past tense.
    pub done: &'static str,
    /// The reason why it is not as committed; empty if it is.
    pub reason: &'static str,
    /// The message for the reason.
    pub message: &'a str,
    /// The changed fields, and the manager that changed them.
    pub drift: Option<&'a Drift>,
    /// Health by its own status.
    pub health: ObjectHealth,
    /// Message about the health, if it is not healthy.
    pub health_message: &'a str,
    /// Its place in Git; `None` if it is no longer there.
    pub origin: Option<&'a Origin>,
}

impl ObjectRow<'_> {
    /// The kind and the namespace of the object.
    pub fn place(&self) -> ObjectPlace {
        (self.id.group_kind(), self.id.namespace().map(Box::from))
    }

    /// True if the row has a part that may quote the object.
    pub fn has_content(&self) -> bool {
        !self.message.is_empty() || !self.health_message.is_empty() || self.drift.is_some()
    }

    /// True if a person should look at the object. Objects that are held on request of a person do
    /// not count.
    pub fn needs_attention(&self) -> bool {
        self.state != ObjectState::Committed && !self.requested
            || matches!(self.health, ObjectHealth::Degraded | ObjectHealth::Unknown)
    }
}
