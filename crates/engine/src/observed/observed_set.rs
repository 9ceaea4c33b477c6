//! All objects of a cluster that a Sync has observed.
//!
//! In: entries, from watches or from responses to applies. Out: the entry of an object, and if all
//! objects of a kind are known.

use std::collections::{BTreeMap, BTreeSet};

use super::Observed;
use moorline_core::object::{GroupKind, ObjectId};

/// All observed objects.
#[derive(Debug, Clone, Default)]
pub struct ObservedSet {
    objects: BTreeMap<ObjectId, Observed>,
    unlisted: BTreeSet<GroupKind>,
}

impl ObservedSet {
    /// Returns the object with this id.
    pub fn get(&self, id: &ObjectId) -> Option<&Observed> {
        self.objects.get(id)
    }

    /// Returns all objects, sorted by id.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectId, &Observed)> {
        self.objects.iter()
    }

    /// Inserts or replaces an object.
    pub fn insert(&mut self, id: ObjectId, observed: Observed) {
        self.objects.insert(id, observed);
    }

    /// Removes an object that no longer exists.
    pub fn remove(&mut self, id: &ObjectId) -> Option<Observed> {
        self.objects.remove(id)
    }

    /// Changes an object if it is present.
    pub fn update(&mut self, id: &ObjectId, change: impl FnOnce(&mut Observed)) {
        if let Some(observed) = self.objects.get_mut(id) {
            change(observed);
        }
    }

    /// Replaces the kinds that could not be listed completely.
    pub fn set_unlisted(&mut self, kinds: BTreeSet<GroupKind>) {
        self.unlisted = kinds;
    }

    /// Marks a kind as not completely listed: no object of it may be pruned.
    pub fn mark_unlisted(&mut self, kind: GroupKind) {
        self.unlisted.insert(kind);
    }

    /// True if every object of the kind is in the set.
    pub fn is_kind_listed(&self, kind: &GroupKind) -> bool {
        !self.unlisted.contains(kind)
    }

    /// True if every object of the same kind is in the set.
    pub fn is_listed(&self, id: &ObjectId) -> bool {
        self.unlisted.is_empty() || !self.unlisted.contains(&id.group_kind())
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// True if the set has no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}
