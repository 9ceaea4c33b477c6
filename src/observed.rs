//! What a cluster holds, as far as a Sync needs to know: one compact entry an object, no bodies.
//!
//! In: metadata, from watches or from objects at hand. Out: [`ObservedSet`]. An entry says what was seen and
//! whose mark an object bears; what follows from that is decided in `plan/`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::api::{self, SpecHash, SyncName};
use crate::object::{GroupKind, Object, ObjectId};

/// Every object that was seen.
#[derive(Debug, Clone, Default)]
pub struct ObservedSet {
    objects: BTreeMap<ObjectId, Observed>,
    unlisted: BTreeSet<GroupKind>,
}

/// One object of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The object's own identity in its cluster's history.
    pub uid: Box<str>,
    /// The version that was seen.
    pub resource_version: Box<str>,
    /// Whose mark the object bears.
    pub mark: Mark,
    /// The field managers other than ours, where the object is not ours.
    pub managers: Vec<Box<str>>,
    /// True if our own entry among the managed fields is there.
    pub applied_by_us: bool,
    /// The hash that was recorded when the object was last applied.
    pub recorded: Option<SpecHash>,
    /// What is known of the fields that Git sets.
    pub standing: Standing,
    /// True if another object controls this one, and the garbage collector decides about it.
    pub controlled: bool,
    /// True if the object is being deleted.
    pub deleting: bool,
    /// The wave in which it was applied.
    pub wave: i32,
    /// A live annotation asks to leave the object alone.
    pub reconcile_disabled: bool,
    /// A live annotation asks not to prune the object.
    pub prune_disabled: bool,
}

/// Whose mark an object bears: what the identity annotation and the managed fields say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The identity names this Sync and this very object.
    Ours,
    /// The object was applied by another Sync, which is named.
    Sync(Box<str>),
    /// There is an identity, and it names another object: this one is a copy.
    Copied,
    /// There is no mark.
    None,
}

/// What is known of the fields that Git sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// They are as they were applied.
    Verified,
    /// Nobody has looked since this program started.
    Unverified,
    /// Somebody changed them.
    Drifted(Box<Drift>),
}

/// What somebody changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// The paths of the fields.
    pub fields: Vec<String>,
    /// The tool that changed them, where the managed fields tell.
    pub manager: Option<String>,
}

impl ObservedSet {
    /// The object with this id.
    pub fn get(&self, id: &ObjectId) -> Option<&Observed> {
        self.objects.get(id)
    }

    /// Every object, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectId, &Observed)> {
        self.objects.iter()
    }

    /// Records an object as it was seen now.
    pub fn insert(&mut self, id: ObjectId, observed: Observed) {
        self.objects.insert(id, observed);
    }

    /// Records that an object is gone.
    pub fn remove(&mut self, id: &ObjectId) -> Option<Observed> {
        self.objects.remove(id)
    }

    /// Changes an object that was seen; nothing happens where it was not.
    pub fn change(&mut self, id: &ObjectId, change: impl FnOnce(&mut Observed)) {
        if let Some(observed) = self.objects.get_mut(id) {
            change(observed);
        }
    }

    /// Records which kinds could not be listed completely, and that all others were.
    pub fn set_unlisted(&mut self, kinds: BTreeSet<GroupKind>) {
        self.unlisted = kinds;
    }

    /// Records that a kind could not be listed completely: nothing of it may be pruned.
    pub fn unlisted(&mut self, kind: GroupKind) {
        self.unlisted.insert(kind);
    }

    /// True if every object of the kind is in the set.
    pub fn is_listed(&self, id: &ObjectId) -> bool {
        self.unlisted.is_empty() || !self.unlisted.contains(&id.group_kind())
    }

    /// How many objects were seen.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// True if nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Observed {
    /// Reads the metadata of an object in the reply to an apply of our own.
    pub fn applied(object: &Object, owner: &SyncName) -> Self {
        Self { standing: Standing::Verified, ..Self::of(object, owner) }
    }

    /// Reads the metadata of the object that this entry stands for, seen once more.
    pub fn again(&self, object: &Object, owner: &SyncName) -> Self {
        let now = Self::of(object, owner);
        let same = now.uid == self.uid && now.resource_version == self.resource_version;
        if same { Self { standing: self.standing.clone(), ..now } } else { now }
    }

    /// True if `other` says the same about the object, although it may be a later version.
    pub fn is_as(&self, other: &Self) -> bool {
        self.resource_version == other.resource_version
            || *self == Self { resource_version: self.resource_version.clone(), ..other.clone() }
    }

    /// Reads the metadata of a live object, as the Sync `owner` sees it.
    pub fn of(object: &Object, owner: &SyncName) -> Self {
        let text = |field| object.metadata(field).and_then(Value::as_str).unwrap_or_default();
        let is = |key, value| object.annotation(key) == Some(value);
        let entries = Entries::of(object, owner);
        Self {
            uid: text("uid").into(),
            resource_version: text("resourceVersion").into(),
            mark: mark(object, owner, &entries),
            recorded: object.annotation(api::SPEC_HASH_ANNOTATION).and_then(SpecHash::parse),
            applied_by_us: entries.ours,
            managers: entries.others,
            standing: Standing::Unverified,
            controlled: has_controller(object),
            deleting: object.metadata("deletionTimestamp").is_some_and(|time| !time.is_null()),
            wave: wave(object),
            reconcile_disabled: is(api::RECONCILE_ANNOTATION, "disabled"),
            prune_disabled: is(api::PRUNE_ANNOTATION, "disabled"),
        }
    }
}

/// What the managed fields say about who applied the object.
struct Entries {
    ours: bool,
    other_sync: Option<Box<str>>,
    others: Vec<Box<str>>,
}

impl Entries {
    fn of(object: &Object, owner: &SyncName) -> Self {
        let own = owner.manager();
        let mut found = Self { ours: false, other_sync: None, others: Vec::new() };
        let fields = object.metadata("managedFields").and_then(Value::as_array);
        for entry in fields.into_iter().flatten().filter_map(Value::as_object) {
            let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            let (manager, applied) = (text("manager"), text("operation") == "Apply");
            match manager.strip_prefix(api::MANAGER_PREFIX) {
                _ if !text("subresource").is_empty() => {}
                Some(_) if manager == own => found.ours |= applied,
                Some(sync) if applied => found.other_sync = Some(sync.into()),
                _ if found.others.iter().any(|known| **known == *manager) => {}
                _ => found.others.push(manager.into()),
            }
        }
        found
    }
}

fn mark(object: &Object, owner: &SyncName, entries: &Entries) -> Mark {
    let Some(identity) = object.annotation(api::ID_ANNOTATION) else {
        return entries.other_sync.clone().map_or(Mark::None, Mark::Sync);
    };
    match identity.split_once('|') {
        _ if identity == owner.identity(object.id.as_str()) => Mark::Ours,
        Some((sync, id)) if id == object.id.as_str() => Mark::Sync(sync.into()),
        _ => Mark::Copied,
    }
}

fn has_controller(object: &Object) -> bool {
    let owners = object.metadata("ownerReferences").and_then(Value::as_array);
    let controls = |owner: &Map<String, Value>| owner.get("controller") == Some(&Value::Bool(true));
    owners.into_iter().flatten().filter_map(Value::as_object).any(controls)
}

/// What cannot be read as a wave was not written by us, and counts as none.
fn wave(object: &Object) -> i32 {
    let text =
        object.annotation(api::WAVE_ANNOTATION).or_else(|| object.annotation(api::ARGO_WAVE_ANNOTATION));
    text.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(metadata: Value) -> Object {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let Value::Object(body) = body else { unreachable!("a literal mapping") };
        let id = ObjectId::new("", "ConfigMap", "shop", "a").unwrap();
        let origin = crate::object::Origin { file: "live".into(), document: 0, line: 1, item: None };
        Object { id, version: "v1".into(), body, origin }
    }

    fn mark_of(metadata: Value) -> Mark {
        Observed::of(&live(metadata), &SyncName::new("ops", "web")).mark
    }

    #[test]
    fn an_identity_that_names_another_object_is_a_copy() {
        let id = |text: &str| json!({"annotations": {"moorline.dev/id": text}});
        assert_eq!(mark_of(id("ops/web|/ConfigMap|shop/a")), Mark::Ours);
        assert_eq!(mark_of(id("ops/web|/ConfigMap|shop/b")), Mark::Copied);
        assert_eq!(mark_of(id("ops/api|/ConfigMap|shop/a")), Mark::Sync("ops/api".into()));
        assert_eq!(mark_of(id("nonsense")), Mark::Copied);
        assert_eq!(mark_of(json!({})), Mark::None);
    }

    #[test]
    fn managed_fields_tell_who_applied() {
        let entry = |manager: &str, operation: &str, subresource: &str| json!({"manager": manager, "operation": operation, "subresource": subresource});
        let fields = json!({"managedFields": [
            entry("moorline/ops/web", "Update", ""), entry("kubectl", "Apply", ""), entry("kubectl", "Update", ""),
            entry("hpa", "Update", "scale"),
        ]});
        let observed = Observed::of(&live(fields), &SyncName::new("ops", "web"));
        assert!(!observed.applied_by_us, "an update under our name is not an apply");
        assert_eq!(observed.managers, [Box::from("kubectl")]);
        let ours = json!({"managedFields": [entry("moorline/ops/web", "Apply", "")]});
        assert!(Observed::of(&live(ours), &SyncName::new("ops", "web")).applied_by_us);
        let theirs = json!({"managedFields": [entry("moorline/ops/api", "Apply", "")]});
        assert_eq!(mark_of(theirs), Mark::Sync("ops/api".into()));
    }

    #[test]
    fn only_a_controller_makes_an_object_controlled() {
        let controlled = |controller| {
            let owners = json!({"ownerReferences": [{"uid": "1", "controller": controller}]});
            Observed::of(&live(owners), &SyncName::new("ops", "web")).controlled
        };
        assert!(controlled(true));
        assert!(!controlled(false));
    }
}
