//! Namespaces that objects wait for.
//!
//! In: objects that are held because their namespace is missing or terminating.
//! Out: these objects are retried as soon as the namespace has another state.
//!
//! Each such namespace is watched by name, until no object waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::SyncName;
use crate::cluster::{Cluster, NamespaceState, WatchGuard};
use crate::desired::DesiredSet;
use crate::observed::ObservedSet;
use crate::plan::{Action, Hold, Outcome, Plan};

/// Watched namespaces of a Sync, by name.
#[derive(Default)]
pub(crate) struct PendingNamespaces(BTreeMap<Box<str>, WatchedNamespace>);

struct WatchedNamespace {
    state: Arc<Mutex<Option<NamespaceState>>>,
    _following: WatchGuard,
}

impl std::fmt::Debug for PendingNamespaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl PendingNamespaces {
    /// Returns true if the namespace that an object waits for has changed its state.
    pub(crate) fn frees(&self, outcome: &Outcome) -> bool {
        let (name, then) = match outcome {
            Outcome::Held(Hold::NamespaceMissing(name)) => (name, NamespaceState::Missing),
            Outcome::Held(Hold::NamespaceTerminating(name)) => (name, NamespaceState::Terminating),
            _ => return false,
        };
        let state = self.0.get(name).and_then(|it| *it.state.lock().unwrap_or_else(PoisonError::into_inner));
        state.is_some_and(|now| now != then)
    }

    /// Watches exactly the namespaces that these outcomes wait for.
    pub(crate) fn watch<'a>(
        &mut self,
        cluster: &Cluster,
        owner: &SyncName,
        waiting: impl Iterator<Item = &'a Outcome>,
    ) {
        let name = |outcome: &'a Outcome| match outcome {
            Outcome::Held(Hold::NamespaceMissing(name) | Hold::NamespaceTerminating(name)) => Some(name),
            _ => None,
        };
        let wanted: BTreeSet<&Box<str>> = waiting.filter_map(name).collect();
        self.0.retain(|name, _| wanted.contains(name));
        for name in wanted {
            if self.0.contains_key(name) {
                continue;
            }
            let state = Arc::<Mutex<Option<NamespaceState>>>::default();
            let (watched, wake) = (state.clone(), cluster.changed_notify(owner));
            let following = cluster.objects().watch_namespace(name, move |now| {
                *watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                wake.notify_one();
            });
            self.0.insert(name.clone(), WatchedNamespace { state, _following: following });
        }
    }
}

/// Returns true if objects are to be created in a namespace that has none of our objects and is not
/// in Git itself, so that it may have to be created first.
pub(crate) fn may_be_missing(plan: &Plan, desired: &DesiredSet, observed: &ObservedSet, name: &str) -> bool {
    let creates = plan.steps().any(|step| {
        matches!(step.action, Action::Create | Action::ReplaceHookRuns { .. })
            && step.id.namespace() == Some(name)
    });
    creates
        && !observed.iter().any(|(id, _)| id.namespace() == Some(name))
        && !desired
            .objects()
            .iter()
            .any(|object| object.id.is_kind("", "Namespace") && object.id.name() == name)
}
