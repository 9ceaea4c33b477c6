//! Serves SyncSets: many Syncs from one template.
//!
//! In: SyncSets, from a watch (`set_watch.rs`), the Syncs that the daemon watches anyway, Git, tags
//! of registries (`set_tags.rs`), the names and labels of Secrets (`set_clusters.rs`), and calls of
//! webhooks (`set_calls.rs`).
//! Out: Syncs, written as the ServiceAccount of their set (`child_writes.rs`), and the status of
//! the set. One worker serves a set (`set_worker.rs`); the decisions are in `moorline-sync-set`.
//!
//! While nothing changes, only repositories are polled, and tags and Secrets of clusters listed.

mod child_writes;
mod set_answer;
mod set_calls;
pub(in crate::controller) mod set_clusters;
mod set_deletion;
pub(in crate::controller) mod set_pull_requests;
pub(in crate::controller) mod set_repository;
pub(crate) mod set_rollout;
pub(in crate::controller) mod set_sources;
mod set_state;
mod set_status;
pub(in crate::controller) mod set_tags;
mod set_watch;
mod set_worker;

#[cfg(test)]
mod pull_request_tests;
#[cfg(test)]
mod scene_tests;
#[cfg(test)]
mod tag_tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Context;
use crate::api::SyncName;
use crate::cluster::SyncText;
use crate::source::webhook_call::RepositoryNames;
use set_calls::SetCalls;
use set_watch::keep_sync_sets;

/// The Syncs of one namespace, by name.
pub(crate) type NamespaceSyncs = BTreeMap<Box<str>, Arc<SyncText>>;

/// The Syncs of the cluster that this daemon serves, by namespace.
#[derive(Default)]
pub(crate) struct NamespacedSyncs {
    namespaces: Mutex<HashMap<Box<str>, watch::Sender<NamespaceSyncs>>>,
    /// True once a list was complete.
    is_listed: watch::Sender<bool>,
    /// Calls of webhooks for the sets.
    calls: SetCalls,
}

impl NamespacedSyncs {
    /// Notes the state of a Sync; none if it is gone.
    pub(super) fn note_sync(&self, name: &SyncName, sync: Option<&Arc<SyncText>>) {
        let mut namespaces = self.lock();
        let syncs = namespaces.entry(name.namespace.clone()).or_default();
        syncs.send_if_modified(|syncs| match sync {
            Some(sync) => {
                syncs.insert(name.name.clone(), sync.clone());
                true
            }
            None => syncs.remove(&name.name).is_some(),
        });
        if syncs.borrow().is_empty() && syncs.receiver_count() == 0 {
            namespaces.remove(&name.namespace);
        }
    }

    /// Notes that a list is complete: other Syncs are gone.
    pub(super) fn note_listed(&self, there: &BTreeSet<SyncName>) {
        for (namespace, syncs) in &*self.lock() {
            let is_there = |name: &str| there.contains(&SyncName::new(namespace, name));
            syncs.send_if_modified(|syncs| {
                let before = syncs.len();
                syncs.retain(|name, _| is_there(name));
                syncs.len() != before
            });
        }
        self.is_listed.send_replace(true);
    }

    /// Lets the sets poll that read one of these repositories; returns the number of sets.
    pub(super) fn request_polls(&self, names: &RepositoryNames) -> usize {
        self.calls.call(names)
    }

    /// Returns the Syncs of a namespace, as they change.
    fn follow(&self, namespace: &str) -> watch::Receiver<NamespaceSyncs> {
        self.lock().entry(namespace.into()).or_default().subscribe()
    }

    /// Waits until all Syncs are known.
    async fn wait_until_listed(&self) {
        // The sender lives as long as this value.
        let _ = self.is_listed.subscribe().wait_for(|listed| *listed).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, watch::Sender<NamespaceSyncs>>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves the SyncSets until `serving` ends.
pub(crate) async fn run_beside(context: Arc<Context>, serving: impl Future) {
    tokio::select! {
        _ = serving => {}
        () = keep_sync_sets(&context) => {}
    }
}
