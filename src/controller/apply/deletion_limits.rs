//! Limits on the deletions of a reconcile.
//!
//! In: the plan, and the approval of a person. Out: [`DeletionLimits`], which each deletion is
//! checked against once more.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::{GroupKind, ObjectId};

/// Limits on deletions, as known when the plan was made.
#[derive(Debug, Default)]
pub(crate) struct DeletionLimits {
    /// Objects that other Syncs claim and for which a person decides about the claim.
    pub(crate) claimed: BTreeSet<ObjectId>,
    /// Kinds whose objects are deleted only by approval.
    pub(crate) protected: BTreeSet<GroupKind>,
    /// Approved deletions, by uid.
    pub(crate) consented: BTreeMap<ObjectId, Box<str>>,
    /// The approval that a person gave for them.
    pub(crate) approval: Option<String>,
    /// The person who gave it on the console.
    pub(crate) approver: Option<String>,
}
