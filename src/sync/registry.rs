//! Which Syncs there are, and what each wants: what the Syncs of a daemon know about each other.
//!
//! In: what each Sync's newest complete render wants. Out: claims on objects that another Sync would prune, and
//! whether a Sync is still there.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::receiving::Receiving;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::ObjectId;

/// All Syncs that this daemon knows of.
#[derive(Default)]
pub struct Registry(Mutex<Known>);

#[derive(Default)]
struct Known {
    syncs: HashMap<SyncName, Entry>,
    /// All Syncs of the cluster were told, so that one that is not known does not exist.
    complete: bool,
    /// The uids of the objects that Syncs of this daemon pruned last, oldest first.
    pruned: VecDeque<Box<str>>,
}

/// So many pruned objects are remembered.
const MAX_PRUNED: usize = 4096;

#[derive(Default)]
struct Entry {
    wants: Option<Wants>,
    /// Its newest render is complete and it is not suspended.
    ready: bool,
    /// Those whose objects are held because of what it wants.
    held: BTreeSet<SyncName>,
}

/// A Sync that wants an object.
pub(crate) struct Wanting {
    pub(crate) sync: SyncName,
    /// It takes the object over.
    pub(crate) ready: bool,
    /// The cluster as it sees it.
    pub(crate) cluster: Cluster,
}

struct Wants {
    set: Arc<DesiredSet>,
    /// The cluster as the Sync sees it: what it claims it takes with its own rights, whoever lets go of it.
    cluster: Cluster,
    /// What others give it as this says.
    receiving: Receiving,
}

/// What a Sync claims of another.
pub(crate) struct Claimed {
    pub(crate) sync: SyncName,
    pub(crate) wanted: DesiredObject,
    /// The cluster as that Sync sees it.
    pub(crate) cluster: Cluster,
    /// Whether it may still be given.
    pub(crate) receiving: Receiving,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Sync is there.
    pub(crate) fn add(&self, sync: &SyncName) {
        self.lock().syncs.entry(sync.clone()).or_default();
    }

    /// A Sync is gone. Those whose objects it has held are to look again.
    pub(crate) fn remove(&self, sync: &SyncName) -> BTreeSet<SyncName> {
        self.lock().syncs.remove(sync).map(|entry| entry.held).unwrap_or_default()
    }

    /// The Syncs that are known.
    pub(crate) fn names(&self) -> Vec<SyncName> {
        self.lock().syncs.keys().cloned().collect()
    }

    /// These are all Syncs of the cluster.
    pub(crate) fn only(&self, syncs: &BTreeSet<SyncName>) {
        let mut known = self.lock();
        known.syncs.retain(|sync, _| syncs.contains(sync));
        known.complete = true;
    }

    /// A Sync is about to want another set. Waits until nobody gives it anything as it wanted it before.
    pub(crate) async fn closes(&self, sync: &SyncName, set: &Arc<DesiredSet>) {
        let other = |entry: &Entry| {
            let wants = entry.wants.as_ref().filter(|wants| !Arc::ptr_eq(&wants.set, set))?;
            Some(wants.receiving.clone())
        };
        let before = self.lock().syncs.get(sync).and_then(other);
        if let Some(before) = before {
            before.end().await;
        }
    }

    /// What a Sync wants now. Waits until nobody gives it anything as it wanted it before. Where that has changed, those whose
    /// objects were held because of it are to look again.
    pub(crate) async fn wants(
        &self,
        sync: &SyncName,
        set: &Arc<DesiredSet>,
        cluster: &Cluster,
        ready: bool,
    ) -> BTreeSet<SyncName> {
        let mut held = BTreeSet::new();
        let before = match self.lock().syncs.get_mut(sync) {
            Some(entry) => {
                let was_ready = std::mem::replace(&mut entry.ready, ready);
                let is_same = |wants: &Wants| Arc::ptr_eq(&wants.set, set);
                let same = entry.wants.as_ref().filter(|wants| is_same(wants));
                let receiving = same.map(|wants| wants.receiving.clone());
                let before = entry.wants.take().filter(|wants| !is_same(wants));
                let receiving = receiving.unwrap_or_default();
                entry.wants = Some(Wants { set: set.clone(), cluster: cluster.of_any_term(), receiving });
                if before.is_some() || was_ready != ready {
                    held = std::mem::take(&mut entry.held);
                }
                before
            }
            None => None,
        };
        if let Some(before) = before {
            before.receiving.end().await;
        }
        held
    }

    /// A Sync of this daemon has pruned an object.
    pub(crate) fn note_pruned(&self, uid: &str) {
        let mut known = self.lock();
        if known.pruned.len() == MAX_PRUNED {
            known.pruned.pop_front();
        }
        known.pruned.push_back(uid.into());
    }

    /// True if a Sync of this daemon has pruned the object: another one that hears of its end blames nobody for it.
    pub(crate) fn was_pruned(&self, uid: &str) -> bool {
        self.lock().pruned.iter().any(|pruned| **pruned == *uid)
    }

    /// A Sync wants nothing any more. Those whose objects it has held are to look again.
    pub(crate) fn wants_nothing(&self, sync: &SyncName) -> BTreeSet<SyncName> {
        let mut known = self.lock();
        let entry = known.syncs.get_mut(sync).map(std::mem::take);
        entry.map(|entry| entry.held).unwrap_or_default()
    }

    /// What a Sync wanted last counts no more, until it renders again. Waits until nobody gives it anything. Those whose
    /// objects it has held are to look again.
    pub(crate) async fn claims_nothing(&self, sync: &SyncName) -> BTreeSet<SyncName> {
        let (held, before) = match self.lock().syncs.get_mut(sync) {
            Some(entry) => {
                entry.ready = false;
                (std::mem::take(&mut entry.held), entry.wants.take())
            }
            None => Default::default(),
        };
        if let Some(before) = before {
            before.receiving.end().await;
        }
        held
    }

    /// What a Sync wants is not known, or it will not take it.
    pub(crate) fn unready(&self, sync: &SyncName) {
        if let Some(entry) = self.lock().syncs.get_mut(sync) {
            entry.ready = false;
        }
    }

    /// The other Syncs that want an object, by name.
    pub(crate) fn wanting(&self, own: &SyncName, id: &ObjectId) -> Vec<Wanting> {
        let known = self.lock();
        let others = known.syncs.iter().filter(|(sync, _)| *sync != own);
        let mut all: Vec<Wanting> = others
            .filter_map(|(sync, entry)| {
                let wants = entry.wants.as_ref().filter(|wants| wants.set.get(id).is_some())?;
                let (sync, cluster) = (sync.clone(), wants.cluster.clone());
                Some(Wanting { sync, ready: entry.ready, cluster })
            })
            .collect();
        all.sort_by(|a, b| a.sync.cmp(&b.sync));
        all
    }

    /// Objects of a Sync are held because of what another wants.
    pub(crate) fn holds(&self, claimant: &SyncName, held: &SyncName) {
        if let Some(entry) = self.lock().syncs.get_mut(claimant) {
            entry.held.insert(held.clone());
        }
    }

    /// What a Sync wants, and the cluster as it sees it.
    pub(crate) fn view(&self, sync: &SyncName) -> Option<(Arc<DesiredSet>, Cluster)> {
        let known = self.lock();
        let wants = known.syncs.get(sync)?.wants.as_ref()?;
        Some((wants.set.clone(), wants.cluster.clone()))
    }

    /// What a Sync wants an object to be.
    pub(crate) fn wanted_by(&self, sync: &str, id: &ObjectId) -> Option<Claimed> {
        let known = self.lock();
        let (name, entry) = known.syncs.iter().find(|(name, _)| name.to_string() == sync)?;
        let Wants { set, cluster, receiving } = entry.wants.as_ref()?;
        let wanted = set.get(id)?.clone();
        let (cluster, receiving) = (cluster.clone(), receiving.clone());
        Some(Claimed { sync: name.clone(), wanted, cluster, receiving })
    }

    /// True if this Sync is there and has let go of the object: its newest render is without it.
    pub(crate) fn has_let_go(&self, sync: &str, id: &ObjectId) -> bool {
        let known = self.lock();
        let entry = known.syncs.iter().find(|(name, _)| name.to_string() == sync).map(|(_, entry)| entry);
        let wants = entry.filter(|entry| entry.ready).and_then(|entry| entry.wants.as_ref());
        wants.is_some_and(|wants| wants.set.get(id).is_none())
    }

    /// True if it is certain that there is no such Sync.
    pub(crate) fn is_gone(&self, sync: &str) -> bool {
        let known = self.lock();
        known.complete && !known.syncs.keys().any(|name| name.to_string() == sync)
    }
}
