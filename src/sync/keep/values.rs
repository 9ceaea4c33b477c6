//! The ConfigMaps and Secrets whose keys are variables of a Sync: each is read once, and again when it was seen to change.
//!
//! In: what the Sync names, and the cluster as the identity sees it that acts for it. Out: the wish with all variables. While nothing
//! changes, nothing is asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::super::values;
use super::super::wish::{Values, Wish};
use super::Keeper;
use super::versions::Versions;
use crate::api::SyncName;
use crate::cluster::{Cluster, Following, Texts, ValuesTold};
use crate::report::Trouble;

/// One object that is followed.
pub(super) struct Source {
    values: Values,
    /// As whom.
    account: Option<Box<str>>,
    held: Arc<Mutex<Held>>,
    texts: Option<Texts>,
    #[expect(dead_code, reason = "the watch ends when it is dropped")]
    following: Following,
}

/// What is known of an object.
#[derive(Default)]
struct Held {
    versions: Versions,
    /// It could not be read, or is missed.
    failed: bool,
    /// It may not be watched, so that nobody would tell that it has changed.
    forbidden: bool,
}

impl Held {
    /// What was read counts only while a change of it would be seen.
    fn seen(&self, name: &SyncName, named: &Values) -> Result<(), Trouble> {
        if self.forbidden { Err(values::unwatched(name, named)) } else { Ok(()) }
    }
}

impl Keeper {
    /// The wish with the values of all of its variables, whose objects are watched from now on.
    pub(super) async fn filled(&mut self, wish: Wish, cluster: &Cluster) -> Result<Wish, Trouble> {
        let mut known = std::mem::take(&mut self.values);
        for values in &wish.values {
            let is_it = |source: &Source| source.values == *values && source.account == wish.service_account;
            let source = match known.iter().position(is_it) {
                Some(at) => known.swap_remove(at),
                None => self.follows(values, wish.service_account.clone(), cluster),
            };
            self.values.push(source);
        }
        let rotated = self.rotated.clone();
        // All of them are followed, also where one cannot be read: whatever comes is seen.
        for source in &mut self.values {
            source.read(cluster, &self.name, &rotated).await?;
        }
        Ok(values::with(wish, self.values.iter().map(|source| source.texts.as_ref())))
    }

    fn follows(&self, values: &Values, account: Option<Box<str>>, cluster: &Cluster) -> Source {
        let held = Arc::<Mutex<Held>>::default();
        let (of_watch, rotated) = (held.clone(), self.rotated.clone());
        let tell = move |told: ValuesTold<'_>| {
            let mut held = of_watch.lock().unwrap_or_else(PoisonError::into_inner);
            let was_forbidden = held.forbidden;
            held.forbidden = matches!(told, ValuesTold::Forbidden);
            if let ValuesTold::Version(version) = told {
                held.versions.told = Some(version.map(Box::from));
            }
            if held.versions.is_another() || held.forbidden != was_forbidden {
                rotated.notify_one();
            }
        };
        let following = cluster.follow_texts(values.kind, &self.name.namespace, &values.name, tell);
        Source { values: values.clone(), account, held, texts: None, following }
    }
}

impl Source {
    /// Reads the object, unless what was read of it is still so.
    async fn read(&mut self, cluster: &Cluster, name: &SyncName, again: &Notify) -> Result<(), Trouble> {
        {
            let mut held = self.lock();
            if held.versions.read.is_some() && !held.failed && !held.versions.is_another() {
                return held.seen(name, &self.values);
            }
            *held = Held { forbidden: held.forbidden, ..Held::default() };
        }
        let found = values::texts(cluster, name, &self.values).await;
        let version = match &found {
            Ok(Some(texts)) => Some(texts.version.clone()),
            Ok(None) | Err(_) => None,
        };
        let mut held = self.lock();
        (held.versions.read, held.failed) = (Some(version), found.is_err());
        if held.versions.is_another() {
            // It has changed while it was read.
            again.notify_one();
        }
        drop(held);
        self.texts = found?;
        self.lock().seen(name, &self.values)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
