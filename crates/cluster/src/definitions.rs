//! CustomResourceDefinitions: which come, change and go.
//!
//! In: Syncs with objects of kinds that are not Kubernetes' own. Out: for each of them the [`News`] since it asked last,
//! told once the API server goes by them. One watch on metadata serves all Syncs of an identity, for as long as one
//! of them asks for it. Where definitions may not be seen there is no news, and kinds are asked for from time to time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::task::AbortHandle;

use super::store::Store;
use super::watch::{self, Event, Target};
use super::wire::Wire;
use moorline_api::SyncName;
use moorline_core::object::GroupKind;

/// The API server tells of a definition before it serves the kind in the new way.
const SETTLE: Duration = Duration::from_millis(500);

/// What has become of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// There was none of this name.
    Came,
    /// It says something else than before.
    Changed,
    /// There is none of this name any more.
    Went,
}

/// News by the names of definitions, such as `widgets.example.com`.
pub type AllNews = BTreeMap<Box<str>, News>;

/// The definitions that one identity sees.
pub(super) struct Definitions {
    wire: Wire,
    shared: Shared,
}

/// What the watch and those who ask have in common.
#[derive(Clone)]
struct Shared {
    store: Store,
    open: Arc<Mutex<Option<Open>>>,
}

struct Open {
    users: HashMap<SyncName, AllNews>,
    task: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Definitions {
    pub(super) fn new(wire: Wire, store: Store) -> Self {
        Self { wire, shared: Shared { store, open: Arc::default() } }
    }

    /// Has a Sync told of definitions from now on, or no longer.
    pub(super) fn require(&self, user: &SyncName, wanted: bool) {
        let mut open = self.shared.lock();
        match (wanted, &mut *open) {
            (true, Some(open)) => drop(open.users.entry(user.clone()).or_default()),
            (true, none) => {
                let users = HashMap::from([(user.clone(), AllNews::new())]);
                *none = Some(Open { users, task: self.begin() });
            }
            (false, _) => {
                open.take_if(|open| {
                    open.users.remove(user);
                    open.users.is_empty()
                });
            }
        }
    }

    /// What has become of definitions since this was asked last.
    pub(super) fn news(&self, user: &SyncName) -> AllNews {
        let mut open = self.shared.lock();
        let news = open.as_mut().and_then(|open| open.users.get_mut(user));
        news.map(std::mem::take).unwrap_or_default()
    }

    /// Lists everything anew, as if nothing had been seen yet.
    pub(super) fn begin_anew(&self) {
        if let Some(open) = &mut *self.shared.lock() {
            open.task.abort();
            open.task = self.begin();
        }
    }

    fn begin(&self) -> AbortHandle {
        let target = Target {
            kind: GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"),
            namespace: None,
            // A right that is missing stays missing for long, and nobody waits for it.
            patient: true,
            path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            selector: "labelSelector=".to_owned(),
            whole: false,
            watchable: true,
        };
        let mut known = Known::default();
        let shared = self.shared.clone();
        let sink = move |event| shared.tell(known.take(event));
        tokio::spawn(watch::follow(self.wire.clone(), target, sink)).abort_handle()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all who ask, in a moment.
    fn tell(&self, news: AllNews) {
        if news.is_empty() {
            return;
        }
        let shared = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(SETTLE).await;
            let mut open = shared.lock();
            for (user, known) in open.iter_mut().flat_map(|open| &mut open.users) {
                news.iter().for_each(|(name, news)| add(known, name, *news));
                shared.store.wake(user).notify_one();
            }
        });
    }
}

/// What was there before and has come again may say something else.
fn add(known: &mut AllNews, name: &str, news: News) {
    let again = news == News::Came && known.get(name).is_some_and(|before| *before != News::Came);
    known.insert(name.into(), if again { News::Changed } else { news });
}

/// The definitions that were told, each with its uid and its generation.
#[derive(Debug, Default)]
struct Known {
    definitions: HashMap<Box<str>, (Box<str>, i64)>,
    /// What was told since the beginning, as long as not everything is.
    listing: Option<HashSet<Box<str>>>,
    /// Everything was told once, so that what is told from now on is news.
    complete: bool,
}

impl Known {
    fn take(&mut self, event: Event) -> AllNews {
        let news: Vec<(Box<str>, News)> = match event {
            Event::Begins => {
                self.listing = Some(HashSet::new());
                Vec::new()
            }
            Event::Seen(object) => self.see(&object).into_iter().collect(),
            Event::Gone(object) => {
                let gone = name(&object).and_then(|name| self.definitions.remove_entry(name));
                gone.map(|(name, _)| (name, News::Went)).into_iter().collect()
            }
            Event::Listed(_) => {
                let told = self.listing.take().unwrap_or_default();
                let gone = self.definitions.extract_if(|name, _| !told.contains(name));
                let gone = gone.map(|(name, _)| (name, News::Went)).collect();
                self.complete = true;
                gone
            }
            // What was told before is as good as it was.
            Event::Broken(_) | Event::Rewound | Event::Upgraded => Vec::new(),
        };
        news.into_iter().filter(|_| self.complete).collect()
    }

    fn see(&mut self, object: &Map<String, Value>) -> Option<(Box<str>, News)> {
        let name: Box<str> = name(object)?.into();
        let metadata = object.get("metadata")?;
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default();
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        let now = (Box::from(uid), generation);
        match self.definitions.insert(name.clone(), now.clone()) {
            None => Some((name, News::Came)),
            Some(before) if before != now => Some((name, News::Changed)),
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
        let after = |all: &[News]| {
            let mut known = AllNews::new();
            all.iter().for_each(|news| add(&mut known, "a", *news));
            known["a"]
        };
        assert_eq!(after(&[News::Came]), News::Came);
        assert_eq!(after(&[News::Went, News::Came]), News::Changed);
        assert_eq!(after(&[News::Came, News::Went]), News::Went);
        assert_eq!(after(&[News::Came, News::Changed]), News::Changed);
    }

    #[test]
    fn what_was_there_from_the_beginning_is_no_news() {
        let mut known = Known::default();
        let mut take = |event: Event| known.take(event).into_iter().collect::<Vec<_>>();
        let seen = |name: &str, generation: i64| Event::Seen(definition(name, generation));
        assert_eq!(take(Event::Begins), []);
        assert_eq!(take(seen("a", 1)), []);
        assert_eq!(take(seen("b", 1)), []);
        assert_eq!(take(Event::Listed(7)), []);
        assert_eq!(take(seen("a", 1)), [], "its status");
        assert_eq!(take(seen("a", 2)), [("a".into(), News::Changed)]);
        assert_eq!(take(seen("c", 1)), [("c".into(), News::Came)]);
        assert_eq!(take(Event::Gone(definition("c", 1))), [("c".into(), News::Went)]);
        assert_eq!(take(Event::Begins), []);
        assert_eq!(take(seen("a", 3)), [("a".into(), News::Changed)], "missed while the watch was broken");
        assert_eq!(take(Event::Listed(9)), [("b".into(), News::Went)]);
    }
}
