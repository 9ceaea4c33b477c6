//! Finds objects whose replicas are set by a HorizontalPodAutoscaler or a KEDA ScaledObject.
//!
//! In: the namespaces of a Sync.
//! Out: the autoscaled objects in them. The metadata of autoscalers is watched, with one watch for
//! each namespace in use and each kind that the server serves, and an autoscaler is read again when
//! its spec may have changed. Without the right to watch them there are none; during an outage the
//! result is unknown.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Map, Value};
use tokio::task::AbortHandle;

use super::kinds::{Kinds, ServedKind, escape};
use super::store::Store;
use super::watch::{self, WatchEvent, WatchTarget};
use super::watches::ListState;
use crate::api_client::{ApiClient, ApiRequest, METADATA_LIST};
use crate::api_error::ApiError;
use moorline_api::SyncName;
use moorline_core::object::{GroupKind, ObjectId};
use moorline_engine::desired::{AUTOSCALERS, scale_target};
use moorline_engine::observed::ChangeStamp;
use moorline_metrics::RequestClass;

/// Maximum number of concurrent reads.
const SIDE_BY_SIDE: usize = 8;
/// Maximum number of repeated reads of autoscalers that change while they are read.
const MAX_ROUNDS: usize = 3;
/// Without a list within this time, the autoscalers count as unknown for now.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Autoscaled objects in the requested namespaces.
#[derive(Debug, Default)]
pub struct AutoscaledObjects {
    /// The autoscaled objects.
    pub targets: BTreeSet<ObjectId>,
    /// Namespaces that cannot be read for now, with the error.
    pub unknown_namespaces: BTreeMap<Box<str>, ApiError>,
}

/// Autoscalers as one identity sees them.
pub struct Autoscalers {
    wire: ApiClient,
    store: Store,
    open: Open,
    /// Notified whenever a watch has listed everything or has failed to.
    state_changes: Arc<tokio::sync::watch::Sender<()>>,
    /// Held while autoscalers are read, so that each is read once.
    reading: tokio::sync::Mutex<()>,
}

type Open = Arc<Mutex<HashMap<Spot, AutoscalerWatch>>>;

/// Key of a watch: a kind in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Spot {
    kind: GroupKind,
    namespace: Box<str>,
}

/// State of one watch.
struct AutoscalerWatch {
    state: ListState,
    users: HashSet<SyncName>,
    /// Path of the collection.
    path: String,
    scalers: BTreeMap<Box<str>, Scaler>,
    task: AbortHandle,
}

struct Scaler {
    stamp: ChangeStamp,
    /// Its spec may differ from the one that was read.
    changed: bool,
    target: Option<ObjectId>,
}

impl Drop for AutoscalerWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the kinds of autoscalers that the server serves.
fn served(kinds: &Kinds) -> Vec<(GroupKind, &ServedKind)> {
    let all = AUTOSCALERS.iter().map(|(group, kind)| GroupKind::new(group, kind));
    let served = |kind: GroupKind| Some((kind.clone(), kinds.get(&kind).filter(|it| it.watchable)?));
    all.filter_map(served).collect()
}

/// Returns the names of the Syncs that use a watch, for log lines.
fn users(open: &Open, spot: &Spot) -> String {
    let open = lock(open);
    let users = open.get(spot).into_iter().flat_map(|place| &place.users).map(ToString::to_string);
    users.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

fn lock(open: &Open) -> MutexGuard<'_, HashMap<Spot, AutoscalerWatch>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Autoscalers {
    pub(super) fn new(wire: ApiClient, store: Store) -> Self {
        let state_changes = Arc::new(tokio::sync::watch::Sender::new(()));
        Self { wire, store, open: Open::default(), state_changes, reading: tokio::sync::Mutex::default() }
    }

    /// Watches exactly these namespaces for a Sync.
    pub(super) fn require(&self, user: &SyncName, namespaces: &BTreeSet<Box<str>>, kinds: &Kinds) {
        let mut open = lock(&self.open);
        let served = served(kinds);
        open.retain(|spot, place| {
            if !namespaces.contains(&spot.namespace) || served.iter().all(|(kind, _)| *kind != spot.kind) {
                place.users.remove(user);
            }
            !place.users.is_empty()
        });
        for (kind, served) in served {
            for namespace in namespaces {
                let spot = Spot { kind: kind.clone(), namespace: namespace.clone() };
                let place = open.entry(spot.clone()).or_insert_with(|| {
                    let path = served.collection(&kind.group, served.preferred(), Some(namespace));
                    self.begin(&spot, path)
                });
                place.users.insert(user.clone());
            }
        }
    }

    /// Lists everything again, as on the first start.
    pub(super) fn restart(&self) {
        for (spot, place) in lock(&self.open).iter_mut() {
            let mut anew = self.begin(spot, place.path.clone());
            anew.users = std::mem::take(&mut place.users);
            *place = anew;
        }
    }

    fn begin(&self, spot: &Spot, path: String) -> AutoscalerWatch {
        let target = WatchTarget {
            kind: spot.kind.clone(),
            namespace: Some(spot.namespace.clone()),
            // A missing right stays missing for long, and nothing waits for this watch.
            patient: true,
            path: path.clone(),
            selector: "labelSelector=".to_owned(),
            whole: false,
            watchable: true,
        };
        let (open, store, state_changes) =
            (self.open.clone(), self.store.clone(), self.state_changes.clone());
        let mut sink = AutoscalerSink { spot: spot.clone(), open, store, state_changes, listing: None };
        let task = tokio::spawn(watch::follow(self.wire.clone(), target, move |event| sink.take(event)));
        AutoscalerWatch {
            state: ListState::Listing,
            users: HashSet::new(),
            path,
            scalers: BTreeMap::new(),
            task: task.abort_handle(),
        }
    }

    /// Returns the autoscaled objects in these namespaces, after reading all autoscalers that can
    /// be read.
    pub(super) async fn targets(&self, namespaces: &BTreeSet<Box<str>>) -> AutoscaledObjects {
        let mut unseen = self.listed(namespaces).await;
        let _turn = self.reading.lock().await;
        for _ in 0..MAX_ROUNDS {
            let changed = self.changed(|it| namespaces.contains(it) && !unseen.contains_key(it));
            if changed.is_empty() {
                break;
            }
            let reads = futures::stream::iter(changed).map(|(spot, name, uri)| async move {
                let found = self.read(&spot, &name, uri).await;
                (spot, name, found)
            });
            let found: Vec<_> = reads.buffer_unordered(SIDE_BY_SIDE).collect().await;
            for (spot, name, found) in found {
                match found {
                    Ok(found) => self.learn(&spot, &name, found),
                    Err(failure) => drop(unseen.insert(spot.namespace, failure)),
                }
            }
        }
        let open = lock(&self.open);
        let places = open.iter().filter(|(spot, _)| namespaces.contains(&spot.namespace));
        let targets = places.flat_map(|(_, place)| place.scalers.values().filter_map(|it| it.target.clone()));
        AutoscaledObjects { targets: targets.collect(), unknown_namespaces: unseen }
    }

    /// Returns an autoscaler of this object, or one that was not read yet.
    pub fn of(&self, id: &ObjectId) -> Option<ObjectId> {
        let namespace = id.namespace()?;
        let open = lock(&self.open);
        let scales = |it: &Scaler| it.changed || it.target.as_ref() == Some(id);
        open.iter().filter(|(spot, _)| &*spot.namespace == namespace).find_map(|(spot, place)| {
            let (name, _) = place.scalers.iter().find(|(_, it)| scales(it))?;
            ObjectId::new(&spot.kind.group, &spot.kind.kind, namespace, name).ok()
        })
    }

    /// Waits until each of these namespaces was listed or is forbidden; returns the others with
    /// their errors.
    async fn listed(&self, namespaces: &BTreeSet<Box<str>>) -> BTreeMap<Box<str>, ApiError> {
        let mut state_changes = self.state_changes.subscribe();
        let states = || -> Vec<(Box<str>, ListState)> {
            let open = lock(&self.open);
            let wanted = open.iter().filter(|(spot, _)| namespaces.contains(&spot.namespace));
            wanted.map(|(spot, place)| (spot.namespace.clone(), place.state.clone())).collect()
        };
        let wait = async {
            while states().iter().any(|(_, state)| *state == ListState::Listing) {
                if state_changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // Results that arrive later notify the Syncs then.
        let _ = tokio::time::timeout(LIST_TIMEOUT, wait).await;
        let unseen = states().into_iter().filter_map(|(namespace, state)| match state {
            ListState::Blind(failure) if !is_forbidden(&failure) => Some((namespace, failure)),
            ListState::Listing => Some((namespace, ApiError::Timeout(LIST_TIMEOUT))),
            ListState::Blind(_) | ListState::Listed => None,
        });
        unseen.collect()
    }

    /// Returns the autoscalers to read in some namespaces, with their paths.
    fn changed(&self, is_meant: impl Fn(&Box<str>) -> bool) -> Vec<(Spot, Box<str>, String)> {
        let open = lock(&self.open);
        let places = open.iter().filter(|(spot, _)| is_meant(&spot.namespace));
        let changed = places.flat_map(|(spot, place)| {
            let scalers = place.scalers.iter().filter(|(_, scaler)| scaler.changed);
            scalers.map(|(name, _)| (spot.clone(), name.clone(), format!("{}/{}", place.path, escape(name))))
        });
        changed.collect()
    }

    /// Reads one autoscaler; none if it is gone or may not be read.
    async fn read(&self, spot: &Spot, name: &str, uri: String) -> Result<Option<Value>, ApiError> {
        match self.wire.send(ApiRequest::new(RequestClass::Verify, "get", uri)).await {
            Ok(reply) => reply.json().map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) if is_forbidden(&failure) => {
                let (syncs, Spot { kind, namespace }) = (users(&self.open, spot), spot);
                let object = format!("{kind} {namespace}/{name}");
                tracing::warn!(syncs, object, %failure, "no permission to read this autoscaler; it is ignored");
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    fn learn(&self, spot: &Spot, name: &str, found: Option<Value>) {
        let mut open = lock(&self.open);
        let scaler = open.get_mut(spot).and_then(|place| place.scalers.get_mut(name));
        let Some(scaler) = scaler else { return };
        let stamp = found.as_ref().and_then(|it| it["metadata"].as_object()).map(ChangeStamp::from_metadata);
        scaler.target = found.as_ref().and_then(|it| scale_target(it, &spot.namespace));
        match stamp {
            // An event that arrived during the read is newer than the read.
            Some(read) if !scaler.stamp.is_not_newer_than(&read) => {}
            Some(read) => (scaler.stamp, scaler.changed) = (read, false),
            None => scaler.changed = false,
        }
    }

    /// Lists the autoscalers of a namespace, because the watches may lag behind.
    pub async fn refresh(&self, namespace: &str) -> Result<(), ApiError> {
        let paths: Vec<(Spot, String)> = {
            let open = lock(&self.open);
            let listed = |(spot, it): &(&Spot, &AutoscalerWatch)| {
                *spot.namespace == *namespace && it.state == ListState::Listed
            };
            open.iter().filter(listed).map(|(spot, it)| (spot.clone(), it.path.clone())).collect()
        };
        for (spot, path) in paths {
            let reply = self
                .wire
                .send(ApiRequest::new(RequestClass::Verify, "list", path).accept(METADATA_LIST))
                .await?;
            let list: Value = reply.json()?;
            let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
            if let Some(place) = lock(&self.open).get_mut(&spot) {
                for item in items.filter_map(Value::as_object) {
                    place.see(item);
                }
            }
        }
        Ok(())
    }

    /// Stops the watches that only this Sync used.
    pub(super) fn release(&self, user: &SyncName) {
        lock(&self.open).retain(|_, place| {
            place.users.remove(user);
            !place.users.is_empty()
        });
    }
}

fn is_forbidden(failure: &ApiError) -> bool {
    failure.code() == Some(403)
}

fn name(object: &Map<String, Value>) -> Option<&str> {
    object.get("metadata")?.get("name")?.as_str()
}

impl AutoscalerWatch {
    /// Records the current state of an autoscaler; true if it has to be read.
    fn see(&mut self, object: &Map<String, Value>) -> bool {
        let (Some(name), Some(metadata)) = (name(object), object.get("metadata").and_then(Value::as_object))
        else {
            return false;
        };
        let stamp = ChangeStamp::from_metadata(metadata);
        let Some(known) = self.scalers.get_mut(name) else {
            self.scalers.insert(name.into(), Scaler { stamp, changed: true, target: None });
            return true;
        };
        if stamp.is_not_newer_than(&known.stamp) {
            return false;
        }
        let changed = stamp.may_differ_from(&known.stamp);
        known.changed |= changed;
        known.stamp = stamp;
        changed
    }
}

/// Receives the events of one watch.
struct AutoscalerSink {
    spot: Spot,
    open: Open,
    store: Store,
    state_changes: Arc<tokio::sync::watch::Sender<()>>,
    /// Names seen since the list began; none once it is complete.
    listing: Option<HashSet<Box<str>>>,
}

impl AutoscalerSink {
    fn take(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Begins => {
                self.listing = Some(HashSet::new());
                self.change(|place| {
                    place.scalers.values_mut().for_each(|scaler| scaler.stamp.reset_version());
                    false
                });
            }
            WatchEvent::Seen(object) => {
                if let (Some(listing), Some(name)) = (&mut self.listing, name(&object)) {
                    listing.insert(name.into());
                }
                self.change(|place| place.see(&object));
            }
            WatchEvent::Gone(object) => {
                let name = name(&object).unwrap_or_default();
                self.change(|place| place.scalers.remove(name).is_some());
            }
            WatchEvent::Listed(_) => {
                let listed = self.listing.take().unwrap_or_default();
                self.change(|place| {
                    let before = place.scalers.len();
                    place.scalers.retain(|name, _| listed.contains(name));
                    let first = place.state != ListState::Listed;
                    place.state = ListState::Listed;
                    first || place.scalers.len() < before
                });
                self.state_changes.send_replace(());
            }
            // Reported only by watches on whole objects.
            WatchEvent::Rewound | WatchEvent::Upgraded => {}
            WatchEvent::Broken(failure) => {
                let state = ListState::Blind(failure.clone());
                // The previous list stays valid.
                let is_news = self.change(|place| match &place.state {
                    ListState::Listed => false,
                    known if *known == state => false,
                    ListState::Listing | ListState::Blind(_) => {
                        place.state = state;
                        true
                    }
                });
                if is_news && is_forbidden(&failure) {
                    let (Spot { kind, namespace }, syncs) = (&self.spot, users(&self.open, &self.spot));
                    tracing::warn!(syncs, %kind, %namespace, %failure, "no permission to watch autoscalers; replicas follow Git");
                }
                self.state_changes.send_replace(());
            }
        }
    }

    /// Changes the state; if that matters, notifies the Syncs that use it.
    fn change(&self, change: impl FnOnce(&mut AutoscalerWatch) -> bool) -> bool {
        let mut open = lock(&self.open);
        let Some(place) = open.get_mut(&self.spot) else { return false };
        let is_news = change(place);
        if is_news {
            place.users.iter().for_each(|user| self.store.changed_notify(user).notify_one());
        }
        is_news
    }
}
