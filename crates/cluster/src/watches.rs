//! Open watches of one identity: one for each kind in use, shared by all Syncs.
//!
//! In: the requirements of each Sync.
//! Out: kinds that are still being listed. A watch without users ends. Without cluster-wide rights
//! there is one watch for each namespace in use instead.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::kinds::Kinds;
use super::store::{Store, object};
use super::watch::{self, WatchEvent, WatchTarget};
use crate::api_client::ApiClient;
use crate::api_error::ApiError;
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::{GroupKind, Object};
use moorline_engine::desired::Scope;

/// The watches of one identity.
pub(super) struct Watches {
    wire: ApiClient,
    store: Store,
    open: Arc<Mutex<HashMap<Key, OpenWatch>>>,
    /// Notified whenever a watch has listed everything or has failed to.
    state_changes: Arc<tokio::sync::watch::Sender<()>>,
}

/// A kind, and a namespace if the kind cannot be watched in the whole cluster.
type Key = (GroupKind, Option<Box<str>>);

struct OpenWatch {
    state: ListState,
    users: HashSet<SyncName>,
    /// Path of the collection, which differs between versions of the kind.
    path: String,
    /// Users that have not run discovery since a request got 404, each with the path of that
    /// request.
    misplaced: HashMap<SyncName, String>,
    task: AbortHandle,
}

/// Progress of a watch.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ListState {
    Listing,
    Listed,
    /// Reason for the failure.
    Blind(ApiError),
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watch requirements of one Sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchRequirements {
    /// The kinds of its objects.
    pub kinds: BTreeSet<GroupKind>,
    /// The namespaces of its objects.
    pub namespaces: BTreeSet<Box<str>>,
}

impl Watches {
    pub(super) fn new(wire: ApiClient, store: Store) -> Self {
        Self {
            wire,
            store,
            open: Arc::default(),
            state_changes: Arc::new(tokio::sync::watch::Sender::new(())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, OpenWatch>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the watches that the Sync needs, and closes unused ones; true if any was opened.
    pub(super) fn require(&self, user: &SyncName, need: &WatchRequirements, kinds: &Kinds) -> bool {
        let mut open = self.lock();
        let mut wanted = HashSet::new();
        for kind in &need.kinds {
            let Some(served) = kinds.get(kind) else { continue };
            let narrow = served.scope == Scope::Namespaced
                && open.get(&(kind.clone(), None)).is_some_and(|watch| watch.state.is_forbidden());
            if narrow {
                wanted.extend(need.namespaces.iter().map(|place| (kind.clone(), Some(place.clone()))));
            }
            wanted.insert((kind.clone(), None));
        }
        open.retain(|key, watch| {
            // Objects of a kind that is not served any more are kept until no Sync needs them.
            let unserved = kinds.get(&key.0).is_none() && need.kinds.contains(&key.0);
            if !wanted.contains(key) && !unserved {
                watch.users.remove(user);
                watch.misplaced.remove(user);
            }
            !watch.users.is_empty()
        });
        let before = open.len();
        let mut moved = false;
        for key in wanted {
            let watch = open.entry(key.clone()).or_insert_with(|| self.begin(key.clone(), kinds));
            watch.users.insert(user.clone());
            if watch.path != place(&key, kinds).0 {
                self.replace(&key, watch, kinds);
                moved = true;
            }
        }
        moved || open.len() > before
    }

    /// Opens the watches that the Sync needs, and waits until they have listed everything. Returns
    /// the kinds that could not be listed.
    pub(super) async fn ensure(
        &self,
        owner: &SyncName,
        need: &WatchRequirements,
        kinds: &Kinds,
        within: Duration,
    ) -> Vec<(GroupKind, ApiError)> {
        self.require(owner, need, kinds);
        let blind = self.listed(owner, need, within).await;
        // Without the right to list the whole cluster, the namespaces in use may be allowed.
        let forbidden = blind.iter().any(|(_, failure)| failure.code() == Some(403));
        match forbidden && self.require(owner, need, kinds) {
            true => self.listed(owner, need, within).await,
            false => blind,
        }
    }

    /// Lists everything again, as on the first start.
    pub(super) fn restart(&self, kinds: &Kinds) {
        let mut open = self.lock();
        for (key, watch) in open.iter_mut().filter(|(key, _)| kinds.get(&key.0).is_some()) {
            self.replace(key, watch, kinds);
        }
    }

    fn replace(&self, key: &Key, watch: &mut OpenWatch, kinds: &Kinds) {
        let mut anew = self.begin(key.clone(), kinds);
        anew.users = std::mem::take(&mut watch.users);
        // The first Sync that asks has the path changed; the others must be notified as well.
        anew.misplaced = std::mem::take(&mut watch.misplaced);
        *watch = anew;
    }

    /// True if a kind of a Sync is not served at its path any more. That is noticed here if
    /// definitions may not be watched, or if one changed between discovery and the start of their
    /// watch.
    pub(super) fn is_misplaced(&self, user: &SyncName, kinds: &Kinds) -> bool {
        let open = self.lock();
        // There is no better path for a kind that is not served any more.
        open.iter().any(|((kind, _), watch)| watch.misplaced.contains_key(user) && kinds.get(kind).is_some())
    }

    /// Returns the kinds of a Sync that have moved to another path; each is reported once.
    pub(super) fn moved(&self, user: &SyncName, kinds: &Kinds) -> Vec<GroupKind> {
        let mut open = self.lock();
        let served = open.iter_mut().filter(|((kind, _), _)| kinds.get(kind).is_some());
        let moved = served.filter_map(|(key, watch)| {
            let before = watch.misplaced.remove(user)?;
            (before != place(key, kinds).0).then(|| key.0.clone())
        });
        moved.collect()
    }

    /// Returns the kinds that are watched in the whole cluster. Forbidden kinds are not among them.
    pub(super) fn kinds(&self) -> BTreeSet<GroupKind> {
        let open = self.lock();
        let seen =
            open.iter().filter(|((_, place), watch)| place.is_none() && watch.state == ListState::Listed);
        seen.map(|((kind, _), _)| kind.clone()).collect()
    }

    /// Closes the watches that only this Sync used.
    pub(super) fn release(&self, user: &SyncName) {
        self.lock().retain(|_, watch| {
            watch.users.remove(user);
            watch.misplaced.remove(user);
            !watch.users.is_empty()
        });
    }

    /// Returns the kinds that are incomplete for a Sync: they are being listed, or cannot be
    /// listed.
    pub(super) fn unlisted(&self, user: &SyncName, kinds: &Kinds) -> BTreeSet<GroupKind> {
        let open = self.lock();
        let watched: HashSet<&GroupKind> = open.keys().map(|(kind, _)| kind).collect();
        let blind = watched.into_iter().filter(|kind| sight(&open, user, kind) != ListState::Listed);
        // A kind that is not served any more has no objects; one whose server is down may have
        // some.
        blind.filter(|kind| kinds.get(kind).is_some() || kinds.is_stale(&kind.group)).cloned().collect()
    }

    /// Waits until each of these kinds is listed or has failed; returns the latter with the errors.
    pub(super) async fn listed(
        &self,
        user: &SyncName,
        need: &WatchRequirements,
        within: Duration,
    ) -> Vec<(GroupKind, ApiError)> {
        let mut changes = self.state_changes.subscribe();
        let wait = async {
            loop {
                let waiting = {
                    let open = self.lock();
                    let is_waiting = |kind: &GroupKind| sight(&open, user, kind) == ListState::Listing;
                    open.keys().any(|(kind, _)| need.kinds.contains(kind) && is_waiting(kind))
                };
                if !waiting || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // Kinds that are not listed by then are reported as timed out.
        let _ = tokio::time::timeout(within, wait).await;
        let open = self.lock();
        let watched: BTreeSet<&GroupKind> = open.keys().map(|(kind, _)| kind).collect();
        let of_need = watched.into_iter().filter(|kind| need.kinds.contains(*kind));
        of_need
            .filter_map(|kind| match sight(&open, user, kind) {
                ListState::Listed => None,
                ListState::Listing => Some((kind.clone(), ApiError::Timeout(within))),
                ListState::Blind(failure) => Some((kind.clone(), failure)),
            })
            .collect()
    }

    fn begin(&self, key: Key, kinds: &Kinds) -> OpenWatch {
        let (kind, namespace) = key.clone();
        let served = kinds.get(&kind);
        let (path, version) = place(&key, kinds);
        let watchable = served.is_none_or(|served| served.watchable);
        let selector = format!("labelSelector={}", super::query(SYNC_LABEL));
        let patient = namespace.is_none() && served.is_some_and(|served| served.scope == Scope::Namespaced);
        let target =
            WatchTarget { kind, namespace, patient, path: path.clone(), selector, whole: false, watchable };
        let sink = ObjectSink {
            target: target.clone(),
            version,
            key,
            store: self.store.clone(),
            open: self.open.clone(),
            state_changes: self.state_changes.clone(),
            listing: None,
            older: Vec::new(),
        };
        let task = tokio::spawn(watch::follow(self.wire.clone(), target, sink.into_fn()));
        let (users, misplaced) = (HashSet::new(), HashMap::new());
        OpenWatch { state: ListState::Listing, users, misplaced, path, task: task.abort_handle() }
    }
}

/// Returns the path at which objects are listed, and the version.
fn place((kind, namespace): &Key, kinds: &Kinds) -> (String, Box<str>) {
    let Some(served) = kinds.get(kind) else { return (String::new(), "v1".into()) };
    let version = served.preferred();
    (served.collection(&kind.group, version, namespace.as_deref()), version.into())
}

/// Returns the state of a kind for a Sync: of the cluster-wide watch, or else of its namespaces.
fn sight(open: &HashMap<Key, OpenWatch>, user: &SyncName, kind: &GroupKind) -> ListState {
    let everywhere = open.get(&(kind.clone(), None)).map(|watch| watch.state.clone());
    if everywhere == Some(ListState::Listed) {
        return ListState::Listed;
    }
    let narrow = open
        .iter()
        .filter(|((of, place), watch)| of == kind && place.is_some() && watch.users.contains(user));
    let mut states: Vec<&ListState> = narrow.map(|(_, watch)| &watch.state).collect();
    // A failed watch takes precedence over one that is not listed yet.
    states.sort_by_key(|state| match state {
        ListState::Blind(_) => 0,
        ListState::Listing => 1,
        ListState::Listed => 2,
    });
    states.first().map(|state| (*state).clone()).or(everywhere).unwrap_or(ListState::Listing)
}

/// Receives the events of one watch.
struct ObjectSink {
    target: WatchTarget,
    version: Box<str>,
    key: Key,
    store: Store,
    open: Arc<Mutex<HashMap<Key, OpenWatch>>>,
    state_changes: Arc<tokio::sync::watch::Sender<()>>,
    /// Objects seen since the list began; none once it is complete.
    listing: Option<HashSet<moorline_core::object::ObjectId>>,
    /// Listed objects that are older than the store's entries.
    older: Vec<Object>,
}

impl ObjectSink {
    fn into_fn(mut self) -> impl FnMut(WatchEvent) {
        move |event| self.take(event)
    }

    fn take(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Begins => {
                self.listing = Some(HashSet::new());
                self.older.clear();
                self.set_state(ListState::Listing);
            }
            WatchEvent::Seen(seen) => {
                if let Some(object) = object(&self.target.kind, &self.version, seen) {
                    if let Some(listing) = &mut self.listing {
                        listing.insert(object.id.clone());
                    }
                    let older = match self.listing {
                        Some(_) => self.store.on_listed(object),
                        None => self.store.on_seen(object),
                    };
                    self.older.extend(older.filter(|_| self.listing.is_some()));
                }
            }
            WatchEvent::Gone(seen) => {
                if let Some(object) = object(&self.target.kind, &self.version, seen) {
                    self.store.on_deleted(&object);
                }
            }
            WatchEvent::Listed(version) => {
                if let Some(listed) = self.listing.take() {
                    let place = self.target.namespace.as_deref();
                    self.store.complete_list(&self.target.kind, place, &listed, version);
                    let older = std::mem::take(&mut self.older);
                    self.store.mark_newer_unverified(&self.target.kind, version, older);
                }
                self.set_state(ListState::Listed);
            }
            WatchEvent::Rewound | WatchEvent::Upgraded => {}
            WatchEvent::Broken(failure) => self.broke(failure),
        }
    }

    fn broke(&self, failure: ApiError) {
        if failure.code() == Some(404) {
            self.mark_misplaced();
        }
        // The previous list stays valid; deletions read the object itself again.
        if self.state() != Some(ListState::Listed) {
            self.set_state(ListState::Blind(failure));
        }
    }

    /// Makes the users run discovery, once each.
    fn mark_misplaced(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watch) = open.get_mut(&self.key) else { return };
        let OpenWatch { users, misplaced, path, .. } = watch;
        let is_news = |user: &&SyncName| misplaced.insert((*user).clone(), path.clone()).is_none();
        let affected: Vec<SyncName> = users.iter().filter(is_news).cloned().collect();
        drop(open);
        affected.iter().for_each(|user| self.store.changed_notify(user).notify_one());
    }

    fn state(&self) -> Option<ListState> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&self.key).map(|watch| watch.state.clone())
    }

    fn set_state(&self, state: ListState) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watch) = open.get_mut(&self.key) else { return };
        // A retry is no change while it fails in the same way.
        if matches!((&watch.state, &state), (ListState::Blind(_), ListState::Listing)) || watch.state == state
        {
            return;
        }
        watch.state = state;
        drop(open);
        self.state_changes.send_replace(());
        self.store.wake_all();
    }
}

impl ListState {
    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Blind(failure) if failure.code() == Some(403))
    }
}
