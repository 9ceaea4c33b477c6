//! Sets that follow from a desired set, and questions about all of its objects.
//!
//! In: a [`DesiredSet`].
//! Out: the set without the fields that others manage, with keys, or of the delete hooks only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::autoscaling::{AUTOSCALERS, ReplicaCount, ReplicaPaths, body, scale_target};
use super::hook::HALF;
use super::ignore::{IgnoreRule, ignore_paths};
use super::{DesiredObject, DesiredSet, HashKeys, hook};
use crate::proof::KeyRing;
use moorline_api::{CanonicalForm, SpecHash};
use moorline_core::object::ObjectId;
use moorline_managed_fields::is_inside;

impl DesiredSet {
    /// Returns the set without the ignored fields.
    #[must_use]
    pub fn without_ignored_fields(mut self, ignores: &[IgnoreRule]) -> Self {
        for object in &mut self.0 {
            let fitting = ignores.iter().filter(|ignore| ignore.matches(&object.id));
            let paths: Vec<Box<str>> = fitting.flat_map(|ignore| ignore.paths.iter().cloned()).collect();
            if !paths.is_empty() {
                ignore_paths(object, paths);
            }
        }
        hook::mix_set_hash_into_hooks(&mut self.0);
        self
    }

    /// Returns the targets of all autoscalers in the set.
    pub fn autoscaler_targets(&self) -> BTreeSet<ObjectId> {
        let is_scaler =
            |it: &&DesiredObject| AUTOSCALERS.iter().any(|(group, kind)| it.id.is_kind(group, kind));
        let scalers = self.0.iter().filter(is_scaler);
        let target = |it: &DesiredObject| scale_target(&body(it), it.id.namespace()?);
        scalers.filter_map(target).collect()
    }

    /// Returns the replica counts of the objects that have one, except ignored ones.
    pub fn replica_counts(&self, paths: &ReplicaPaths) -> BTreeMap<ObjectId, ReplicaCount> {
        if paths.is_empty() {
            return BTreeMap::new();
        }
        let replicas = |object: &DesiredObject| {
            let place = paths.get(&(object.id.group_kind(), object.version.clone()))?;
            let ignored = object.ignored.as_ref().map_or(&[][..], |it| &it.paths);
            if ignored.iter().any(|outer| is_inside(place, outer)) {
                return None;
            }
            let set = body(object).pointer(place).is_some_and(Value::is_number);
            Some((object.id.clone(), ReplicaCount { pointer: place.clone(), is_set: set }))
        };
        self.0.iter().filter_map(replicas).collect()
    }

    /// Returns the set without these fields, one an object. Their values in Git are applied only at
    /// creation.
    #[must_use]
    pub fn without_replica_counts(&self, left: &BTreeMap<ObjectId, Box<str>>) -> Self {
        let leaving = |object: &DesiredObject| {
            let mut less = object.clone();
            if let Some(place) = left.get(&object.id) {
                ignore_paths(&mut less, vec![place.clone()]);
                let is_more = less.canonical != object.canonical;
                less.created_as = is_more.then(|| Arc::new(object.clone()));
            }
            less
        };
        Self(self.0.iter().map(leaving).collect())
    }

    /// Returns the delete hooks of the Sync with this uid. Their hashes contain the uid: a run for
    /// any other purpose does not count for the deletion.
    #[must_use]
    pub fn delete_hooks(&self, uid: &str) -> Self {
        let of_end = Sha256::digest(uid);
        let hooks =
            self.0.iter().filter(|it| it.annotations.hook.is_some_and(|hook| hook.delete_phase.is_some()));
        let mut hooks: Vec<DesiredObject> = hooks.cloned().collect();
        for hook in &mut hooks {
            hook.hash.digest[HALF..].copy_from_slice(&of_end[..HALF]);
            if !hook.contains_secret {
                hook.hash_keys = HashKeys::NotNeeded;
            }
        }
        Self(hooks)
    }

    /// True if all hashes that need keys use these.
    pub fn has_keys(&self, keys: &Arc<KeyRing>, trusted: bool) -> bool {
        self.0.iter().all(|object| match &object.hash_keys {
            HashKeys::NotNeeded => true,
            HashKeys::Missing => false,
            HashKeys::Available { ring, trusts_lost } => Arc::ptr_eq(ring, keys) && *trusts_lost == trusted,
        })
    }

    /// Returns the set with these keys where they are needed. `trusts_lost` is true for the commit
    /// that was recorded last.
    #[must_use]
    pub fn with_keys(&self, keys: &Arc<KeyRing>, trusts_lost: bool) -> Self {
        let keyed = |object: &DesiredObject| match object.hash_keys {
            HashKeys::NotNeeded => object.clone(),
            HashKeys::Missing | HashKeys::Available { .. } => DesiredObject {
                hash_keys: HashKeys::Available { ring: keys.clone(), trusts_lost },
                ..object.clone()
            },
        };
        Self(self.0.iter().map(keyed).collect())
    }

    /// True if no value of this object may be shown. An object that is no longer desired is judged
    /// by its kind and by its recorded hash, which is keyed if the object contained a value of a
    /// Secret.
    pub fn is_redacted(&self, id: &ObjectId, recorded: Option<SpecHash>) -> bool {
        let was_secret = || recorded.is_some_and(|hash| matches!(hash.form, CanonicalForm::Keyed(_)));
        self.get(id).map_or_else(|| id.is_kind("", "Secret") || was_secret(), |wanted| wanted.contains_secret)
    }

    /// True for an object that is no Secret and contains a value of one.
    pub fn is_tainted(&self, id: &ObjectId) -> bool {
        self.get(id).is_some_and(DesiredObject::is_tainted)
    }
}
