//! The namespaces that objects wait for.
//!
//! In: objects held because their namespace is not there or is going. Out: they are tried again as soon as it has
//! become something else. Each such namespace is watched by its name, and by nobody once nothing waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::SyncName;
use crate::cluster::{Cluster, Following, NamespaceState};
use crate::desired::DesiredSet;
use crate::observed::ObservedSet;
use crate::plan::{Action, Hold, Outcome, Plan};

/// The namespaces that objects of a Sync wait for.
#[derive(Default)]
pub(crate) struct Namespaces(BTreeMap<Box<str>, Watched>);

struct Watched {
    state: Arc<Mutex<Option<NamespaceState>>>,
    _following: Following,
}

impl std::fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Namespaces {
    /// True if what an object waits for has come.
    pub(crate) fn frees(&self, outcome: &Outcome) -> bool {
        let (name, then) = match outcome {
            Outcome::Held(Hold::NamespaceMissing(name)) => (name, NamespaceState::Missing),
            Outcome::Held(Hold::NamespaceTerminating(name)) => (name, NamespaceState::Terminating),
            _ => return false,
        };
        let state = self.0.get(name).and_then(|it| *it.state.lock().unwrap_or_else(PoisonError::into_inner));
        state.is_some_and(|now| now != then)
    }

    /// Watches exactly these.
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
            let (told, wake) = (state.clone(), cluster.wake(owner));
            let following = cluster.follow_namespace(name, move |now| {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                wake.notify_one();
            });
            self.0.insert(name.clone(), Watched { state, _following: following });
        }
    }
}

/// True if objects are to be created in a namespace in which nothing of ours is, and that is not in Git itself: so
/// it may have to be created first.
pub(crate) fn may_be_missing(plan: &Plan, desired: &DesiredSet, observed: &ObservedSet, name: &str) -> bool {
    let creates = plan.steps().any(|step| {
        matches!(step.action, Action::Create | Action::Follow { .. }) && step.id.namespace() == Some(name)
    });
    creates
        && !observed.iter().any(|(id, _)| id.namespace() == Some(name))
        && !desired.objects().iter().any(|object| object.id.is("", "Namespace") && object.id.name() == name)
}
