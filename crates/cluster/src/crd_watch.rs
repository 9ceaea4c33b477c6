//! Watches CustomResourceDefinitions and reports which were added, changed or removed.
//!
//! In: subscriptions of Syncs that have objects of custom kinds.
//! Out: the [`CrdChange`]s since a Sync last took them, reported once the API server serves them.
//! One metadata watch serves all Syncs of an identity while one of them is subscribed. Without the
//! right to watch definitions there are no changes, and discovery is repeated from time to time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::task::AbortHandle;

use super::store::Store;
use super::watch::{self, WatchEvent, WatchTarget};
use crate::api_client::ApiClient;
use moorline_api::SyncName;
use moorline_core::object::GroupKind;

/// The API server sends the event of a definition before it serves the changed kind.
const SETTLE: Duration = Duration::from_millis(500);

/// Change of a CustomResourceDefinition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrdChange {
    /// The definition is new.
    Added,
    /// The definition differs from the previous one.
    Changed,
    /// The definition was deleted.
    Removed,
}

/// Changes by the names of definitions, such as `widgets.example.com`.
pub type CrdChanges = BTreeMap<Box<str>, CrdChange>;

/// Watch on the definitions that one identity may see.
pub(super) struct CrdWatch {
    wire: ApiClient,
    shared: Shared,
}

/// State shared by the watch and its subscribers.
#[derive(Clone)]
struct Shared {
    store: Store,
    open: Arc<Mutex<Option<OpenCrdWatch>>>,
}

struct OpenCrdWatch {
    users: HashMap<SyncName, CrdChanges>,
    task: AbortHandle,
}

impl Drop for OpenCrdWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CrdWatch {
    pub(super) fn new(wire: ApiClient, store: Store) -> Self {
        Self { wire, shared: Shared { store, open: Arc::default() } }
    }

    /// Subscribes a Sync to changes of definitions, or unsubscribes it.
    pub(super) fn require(&self, user: &SyncName, wanted: bool) {
        let mut open = self.shared.lock();
        match (wanted, &mut *open) {
            (true, Some(open)) => drop(open.users.entry(user.clone()).or_default()),
            (true, none) => {
                let users = HashMap::from([(user.clone(), CrdChanges::new())]);
                *none = Some(OpenCrdWatch { users, task: self.begin() });
            }
            (false, _) => {
                open.take_if(|open| {
                    open.users.remove(user);
                    open.users.is_empty()
                });
            }
        }
    }

    /// Takes the changes since the last call.
    pub(super) fn news(&self, user: &SyncName) -> CrdChanges {
        let mut open = self.shared.lock();
        let news = open.as_mut().and_then(|open| open.users.get_mut(user));
        news.map(std::mem::take).unwrap_or_default()
    }

    /// Lists everything again, as on the first start.
    pub(super) fn restart(&self) {
        if let Some(open) = &mut *self.shared.lock() {
            open.task.abort();
            open.task = self.begin();
        }
    }

    fn begin(&self) -> AbortHandle {
        let target = WatchTarget {
            kind: GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"),
            namespace: None,
            // A missing right stays missing for long, and nothing waits for this watch.
            patient: true,
            path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            selector: "labelSelector=".to_owned(),
            whole: false,
            watchable: true,
        };
        let mut known = KnownCrds::default();
        let shared = self.shared.clone();
        let sink = move |event| shared.tell(known.take(event));
        tokio::spawn(watch::follow(self.wire.clone(), target, sink)).abort_handle()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<OpenCrdWatch>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies all subscribers after [`SETTLE`].
    fn tell(&self, news: CrdChanges) {
        if news.is_empty() {
            return;
        }
        let shared = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(SETTLE).await;
            let mut open = shared.lock();
            for (user, known) in open.iter_mut().flat_map(|open| &mut open.users) {
                news.iter().for_each(|(name, news)| add(known, name, *news));
                shared.store.changed_notify(user).notify_one();
            }
        });
    }
}

/// A definition that was removed and added again may differ.
fn add(known: &mut CrdChanges, name: &str, news: CrdChange) {
    let again = news == CrdChange::Added && known.get(name).is_some_and(|before| *before != CrdChange::Added);
    known.insert(name.into(), if again { CrdChange::Changed } else { news });
}

/// Known definitions, each with its uid and its generation.
#[derive(Debug, Default)]
struct KnownCrds {
    definitions: HashMap<Box<str>, (Box<str>, i64)>,
    /// Names seen since the list began; none once it is complete.
    listing: Option<HashSet<Box<str>>>,
    /// True after the first complete list: later events are changes.
    complete: bool,
}

impl KnownCrds {
    fn take(&mut self, event: WatchEvent) -> CrdChanges {
        let news: Vec<(Box<str>, CrdChange)> = match event {
            WatchEvent::Begins => {
                self.listing = Some(HashSet::new());
                Vec::new()
            }
            WatchEvent::Seen(object) => self.see(&object).into_iter().collect(),
            WatchEvent::Gone(object) => {
                let gone = name(&object).and_then(|name| self.definitions.remove_entry(name));
                gone.map(|(name, _)| (name, CrdChange::Removed)).into_iter().collect()
            }
            WatchEvent::Listed(_) => {
                let listed = self.listing.take().unwrap_or_default();
                let gone = self.definitions.extract_if(|name, _| !listed.contains(name));
                let gone = gone.map(|(name, _)| (name, CrdChange::Removed)).collect();
                self.complete = true;
                gone
            }
            // Earlier results stay valid.
            WatchEvent::Broken(_) | WatchEvent::Rewound | WatchEvent::Upgraded => Vec::new(),
        };
        news.into_iter().filter(|_| self.complete).collect()
    }

    fn see(&mut self, object: &Map<String, Value>) -> Option<(Box<str>, CrdChange)> {
        let name: Box<str> = name(object)?.into();
        let metadata = object.get("metadata")?;
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default();
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        let now = (Box::from(uid), generation);
        match self.definitions.insert(name.clone(), now.clone()) {
            None => Some((name, CrdChange::Added)),
            Some(before) if before != now => Some((name, CrdChange::Changed)),
            Some(_) => None,
        }
    }
}

fn name(object: &Map<String, Value>) -> Option<&str> {
    object.get("metadata")?.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(name: &str, generation: i64) -> Map<String, Value> {
        let body = json!({"metadata": {"name": name, "uid": "u", "generation": generation}});
        body.as_object().unwrap().clone()
    }

    #[test]
    fn what_went_and_came_again_has_changed() {
        let after = |all: &[CrdChange]| {
            let mut known = CrdChanges::new();
            all.iter().for_each(|news| add(&mut known, "a", *news));
            known["a"]
        };
        assert_eq!(after(&[CrdChange::Added]), CrdChange::Added);
        assert_eq!(after(&[CrdChange::Removed, CrdChange::Added]), CrdChange::Changed);
        assert_eq!(after(&[CrdChange::Added, CrdChange::Removed]), CrdChange::Removed);
        assert_eq!(after(&[CrdChange::Added, CrdChange::Changed]), CrdChange::Changed);
    }

    #[test]
    fn what_was_there_from_the_beginning_is_no_news() {
        let mut known = KnownCrds::default();
        let mut take = |event: WatchEvent| known.take(event).into_iter().collect::<Vec<_>>();
        let seen = |name: &str, generation: i64| WatchEvent::Seen(definition(name, generation));
        assert_eq!(take(WatchEvent::Begins), []);
        assert_eq!(take(seen("a", 1)), []);
        assert_eq!(take(seen("b", 1)), []);
        assert_eq!(take(WatchEvent::Listed(7)), []);
        assert_eq!(take(seen("a", 1)), [], "its status");
        assert_eq!(take(seen("a", 2)), [("a".into(), CrdChange::Changed)]);
        assert_eq!(take(seen("c", 1)), [("c".into(), CrdChange::Added)]);
        assert_eq!(take(WatchEvent::Gone(definition("c", 1))), [("c".into(), CrdChange::Removed)]);
        assert_eq!(take(WatchEvent::Begins), []);
        assert_eq!(
            take(seen("a", 3)),
            [("a".into(), CrdChange::Changed)],
            "missed while the watch was broken"
        );
        assert_eq!(take(WatchEvent::Listed(9)), [("b".into(), CrdChange::Removed)]);
    }
}
