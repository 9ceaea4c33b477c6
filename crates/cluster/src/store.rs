//! What the watches have told, by Sync.
//!
//! In: events of watches, and the replies to our own writes. Out: for each Sync the [`ObservedSet`] that its plan
//! is made from, and a wake-up when something in it changed that may matter. While a write on an object is under
//! way its events are parked, the newest only, and judged after the reply: any interleaving of events and
//! replies comes to the same.

mod view;
mod writing;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::sync::Notify;
pub(super) use writing::Writing;

use super::notary::{Checked, Notary};
use moorline_api::{self as api, SyncName};
use moorline_core::object::{GroupKind, Object, ObjectId, Origin};
use moorline_engine::observed::{Mark, Observed, ObservedSet, Standing};

/// What all watches of one identity have told; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Store(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    views: HashMap<Arc<str>, View>,
    notary: Notary,
    /// Under which label each object was seen last.
    labels: HashMap<ObjectId, Arc<str>>,
}

/// The objects of one label.
#[derive(Debug)]
struct View {
    owner: SyncName,
    notary: Notary,
    /// With what the proofs of all its objects were checked last.
    checked: Checked,
    set: ObservedSet,
    writes: HashMap<ObjectId, InFlight>,
    /// Objects that somebody else deleted, or took our label off, since this was asked last.
    lost: Vec<(ObjectId, Observed)>,
    wake: Arc<Notify>,
    /// Objects of ours that were written, by whomever, since this was asked last: their statuses may have changed.
    stirred: BTreeSet<ObjectId>,
    stir: Arc<Notify>,
}

/// More lost objects are not kept; those beyond are made anew without a word about who deleted them.
const MAX_LOST: usize = 1000;

/// An object that is being written.
#[derive(Debug, Default)]
struct InFlight {
    /// How many writes are under way: another Sync that hands the object over writes it for this one.
    writes: usize,
    parked: Option<Parked>,
}

/// The newest event of an object that is being written.
#[derive(Debug)]
enum Parked {
    Seen(Box<Object>),
    /// It was gone in this version.
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
    /// A store whose proofs this notary checks.
    pub(super) fn new(notary: Notary) -> Self {
        Self(Arc::new(Mutex::new(Inner { notary, ..Inner::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wake-up of a Sync.
    pub(super) fn wake(&self, owner: &SyncName) -> Arc<Notify> {
        self.lock().view(&owner.label(), || owner.clone()).wake.clone()
    }

    /// Reads what is known of a Sync's objects; of the kinds given not everything is known.
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

    /// An object, as it is now. It is given back if what is known of it is newer.
    pub(super) fn seen(&self, object: Object) -> Option<Object> {
        let label = object.label(api::SYNC_LABEL)?;
        let mut inner = self.lock();
        let label = inner.view_label(label);
        if !inner.views.contains_key(&label) {
            let Some(owner) = owner(&label, &object) else {
                // Under a label that stands for no Sync, it is gone from where it was all the same.
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
        inner.views.get_mut(&label)?.seen(object)
    }

    /// An object is gone, or bears no label of ours any more. It stays if what is known of it is newer: a write of ours
    /// has made it anew since, and was answered first.
    pub(super) fn gone(&self, object: &Object) {
        let (id, version) = (&object.id, version(object));
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(label) = inner.labels.get(id) else { return };
        if let Some(view) = inner.views.get_mut(label)
            && (view.writes.contains_key(id) || !view.knows_later(id, version))
        {
            view.gone(id, version);
            inner.labels.remove(id);
        }
    }

    /// Everything of a kind (in a namespace) has been told, as it was at this version: what was not told is gone.
    pub(super) fn only(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        told: &HashSet<ObjectId>,
        version: u64,
    ) {
        let mut inner = self.lock();
        let of_kind = |id: &&ObjectId| {
            id.is(&kind.group, &kind.kind) && namespace.is_none_or(|one| id.namespace() == Some(one))
        };
        let lost: Vec<ObjectId> =
            inner.labels.keys().filter(of_kind).filter(|id| !told.contains(*id)).cloned().collect();
        for id in lost {
            if let Some(label) = inner.labels.remove(&id) {
                inner.gone(&label, &id, version);
            }
        }
        // What is known by the reply to our own apply alone, because the watch broke before it told of it.
        for view in inner.views.values_mut() {
            let here = |id: &&ObjectId| of_kind(id) && !told.contains(*id) && !view.writes.contains_key(*id);
            let known = view.set.iter().filter(|(id, _)| here(id));
            let old = known.filter(|(_, seen)| number(&seen.resource_version) <= version);
            let lost: Vec<ObjectId> = old.map(|(id, _)| id.clone()).collect();
            lost.iter().for_each(|id| view.gone(id, version));
        }
    }

    /// What says that objects were written.
    pub(super) fn stir(&self, owner: &SyncName) -> Arc<Notify> {
        self.lock().view(&owner.label(), || owner.clone()).stir.clone()
    }

    /// The objects of a Sync that were written since this was asked last.
    pub(super) fn stirred(&self, owner: &SyncName) -> BTreeSet<ObjectId> {
        std::mem::take(&mut self.lock().view(&owner.label(), || owner.clone()).stirred)
    }

    /// What is lost, told once.
    pub(super) fn lost(&self, owner: &SyncName) -> Vec<(ObjectId, Observed)> {
        std::mem::take(&mut self.lock().view(&owner.label(), || owner.clone()).lost)
    }

    /// A live object was compared with what it should be: these fields differ. Gives what is known of it then.
    pub(super) fn compared(&self, owner: &SyncName, live: &Object, fields: Vec<String>) -> Option<Observed> {
        let mut inner = self.lock();
        let view = inner.view(&owner.label(), || owner.clone());
        let known = view.set.get(&live.id)?.compared(live, owner, fields);
        view.set.insert(live.id.clone(), known.clone());
        Some(known)
    }

    /// Everything of a kind has been told, and the server is at this version: what we know from a later one is of a
    /// history that is gone, or will be told again in a moment. So is what was told and is older than what we know.
    /// Either way it is looked at once more.
    pub(super) fn distrust_after(&self, kind: &GroupKind, version: u64, older: Vec<Object>) {
        let mut inner = self.lock();
        for object in older {
            let label = object.label(api::SYNC_LABEL).unwrap_or_default();
            if let Some(view) = inner.views.get_mut(label) {
                view.went_back(object);
            }
        }
        for view in inner.views.values_mut() {
            let later: Vec<ObjectId> = view
                .set
                .iter()
                .filter(|(id, seen)| {
                    id.is(&kind.group, &kind.kind) && number(&seen.resource_version) > version
                })
                .map(|(id, _)| id.clone())
                .collect();
            later.iter().for_each(|id| view.set.change(id, Observed::distrust));
            if !later.is_empty() {
                view.wake.notify_one();
            }
        }
    }

    /// These objects are to be verified once more, although nothing was seen to happen to them.
    pub(super) fn distrust(&self, owner: &SyncName, ids: &[ObjectId]) {
        let mut inner = self.lock();
        let view = inner.view(&owner.label(), || owner.clone());
        for id in ids {
            view.set.change(id, unverify);
        }
    }

    /// All objects are to be verified once more.
    pub(super) fn distrust_all(&self) {
        for view in self.lock().views.values_mut() {
            let ids: Vec<ObjectId> = view.set.iter().map(|(id, _)| id.clone()).collect();
            ids.iter().for_each(|id| view.set.change(id, unverify));
            view.wake.notify_one();
        }
    }

    /// Something else than objects changed for everybody, such as what is known of kinds.
    pub(super) fn wake_all(&self) {
        self.lock().views.values().for_each(|view| view.wake.notify_one());
    }

    /// From now on events of the object are parked, until the last guard is asked to finish or dropped.
    pub(super) fn writing(&self, owner: &SyncName, id: &ObjectId) -> Writing {
        let label = owner.label();
        self.lock().view(&label, || owner.clone()).writes.entry(id.clone()).or_default().writes += 1;
        Writing { store: self.clone(), label, id: id.clone(), finished: false }
    }
}

impl Inner {
    /// The label as it is shared by all its objects.
    fn view_label(&self, label: &str) -> Arc<str> {
        self.views.get_key_value(label).map_or_else(|| label.into(), |(known, _)| known.clone())
    }

    fn view(&mut self, label: &str, owner: impl FnOnce() -> SyncName) -> &mut View {
        let (label, notary) = (self.view_label(label), self.notary.clone());
        self.views.entry(label).or_insert_with(|| View {
            owner: owner(),
            notary,
            checked: Checked::default(),
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
            view.gone(id, version);
        }
    }
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// The version of an event; one without a version that is a number is the newest.
fn version(object: &Object) -> u64 {
    let text = object.metadata("resourceVersion").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

/// True for what has nothing of ours but the label.
fn is_foreign(seen: &Observed) -> bool {
    !seen.applied_by_us && matches!(seen.mark, Mark::None | Mark::Copied)
}

/// What was seen of an apply no longer counts.
fn unverify(seen: &mut Observed) {
    if seen.standing == Standing::Verified {
        seen.standing = Standing::Unverified;
    }
}

/// The Sync that a label stands for. A hashed one says nothing by itself, but the identity beside it does.
fn owner(label: &str, object: &Object) -> Option<SyncName> {
    let identity = object.annotation(api::ID_ANNOTATION).and_then(|identity| {
        let (namespace, name) = identity.split_once('|')?.0.split_once('/')?;
        Some(SyncName::new(namespace, name))
    });
    let plain = label.split_once('.').map(|(namespace, name)| SyncName::new(namespace, name));
    plain.or(identity).filter(|owner| owner.label() == label)
}

/// An object of which only the metadata is at hand.
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

    /// What is known of an object: its version and whether it is verified.
    fn known(store: &Store, name: &str) -> Option<(String, bool)> {
        let id = map(name, 0).id;
        store.read(&owner(), BTreeSet::new(), |set| {
            let seen = set.get(&id)?;
            Some((seen.resource_version.to_string(), seen.standing == Standing::Verified))
        })
    }

    fn some(version: &str, verified: bool) -> Option<(String, bool)> {
        Some((version.to_owned(), verified))
    }

    #[test]
    fn a_list_is_believed_where_the_watch_told_nothing() {
        let (store, kind) = (Store::default(), GroupKind::new("", "ConfigMap"));
        for (name, version) in [("kept", 10), ("lost", 20), ("newer", 40)] {
            let object = map(name, version);
            store.writing(&owner(), &object.id).applied(&object);
        }
        let told = HashSet::from([map("kept", 10).id]);
        store.only(&kind, None, &told, 30);
        store.distrust_after(&kind, 30, Vec::new());
        assert_eq!(known(&store, "kept"), some("10", true));
        assert_eq!(known(&store, "lost"), None, "nobody but the reply to our apply ever told of it");
        assert_eq!(known(&store, "newer"), some("", false), "the list is older than this one");
        assert_eq!(store.lost(&owner()).len(), 1);
    }

    #[test]
    fn what_controllers_make_with_our_label_wakes_nobody() {
        let store = Store::default();
        let wakes = |object: Object| {
            store.seen(object);
            futures::FutureExt::now_or_never(store.wake(&owner()).notified()).is_some()
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
        store.seen(map("a", 10));
        let mut other = map("a", 20);
        other.body["metadata"]["labels"] = json!({"moorline.dev/sync": "x"});
        store.seen(other);
        assert_eq!((known(&store, "a"), store.lost(&owner()).len()), (None, 1));
        store.seen(map("a", 30));
        assert_eq!(known(&store, "a"), some("30", false), "and it comes back");
    }

    #[test]
    fn a_list_that_is_older_than_what_is_known_is_of_another_history() {
        let (store, kind) = (Store::default(), GroupKind::new("", "ConfigMap"));
        let object = map("a", 20);
        store.writing(&owner(), &object.id).applied(&object);
        let older = store.seen(map("a", 10));
        assert!(older.is_some(), "an event by itself may be late");
        assert_eq!(known(&store, "a"), some("20", true));
        store.distrust_after(&kind, 30, older.into_iter().collect());
        assert_eq!(known(&store, "a"), some("10", false));
    }
}
