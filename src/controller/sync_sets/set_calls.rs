//! Calls of webhooks for the repositories of SyncSets.
//!
//! In: the names of the repositories that the generators of each set read, and calls.
//! Out: a notification of each set that reads a called repository, as long as the set is served.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::api::SyncName;
use crate::source::webhook_call::RepositoryNames;

/// The repositories of all sets that this daemon serves.
#[derive(Default)]
pub(super) struct SetCalls {
    sets: Mutex<BTreeMap<SyncName, CalledSet>>,
}

#[derive(Default)]
struct CalledSet {
    repositories: RepositoryNames,
    called: Arc<Notify>,
}

/// Takes calls for one set; dropped with its worker.
pub(super) struct SetCallReceiver<'a> {
    calls: &'a SetCalls,
    name: SyncName,
    called: Arc<Notify>,
}

impl SetCalls {
    /// Takes calls for a set from now on.
    pub(super) fn receive(&self, name: &SyncName) -> SetCallReceiver<'_> {
        let called = Arc::new(Notify::new());
        let set = CalledSet { called: called.clone(), ..CalledSet::default() };
        self.lock().insert(name.clone(), set);
        SetCallReceiver { calls: self, name: name.clone(), called }
    }

    /// Notifies the sets that read one of these repositories; returns the number of sets.
    pub(super) fn call(&self, names: &RepositoryNames) -> usize {
        let sets = self.lock();
        let called = sets.values().filter(|set| !set.repositories.is_disjoint(names));
        called.map(|set| set.called.notify_one()).count()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SyncName, CalledSet>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SetCallReceiver<'_> {
    /// Notes the repositories that the set reads now.
    pub(super) fn note_repositories(&self, repositories: RepositoryNames) {
        if let Some(set) = self.calls.lock().get_mut(&self.name).filter(|set| self.is_own(set)) {
            set.repositories = repositories;
        }
    }

    /// Waits for the next call. A call that came meanwhile counts.
    pub(super) async fn called(&self) {
        self.called.notified().await;
    }

    /// False once a later worker serves a set of the same name.
    fn is_own(&self, set: &CalledSet) -> bool {
        Arc::ptr_eq(&set.called, &self.called)
    }
}

impl Drop for SetCallReceiver<'_> {
    fn drop(&mut self) {
        let mut sets = self.calls.lock();
        if sets.get(&self.name).is_some_and(|set| self.is_own(set)) {
            sets.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> RepositoryNames {
        names.iter().map(|name| Box::from(*name)).collect()
    }

    #[tokio::test]
    async fn a_call_reaches_the_sets_of_its_repositories_and_no_others() {
        let calls = SetCalls::default();
        let (shop, books) = (SyncName::new("team", "shop"), SyncName::new("team", "books"));
        let (of_shop, of_books) = (calls.receive(&shop), calls.receive(&books));
        assert_eq!(calls.call(&names(&["git.example.com/shop"])), 0, "no repository is known yet");
        of_shop.note_repositories(names(&["git.example.com/shop", "git.example.com/both"]));
        of_books.note_repositories(names(&["git.example.com/both"]));
        assert_eq!(calls.call(&names(&["git.example.com/other", "git.example.com/shop"])), 1);
        of_shop.called().await;
        assert_eq!(calls.call(&names(&["git.example.com/both"])), 2);
        of_shop.called().await;
        of_books.called().await;
        of_shop.note_repositories(names(&["git.example.com/new"]));
        assert_eq!(calls.call(&names(&["git.example.com/shop"])), 0, "the set reads another repository");
    }

    #[test]
    fn a_worker_that_ends_late_takes_nothing_from_the_next_one() {
        let (calls, shop) = (SetCalls::default(), SyncName::new("team", "shop"));
        let (first, second) = (calls.receive(&shop), calls.receive(&shop));
        second.note_repositories(names(&["git.example.com/shop"]));
        first.note_repositories(names(&["git.example.com/earlier"]));
        drop(first);
        assert_eq!(calls.call(&names(&["git.example.com/shop"])), 1);
        drop(second);
        assert_eq!(calls.call(&names(&["git.example.com/shop"])), 0);
    }
}
