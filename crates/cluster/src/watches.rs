//! Which watches are open: one for each kind that a Sync uses, shared by all Syncs of the identity.
//!
//! In: what each Sync needs. Out: what is still being listed. A watch whose last user is gone ends. Where the rights
//! do not reach over the whole cluster, there is one watch for each namespace in use instead.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::kinds::Kinds;
use super::store::{Store, object};
use super::watch::{self, Event, Target};
use super::wire::{Failure, Wire};
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::{GroupKind, Object};
use moorline_engine::desired::Scope;

/// The watches of one identity.
pub(super) struct Watches {
    wire: Wire,
    store: Store,
    open: Arc<Mutex<HashMap<Key, Open>>>,
    /// Told whenever a watch has listed everything or cannot.
    told: Arc<tokio::sync::watch::Sender<()>>,
}

/// A kind, and a namespace where all of the cluster may not be seen.
type Key = (GroupKind, Option<Box<str>>);

struct Open {
    state: State,
    users: HashSet<SyncName>,
    /// Where its objects are: another version of the kind has another place.
    path: String,
    /// The users who have not asked for the server's kinds since they looked in vain, each with where that was.
    misplaced: HashMap<SyncName, String>,
    task: AbortHandle,
}

/// How much a watch has told.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    Listing,
    Listed,
    /// Why nothing is seen.
    Blind(Failure),
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What one Sync needs to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Need {
    /// The kinds of its objects.
    pub kinds: BTreeSet<GroupKind>,
    /// The namespaces of its objects.
    pub namespaces: BTreeSet<Box<str>>,
}

impl Watches {
    pub(super) fn new(wire: Wire, store: Store) -> Self {
        Self { wire, store, open: Arc::default(), told: Arc::new(tokio::sync::watch::Sender::new(())) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens what the Sync needs and is not open, and closes what nobody needs any more; true if anything was opened.
    pub(super) fn require(&self, user: &SyncName, need: &Need, kinds: &Kinds) -> bool {
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
            // What is known of a kind that is served no more is kept until it is needed no more.
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

    /// Lists everything anew, as if nothing had been seen yet.
    pub(super) fn begin_anew(&self, kinds: &Kinds) {
        let mut open = self.lock();
        for (key, watch) in open.iter_mut().filter(|(key, _)| kinds.get(&key.0).is_some()) {
            self.replace(key, watch, kinds);
        }
    }

    fn replace(&self, key: &Key, watch: &mut Open, kinds: &Kinds) {
        let mut anew = self.begin(key.clone(), kinds);
        anew.users = std::mem::take(&mut watch.users);
        // The first who asks has the place changed; the others are to hear of it, too.
        anew.misplaced = std::mem::take(&mut watch.misplaced);
        *watch = anew;
    }

    /// True if a kind of a Sync is not served where it was. That is seen where nobody may see definitions, and where one changed
    /// after the server was asked for its kinds and before definitions were watched.
    pub(super) fn is_misplaced(&self, user: &SyncName, kinds: &Kinds) -> bool {
        let open = self.lock();
        // Nothing better is known of a kind that is served no more.
        open.iter().any(|((kind, _), watch)| watch.misplaced.contains_key(user) && kinds.get(kind).is_some())
    }

    /// The kinds of a Sync that are not served where they were, and are elsewhere now; each is told once.
    pub(super) fn moved(&self, user: &SyncName, kinds: &Kinds) -> Vec<GroupKind> {
        let mut open = self.lock();
        let served = open.iter_mut().filter(|((kind, _), _)| kinds.get(kind).is_some());
        let told = served.filter_map(|(key, watch)| {
            let before = watch.misplaced.remove(user)?;
            (before != place(key, kinds).0).then(|| key.0.clone())
        });
        told.collect()
    }

    /// The kinds that are seen everywhere. What somebody asked to see and may not is not among them.
    pub(super) fn kinds(&self) -> BTreeSet<GroupKind> {
        let open = self.lock();
        let seen = open.iter().filter(|((_, place), watch)| place.is_none() && watch.state == State::Listed);
        seen.map(|((kind, _), _)| kind.clone()).collect()
    }

    /// Closes what only this Sync needed.
    pub(super) fn release(&self, user: &SyncName) {
        self.lock().retain(|_, watch| {
            watch.users.remove(user);
            watch.misplaced.remove(user);
            !watch.users.is_empty()
        });
    }

    /// The kinds of which not everything is known to a Sync: they are being listed, or cannot be.
    pub(super) fn unlisted(&self, user: &SyncName, kinds: &Kinds) -> BTreeSet<GroupKind> {
        let open = self.lock();
        let watched: HashSet<&GroupKind> = open.keys().map(|(kind, _)| kind).collect();
        let blind = watched.into_iter().filter(|kind| sight(&open, user, kind) != State::Listed);
        // A kind that is served no more has no objects; one whose server is down may have any.
        blind.filter(|kind| kinds.get(kind).is_some() || kinds.is_stale(&kind.group)).cloned().collect()
    }

    /// Waits until each of these kinds was listed or cannot be; the latter with the reasons.
    pub(super) async fn listed(
        &self,
        user: &SyncName,
        need: &Need,
        within: Duration,
    ) -> Vec<(GroupKind, Failure)> {
        let mut told = self.told.subscribe();
        let wait = async {
            loop {
                let waiting = {
                    let open = self.lock();
                    let is_waiting = |kind: &GroupKind| sight(&open, user, kind) == State::Listing;
                    open.keys().any(|(kind, _)| need.kinds.contains(kind) && is_waiting(kind))
                };
                if !waiting || told.changed().await.is_err() {
                    return;
                }
            }
        };
        // What is not listed by then is told as such.
        let _ = tokio::time::timeout(within, wait).await;
        let open = self.lock();
        let watched: BTreeSet<&GroupKind> = open.keys().map(|(kind, _)| kind).collect();
        let of_need = watched.into_iter().filter(|kind| need.kinds.contains(*kind));
        of_need
            .filter_map(|kind| match sight(&open, user, kind) {
                State::Listed => None,
                State::Listing => Some((kind.clone(), Failure::Timeout(within))),
                State::Blind(failure) => Some((kind.clone(), failure)),
            })
            .collect()
    }

    fn begin(&self, key: Key, kinds: &Kinds) -> Open {
        let (kind, namespace) = key.clone();
        let served = kinds.get(&kind);
        let (path, version) = place(&key, kinds);
        let watchable = served.is_none_or(|served| served.watchable);
        let selector = format!("labelSelector={}", super::query(SYNC_LABEL));
        let patient = namespace.is_none() && served.is_some_and(|served| served.scope == Scope::Namespaced);
        let target =
            Target { kind, namespace, patient, path: path.clone(), selector, whole: false, watchable };
        let sink = Sink {
            target: target.clone(),
            version,
            key,
            store: self.store.clone(),
            open: self.open.clone(),
            told: self.told.clone(),
            listing: None,
            older: Vec::new(),
        };
        let task = tokio::spawn(watch::follow(self.wire.clone(), target, sink.into_fn()));
        let (users, misplaced) = (HashSet::new(), HashMap::new());
        Open { state: State::Listing, users, misplaced, path, task: task.abort_handle() }
    }
}

/// Where objects are listed, and in which version.
fn place((kind, namespace): &Key, kinds: &Kinds) -> (String, Box<str>) {
    let Some(served) = kinds.get(kind) else { return (String::new(), "v1".into()) };
    let version = served.preferred();
    (served.collection(&kind.group, version, namespace.as_deref()), version.into())
}

/// How much of a kind a Sync sees: all of it, or else what is in each of its namespaces.
fn sight(open: &HashMap<Key, Open>, user: &SyncName, kind: &GroupKind) -> State {
    let everywhere = open.get(&(kind.clone(), None)).map(|watch| watch.state.clone());
    if everywhere == Some(State::Listed) {
        return State::Listed;
    }
    let narrow = open
        .iter()
        .filter(|((of, place), watch)| of == kind && place.is_some() && watch.users.contains(user));
    let mut states: Vec<&State> = narrow.map(|(_, watch)| &watch.state).collect();
    // What cannot be seen says more than what is not seen yet.
    states.sort_by_key(|state| match state {
        State::Blind(_) => 0,
        State::Listing => 1,
        State::Listed => 2,
    });
    states.first().map(|state| (*state).clone()).or(everywhere).unwrap_or(State::Listing)
}

/// Where the events of one watch go.
struct Sink {
    target: Target,
    version: Box<str>,
    key: Key,
    store: Store,
    open: Arc<Mutex<HashMap<Key, Open>>>,
    told: Arc<tokio::sync::watch::Sender<()>>,
    /// What was told since the beginning, as long as not everything is.
    listing: Option<HashSet<moorline_core::object::ObjectId>>,
    /// What was told meanwhile and is older than what was known.
    older: Vec<Object>,
}

impl Sink {
    fn into_fn(mut self) -> impl FnMut(Event) {
        move |event| self.take(event)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Begins => {
                self.listing = Some(HashSet::new());
                self.older.clear();
                self.become_(State::Listing);
            }
            Event::Seen(seen) => {
                if let Some(object) = object(&self.target.kind, &self.version, seen) {
                    if let Some(listing) = &mut self.listing {
                        listing.insert(object.id.clone());
                    }
                    let older = self.store.seen(object);
                    self.older.extend(older.filter(|_| self.listing.is_some()));
                }
            }
            Event::Gone(seen) => {
                if let Some(object) = object(&self.target.kind, &self.version, seen) {
                    self.store.gone(&object);
                }
            }
            Event::Listed(version) => {
                if let Some(told) = self.listing.take() {
                    let place = self.target.namespace.as_deref();
                    self.store.only(&self.target.kind, place, &told, version);
                    let older = std::mem::take(&mut self.older);
                    self.store.distrust_after(&self.target.kind, version, older);
                }
                self.become_(State::Listed);
            }
            Event::Rewound | Event::Upgraded => {}
            Event::Broken(failure) => self.broke(failure),
        }
    }

    fn broke(&self, failure: Failure) {
        if failure.code() == Some(404) {
            self.lose_its_place();
        }
        // What was listed before is as good as it was; deletions look at the object itself once more.
        if self.state() != Some(State::Listed) {
            self.become_(State::Blind(failure));
        }
    }

    /// Has the users ask for the server's kinds, once until they have.
    fn lose_its_place(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watch) = open.get_mut(&self.key) else { return };
        let Open { users, misplaced, path, .. } = watch;
        let is_news = |user: &&SyncName| misplaced.insert((*user).clone(), path.clone()).is_none();
        let told: Vec<SyncName> = users.iter().filter(is_news).cloned().collect();
        drop(open);
        told.iter().for_each(|user| self.store.wake(user).notify_one());
    }

    fn state(&self) -> Option<State> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&self.key).map(|watch| watch.state.clone())
    }

    fn become_(&self, state: State) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watch) = open.get_mut(&self.key) else { return };
        // That it is tried again is no news as long as it fails in the same way.
        if matches!((&watch.state, &state), (State::Blind(_), State::Listing)) || watch.state == state {
            return;
        }
        watch.state = state;
        drop(open);
        self.told.send_replace(());
        self.store.wake_all();
    }
}

impl State {
    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Blind(failure) if failure.code() == Some(403))
    }
}
