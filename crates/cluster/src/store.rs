//! Objects as seen by the watches, by Sync.
//!
//! In: events of watches, and responses to our own writes.
//! Out: for each Sync the [`ObservedSet`] for its plan, and a notification when a relevant change
//! occurs. During a write on an object its events are deferred, only the newest is kept, and it is
//! applied after the response: every interleaving of events and responses has the same result.

mod in_flight;
mod owner_view;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) use in_flight::WriteGuard;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::evidence::Judgement;
use super::identity_checks::IdentityChecks;
use super::notary::{Notary, ProofBasis};
use moorline_api::{self as api, SyncName};
use moorline_core::object::{GroupKind, Object, ObjectId, Origin};
use moorline_engine::observed::{Observed, ObservedSet, Ownership, Verification};

/// State of all watches of one identity; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Store(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    views: HashMap<Arc<str>, View>,
    notary: Notary,
    /// Label under which each object was seen last.
    labels: HashMap<ObjectId, Arc<str>>,
    checks: IdentityChecks,
}

/// Objects of one label.
#[derive(Debug)]
struct View {
    owner: SyncName,
    notary: Notary,
    /// The basis of the last check of all proofs.
    checked: ProofBasis,
    set: ObservedSet,
    writes: HashMap<ObjectId, InFlight>,
    /// Objects that another manager deleted or removed our label from, since the last call.
    lost: Vec<(ObjectId, Observed)>,
    wake: Arc<Notify>,
    /// Owned objects that were written by any manager since the last call: their statuses may have
    /// changed.
    stirred: BTreeSet<ObjectId>,
    stir: Arc<Notify>,
}

/// Maximum number of lost objects that are kept; those beyond are created again without naming the
/// manager that deleted them.
const MAX_LOST: usize = 1000;

/// Writes in flight on one object.
#[derive(Debug, Default)]
struct InFlight {
    /// Number of writes in flight: another Sync that hands the object over may write it for this
    /// one.
    writes: usize,
    parked: Option<Parked>,
}

/// The newest event of an object during a write.
#[derive(Debug)]
enum Parked {
    Seen(Box<Object>),
    /// It was gone at this version.
    Gone(u64),
}

impl Parked {
    fn version(&self) -> u64 {
        match self {
            Self::Seen(object) => version(object),
            Self::Gone(version) => *version,
        }
    }
}

impl Store {
    /// Creates a store whose proofs are checked by this notary.
    pub(super) fn new(notary: Notary) -> Self {
        Self(Arc::new(Mutex::new(Inner { notary, ..Inner::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the numbers of the checks of the cluster's identity.
    pub(super) fn checks<T>(&self, of: impl FnOnce(&mut IdentityChecks) -> T) -> T {
        of(&mut self.lock().checks)
    }

    /// Returns the notification of a Sync.
    pub(super) fn changed_notify(&self, owner: &SyncName) -> Arc<Notify> {
        self.lock().view(&owner.label(), || owner.clone()).wake.clone()
    }

    /// Reads the observed objects of a Sync. The kinds in `unlisted` are incomplete.
    pub(super) fn read<T>(
        &self,
        owner: &SyncName,
        unlisted: BTreeSet<GroupKind>,
        read: impl FnOnce(&ObservedSet) -> T,
    ) -> T {
        let mut inner = self.lock();
        let view = inner.view(&owner.label(), || owner.clone());
        view.set.set_unlisted(unlisted);
        view.check_anew();
        read(&view.set)
    }

    /// Returns what is known of one object.
    pub(super) fn known(&self, owner: &SyncName, id: &ObjectId) -> Option<Observed> {
        self.lock().views.get(&*owner.label())?.set.get(id).cloned()
    }

    /// Records the current state of an object. Returns it if the store has a newer state.
    pub(super) fn on_seen(&self, object: Object) -> Option<Object> {
        self.record(object, false)
    }

    /// The same for an object of a list, whose metadata may be evidence of its verification.
    pub(super) fn on_listed(&self, object: Object) -> Option<Object> {
        self.record(object, true)
    }

    fn record(&self, object: Object, is_listed: bool) -> Option<Object> {
        let label = object.label(api::SYNC_LABEL)?;
        let mut inner = self.lock();
        let label = inner.view_label(label);
        if !inner.views.contains_key(&label) {
            let Some(owner) = owner(&label, &object) else {
                // A label that names no Sync still removes the object from its previous owner.
                let before = inner.labels.remove(&object.id)?;
                inner.gone(&before, &object.id, version(&object));
                return None;
            };
            inner.view(&label, || owner);
        }
        let before = inner.labels.insert(object.id.clone(), label.clone());
        if let Some(before) = before.filter(|before| *before != label) {
            inner.gone(&before, &object.id, version(&object));
        }
        inner.views.get_mut(&label)?.on_seen(object, is_listed)
    }

    /// Records judged evidence, unless the object has changed since; returns the believed objects.
    pub(super) fn record_judgements(&self, owner: &SyncName, judged: Vec<Judgement>) -> Vec<ObjectId> {
        let mut inner = self.lock();
        let view = inner.view(&owner.label(), || owner.clone());
        let mut believed = Vec::new();
        for Judgement { id, evidence, suspicion } in judged {
            view.set.update(&id, |seen| {
                if seen.evidence.as_ref().is_some_and(|now| Arc::ptr_eq(now, &evidence)) {
                    seen.judge(suspicion);
                }
            });
            if view.set.get(&id).is_some_and(|seen| seen.verification == Verification::Believed) {
                believed.push(id);
            }
        }
        believed
    }

    /// Removes an object that is gone, or has lost our label. It stays if the store has a newer
    /// state: one of our writes has created it again since, and was answered first.
    pub(super) fn on_deleted(&self, object: &Object) {
        let (id, version) = (&object.id, version(object));
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(label) = inner.labels.get(id) else { return };
        if let Some(view) = inner.views.get_mut(label)
            && (view.writes.contains_key(id) || !view.knows_later(id, version))
        {
            view.on_deleted(id, version);
            inner.labels.remove(id);
        }
    }

    /// Completes the list of a kind (in a namespace) at a version: objects that were not listed are
    /// gone.
    pub(super) fn complete_list(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        listed: &HashSet<ObjectId>,
        version: u64,
    ) {
        let mut inner = self.lock();
        let of_kind = |id: &&ObjectId| {
            id.is_kind(&kind.group, &kind.kind) && namespace.is_none_or(|one| id.namespace() == Some(one))
        };
        let lost: Vec<ObjectId> =
            inner.labels.keys().filter(of_kind).filter(|id| !listed.contains(*id)).cloned().collect();
        for id in lost {
            let Some(label) = inner.labels.get(&id).cloned() else { continue };
            let view = inner.views.get(&label);
            // One of our writes has created it again since the list, and was answered first.
            if view.is_some_and(|view| !view.writes.contains_key(&id) && view.knows_later(&id, version)) {
                continue;
            }
            inner.labels.remove(&id);
            inner.gone(&label, &id, version);
        }
        // Objects known only by the response to our own apply, because the watch broke before it
        // reported them.
        for view in inner.views.values_mut() {
            let here =
                |id: &&ObjectId| of_kind(id) && !listed.contains(*id) && !view.writes.contains_key(*id);
            let known = view.set.iter().filter(|(id, _)| here(id));
            let old = known.filter(|(_, seen)| number(&seen.resource_version) <= version);
            let lost: Vec<ObjectId> = old.map(|(id, _)| id.clone()).collect();
            lost.iter().for_each(|id| view.on_deleted(id, version));
        }
    }

    /// Returns the notification of written objects.
    pub(super) fn written_notify(&self, owner: &SyncName) -> Arc<Notify> {
        self.lock().view(&owner.label(), || owner.clone()).stir.clone()
    }

    /// Takes the objects of a Sync that were written since the last call.
    pub(super) fn take_written(&self, owner: &SyncName) -> BTreeSet<ObjectId> {
        std::mem::take(&mut self.lock().view(&owner.label(), || owner.clone()).stirred)
    }

    /// Takes the lost objects.
    pub(super) fn lost(&self, owner: &SyncName) -> Vec<(ObjectId, Observed)> {
        std::mem::take(&mut self.lock().view(&owner.label(), || owner.clone()).lost)
    }

    /// Records that a live object was compared with its desired state, and these fields differ.
    /// Returns the new entry.
    pub(super) fn compared(&self, owner: &SyncName, live: &Object, fields: Vec<String>) -> Option<Observed> {
        let mut inner = self.lock();
        let view = inner.view(&owner.label(), || owner.clone());
        let known = view.set.get(&live.id)?.with_comparison(live, owner, fields);
        view.set.insert(live.id.clone(), known.clone());
        Some(known)
    }

    /// Handles a complete list of a kind at a version. Entries with a later version belong to a
    /// history that is gone, or will be reported again in a moment; the same holds for listed
    /// objects that are older than their entries. All of them are marked unverified.
    pub(super) fn mark_newer_unverified(&self, kind: &GroupKind, version: u64, older: Vec<Object>) {
        let mut inner = self.lock();
        for object in older {
            let label = object.label(api::SYNC_LABEL).unwrap_or_default();
            if let Some(view) = inner.views.get_mut(label) {
                view.on_rewind(object);
            }
        }
        for view in inner.views.values_mut() {
            let later: Vec<ObjectId> = view
                .set
                .iter()
                .filter(|(id, seen)| {
                    id.is_kind(&kind.group, &kind.kind) && number(&seen.resource_version) > version
                })
                .map(|(id, _)| id.clone())
                .collect();
            later.iter().for_each(|id| view.set.update(id, Observed::mark_unverified));
            if !later.is_empty() {
                view.wake.notify_one();
            }
        }
    }

    /// Marks these objects as unverified, although no change was seen, so that they are verified
    /// again.
    pub(super) fn mark_unverified(&self, owner: &SyncName, ids: &[ObjectId]) {
        let mut inner = self.lock();
        let view = inner.view(&owner.label(), || owner.clone());
        for id in ids {
            view.set.update(id, Observed::unverify);
        }
    }

    /// Marks objects whose daily verification is due.
    pub(super) fn mark_overdue(&self, owner: &SyncName, ids: &[ObjectId]) {
        let mut inner = self.lock();
        let view = inner.view(&owner.label(), || owner.clone());
        for id in ids {
            view.set.update(id, Observed::mark_overdue);
        }
    }

    /// Marks all objects as unverified, so that they are verified again.
    pub(super) fn mark_all_unverified(&self) {
        for view in self.lock().views.values_mut() {
            let ids: Vec<ObjectId> = view.set.iter().map(|(id, _)| id.clone()).collect();
            ids.iter().for_each(|id| view.set.update(id, Observed::unverify));
            view.wake.notify_one();
        }
    }

    /// Notifies all Syncs of a change that concerns no single object, such as new kinds.
    pub(super) fn wake_all(&self) {
        self.lock().views.values().for_each(|view| view.wake.notify_one());
    }

    /// Starts a write: events of the object are deferred until the last guard is finished or
    /// dropped.
    pub(super) fn writing(&self, owner: &SyncName, id: &ObjectId) -> WriteGuard {
        let label = owner.label();
        self.lock().view(&label, || owner.clone()).writes.entry(id.clone()).or_default().writes += 1;
        WriteGuard { store: self.clone(), label, id: id.clone(), finished: false }
    }
}

impl Inner {
    /// Returns the label as shared by all its objects.
    fn view_label(&self, label: &str) -> Arc<str> {
        self.views.get_key_value(label).map_or_else(|| label.into(), |(known, _)| known.clone())
    }

    fn view(&mut self, label: &str, owner: impl FnOnce() -> SyncName) -> &mut View {
        let (label, notary) = (self.view_label(label), self.notary.clone());
        self.views.entry(label).or_insert_with(|| View {
            owner: owner(),
            notary,
            checked: ProofBasis::default(),
            set: ObservedSet::default(),
            writes: HashMap::new(),
            lost: Vec::new(),
            wake: Arc::default(),
            stirred: BTreeSet::new(),
            stir: Arc::default(),
        })
    }

    fn gone(&mut self, label: &str, id: &ObjectId, version: u64) {
        if let Some(view) = self.views.get_mut(label) {
            view.on_deleted(id, version);
        }
    }
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// Returns the version of an event; an event without a numeric version is the newest.
fn version(object: &Object) -> u64 {
    let text = object.metadata("resourceVersion").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

/// True for an object that has nothing of ours but the label.
fn is_foreign(seen: &Observed) -> bool {
    !seen.applied_by_us && matches!(seen.ownership, Ownership::Unowned | Ownership::Copy)
}

/// Returns the Sync of a label. A hashed label says nothing on its own, but the identity annotation
/// does.
fn owner(label: &str, object: &Object) -> Option<SyncName> {
    let identity = object.annotation(api::ID_ANNOTATION);
    let identity = identity.and_then(|identity| SyncName::parse_owner(identity.split_once('|')?.0));
    let plain = label.split_once('.').filter(|_| !label.starts_with(api::TARGET_LABEL));
    let plain = plain.map(|(namespace, name)| SyncName::new(namespace, name));
    plain.or(identity).filter(|owner| owner.label() == label)
}

/// Builds an object of which only the metadata is known.
pub(super) fn object(kind: &GroupKind, version: &str, body: Map<String, Value>) -> Option<Object> {
    let metadata = body.get("metadata")?;
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    let id = ObjectId::new(&kind.group, &kind.kind, text("namespace"), text("name")).ok()?;
    let origin = Origin { file: Arc::from(""), document: 0, line: 0, item: None };
    Some(Object { id, version: version.into(), body, origin })
}

#[cfg(test)]
mod interleavings;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner() -> SyncName {
        SyncName::new("ops", "web")
    }

    fn map(name: &str, version: u64) -> Object {
        let owner = owner();
        let annotations = json!({"moorline.dev/id": format!("ops/web|/ConfigMap|shop/{name}")});
        let metadata = json!({"namespace": "shop", "name": name, "uid": name, "resourceVersion": version.to_string(),
            "labels": {"moorline.dev/sync": owner.label()}, "annotations": annotations});
        let Value::Object(body) = json!({"metadata": metadata}) else { unreachable!("a literal mapping") };
        object(&GroupKind::new("", "ConfigMap"), "v1", body).unwrap()
    }

    /// The store's entry of an object: its version, and true if it is verified.
    fn known(store: &Store, name: &str) -> Option<(String, bool)> {
        let id = map(name, 0).id;
        store.read(&owner(), BTreeSet::new(), |set| {
            let seen = set.get(&id)?;
            Some((seen.resource_version.to_string(), seen.verification == Verification::Verified))
        })
    }

    fn some(version: &str, verified: bool) -> Option<(String, bool)> {
        Some((version.to_owned(), verified))
    }

    #[test]
    fn a_list_is_believed_if_the_watch_had_no_event() {
        let (store, kind) = (Store::default(), GroupKind::new("", "ConfigMap"));
        for (name, version) in [("kept", 10), ("lost", 20), ("newer", 40)] {
            let object = map(name, version);
            store.writing(&owner(), &object.id).finish_applied(&object);
        }
        let listed = HashSet::from([map("kept", 10).id]);
        store.complete_list(&kind, None, &listed, 30);
        store.mark_newer_unverified(&kind, 30, Vec::new());
        assert_eq!(known(&store, "kept"), some("10", true));
        assert_eq!(known(&store, "lost"), None, "nobody but the reply to our apply ever told of it");
        assert_eq!(known(&store, "newer"), some("", false), "the list is older than this one");
        assert_eq!(store.lost(&owner()).len(), 1);
    }

    #[test]
    fn an_object_that_was_created_again_after_a_list_is_kept() {
        let (store, kind) = (Store::default(), GroupKind::new("", "ConfigMap"));
        store.on_seen(map("again", 10));
        let again = map("again", 40);
        store.writing(&owner(), &again.id).finish_applied(&again);
        store.complete_list(&kind, None, &HashSet::new(), 30);
        assert_eq!(known(&store, "again").map(|(version, _)| version), Some("40".into()));
        assert_eq!(store.lost(&owner()).len(), 0);
        store.complete_list(&kind, None, &HashSet::new(), 50);
        assert_eq!(known(&store, "again"), None, "a later list does not have it");
    }

    #[test]
    fn what_controllers_make_with_our_label_wakes_nobody() {
        let store = Store::default();
        let wakes = |object: Object| {
            store.on_seen(object);
            futures::FutureExt::now_or_never(store.changed_notify(&owner()).notified()).is_some()
        };
        assert!(wakes(map("ours", 10)));
        let mut slice = map("slice", 20);
        slice.body["metadata"]["annotations"] = json!({});
        assert!(!wakes(slice.clone()));
        slice.body["metadata"]["resourceVersion"] = "30".into();
        assert!(!wakes(slice.clone()), "nothing that matters has changed");
        slice.body["metadata"]["resourceVersion"] = "40".into();
        slice.body["metadata"]["annotations"] = json!({"moorline.dev/reconcile": "disabled"});
        assert!(wakes(slice), "somebody may want it");
    }

    #[test]
    fn an_object_whose_label_stands_for_nobody_is_lost() {
        let store = Store::default();
        store.on_seen(map("a", 10));
        let mut other = map("a", 20);
        other.body["metadata"]["labels"] = json!({"moorline.dev/sync": "x"});
        store.on_seen(other);
        assert_eq!((known(&store, "a"), store.lost(&owner()).len()), (None, 1));
        store.on_seen(map("a", 30));
        assert_eq!(known(&store, "a"), some("30", false), "and it comes back");
    }

    #[test]
    fn a_list_that_is_older_than_what_is_known_is_of_another_history() {
        let (store, kind) = (Store::default(), GroupKind::new("", "ConfigMap"));
        let object = map("a", 20);
        store.writing(&owner(), &object.id).finish_applied(&object);
        let older = store.on_seen(map("a", 10));
        assert!(older.is_some(), "an event by itself may be late");
        assert_eq!(known(&store, "a"), some("20", true));
        store.mark_newer_unverified(&kind, 30, older.into_iter().collect());
        assert_eq!(known(&store, "a"), some("10", false));
    }
}
