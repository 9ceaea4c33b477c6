//! Registry of all Syncs: their desired sets, and the claims of one Sync on objects of another.
//!
//! In: the desired set of each Sync's newest complete render. Out: claims on objects that another
//! Sync would prune, and the existence of a Sync.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::transfer_gate::TransferGate;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::ObjectId;

/// All Syncs that this daemon knows.
#[derive(Default)]
pub(super) struct Registry {
    syncs: HashMap<SyncName, RegistryEntry>,
    /// The first list of Syncs is complete, so that an unknown Sync does not exist.
    complete: bool,
    /// Uids of the objects that Syncs of this daemon pruned last, oldest first.
    pruned: VecDeque<Box<str>>,
}

/// Most pruned objects that are remembered.
const MAX_PRUNED: usize = 4096;

#[derive(Default)]
struct RegistryEntry {
    wants: Option<DesiredClaim>,
    /// Its newest render is complete, and it is not suspended.
    ready: bool,
    /// Syncs whose objects are held because of its desired set.
    held: BTreeSet<SyncName>,
    /// Gates of replaced desired sets with hand-overs that may still be in progress. They stay here
    /// until they have ended, also if the reconcile that replaced them is dropped while it waits.
    closing: Vec<TransferGate>,
}

/// A Sync with a claim on an object.
pub(crate) struct ClaimingSync {
    pub(crate) sync: SyncName,
    /// It adopts the object.
    pub(crate) ready: bool,
    /// The cluster with the identity of the Sync.
    pub(crate) cluster: Cluster,
}

struct DesiredClaim {
    set: Arc<DesiredSet>,
    /// The cluster with the identity of the Sync: it adopts with its own permissions, whichever
    /// Sync releases the object.
    cluster: Cluster,
    /// Gate of hand-overs into this Sync that use this desired set.
    receiving: TransferGate,
}

/// The claim of a Sync on an object of another one.
pub(crate) struct ClaimedObject {
    pub(crate) sync: SyncName,
    pub(crate) wanted: DesiredObject,
    /// The cluster with the identity of the claiming Sync.
    pub(crate) cluster: Cluster,
    /// Gate of the hand-over; closed once the claim is outdated.
    pub(crate) receiving: TransferGate,
}

impl RegistryEntry {
    /// Closes the hand-overs that use a replaced desired set.
    fn close(&mut self, replaced: Option<DesiredClaim>) {
        if let Some(replaced) = replaced {
            replaced.receiving.close();
            self.closing.push(replaced.receiving);
        }
    }
}

impl Registry {
    /// Adds a Sync.
    pub(super) fn add(&mut self, sync: &SyncName) {
        self.syncs.entry(sync.clone()).or_default();
    }

    /// Removes a Sync. Returns the Syncs whose objects it has held, which have to reconcile again.
    pub(super) fn remove(&mut self, sync: &SyncName) -> BTreeSet<SyncName> {
        self.syncs.remove(sync).map(|entry| entry.held).unwrap_or_default()
    }

    /// Returns the names of all known Syncs.
    pub(super) fn names(&self) -> Vec<SyncName> {
        self.syncs.keys().cloned().collect()
    }

    /// Retains only these Syncs, which are all Syncs of the cluster.
    pub(super) fn retain_listed(&mut self, syncs: &BTreeSet<SyncName>) {
        self.syncs.retain(|sync, _| syncs.contains(sync));
        self.complete = true;
    }

    /// Returns the gate of the hand-overs into a Sync that use another desired set than this one.
    pub(super) fn other_gate(&self, sync: &SyncName, set: &Arc<DesiredSet>) -> Option<TransferGate> {
        let wants = self.syncs.get(sync)?.wants.as_ref().filter(|wants| !Arc::ptr_eq(&wants.set, set))?;
        Some(wants.receiving.clone())
    }

    /// Sets the desired set of a Sync, and closes the hand-overs with the previous one. Returns the
    /// Syncs whose objects were held because of the previous set; they have to reconcile again.
    /// `Peers::wait_for_hand_overs` has to be awaited before anything of the set is written.
    pub(super) fn set_desired(
        &mut self,
        sync: &SyncName,
        set: &Arc<DesiredSet>,
        cluster: &Cluster,
        ready: bool,
    ) -> BTreeSet<SyncName> {
        let Some(entry) = self.syncs.get_mut(sync) else { return BTreeSet::new() };
        let was_ready = std::mem::replace(&mut entry.ready, ready);
        let (same, before) = match entry.wants.take() {
            Some(wants) if Arc::ptr_eq(&wants.set, set) => (Some(wants.receiving), None),
            before => (None, before),
        };
        let is_changed = before.is_some() || was_ready != ready;
        entry.close(before);
        let receiving = same.unwrap_or_default();
        entry.wants = Some(DesiredClaim { set: set.clone(), cluster: cluster.in_any_term(), receiving });
        if is_changed { std::mem::take(&mut entry.held) } else { BTreeSet::new() }
    }

    /// Returns the gates of replaced desired sets with hand-overs that may still be in progress.
    pub(super) fn closing_gates(&self, sync: &SyncName) -> Vec<TransferGate> {
        self.syncs.get(sync).map(|entry| entry.closing.clone()).unwrap_or_default()
    }

    /// Forgets the gates whose hand-overs have ended.
    pub(super) fn drop_ended_gates(&mut self, sync: &SyncName) {
        if let Some(entry) = self.syncs.get_mut(sync) {
            entry.closing.retain(|gate| !gate.has_ended());
        }
    }

    /// Records that a Sync of this daemon has pruned an object.
    pub(super) fn note_pruned(&mut self, uid: &str) {
        if self.pruned.len() == MAX_PRUNED {
            self.pruned.pop_front();
        }
        self.pruned.push_back(uid.into());
    }

    /// True if a Sync of this daemon has pruned the object, so that its deletion is not reported as
    /// drift by another one.
    pub(super) fn was_pruned(&self, uid: &str) -> bool {
        self.pruned.iter().any(|pruned| **pruned == *uid)
    }

    /// Withdraws the desired set of a Sync, until it renders again, and closes the hand-overs into
    /// it. Returns the Syncs whose objects it has held, which have to reconcile again.
    pub(super) fn withdraw_desired(&mut self, sync: &SyncName) -> BTreeSet<SyncName> {
        let Some(entry) = self.syncs.get_mut(sync) else { return BTreeSet::new() };
        entry.ready = false;
        let before = entry.wants.take();
        entry.close(before);
        std::mem::take(&mut entry.held)
    }

    /// Marks the desired set of a Sync as unknown, or as one that the Sync will not apply.
    pub(super) fn mark_not_ready(&mut self, sync: &SyncName) {
        if let Some(entry) = self.syncs.get_mut(sync) {
            entry.ready = false;
        }
    }

    /// Returns the other Syncs that claim an object, sorted by name.
    pub(super) fn wanting(&self, own: &SyncName, id: &ObjectId) -> Vec<ClaimingSync> {
        let others = self.syncs.iter().filter(|(sync, _)| *sync != own && sync.shares_target(own));
        let mut all: Vec<ClaimingSync> = others
            .filter_map(|(sync, entry)| {
                let wants = entry.wants.as_ref().filter(|wants| wants.set.get(id).is_some())?;
                let (sync, cluster) = (sync.clone(), wants.cluster.clone());
                Some(ClaimingSync { sync, ready: entry.ready, cluster })
            })
            .collect();
        all.sort_by(|a, b| a.sync.cmp(&b.sync));
        all
    }

    /// Records that objects of `held` are held because of the desired set of `claimant`.
    pub(super) fn holds(&mut self, claimant: &SyncName, held: &SyncName) {
        if let Some(entry) = self.syncs.get_mut(claimant) {
            entry.held.insert(held.clone());
        }
    }

    /// Returns the desired set of a Sync, and the cluster with its identity; none if its objects
    /// live in another cluster, where the rights of a viewer are not known.
    pub(super) fn view(&self, sync: &SyncName) -> Option<(Arc<DesiredSet>, Cluster)> {
        let (name, entry) = self.syncs.get_key_value(sync)?;
        let wants = entry.wants.as_ref().filter(|_| name.target().is_none())?;
        Some((wants.set.clone(), wants.cluster.clone()))
    }

    /// Returns the desired set of a Sync, wherever its objects live.
    pub(super) fn claimed_set(&self, sync: &SyncName) -> Option<Arc<DesiredSet>> {
        Some(self.syncs.get(sync)?.wants.as_ref()?.set.clone())
    }

    /// Returns the desired object of a Sync, as a claim on an object in the cluster of `own`.
    pub(super) fn desired_by(&self, own: &SyncName, sync: &str, id: &ObjectId) -> Option<ClaimedObject> {
        let is_it = |name: &SyncName| name.to_string() == sync && name.shares_target(own);
        let (name, entry) = self.syncs.iter().find(|(name, _)| is_it(name))?;
        let DesiredClaim { set, cluster, receiving } = entry.wants.as_ref()?;
        let wanted = set.get(id)?.clone();
        let (cluster, receiving) = (cluster.clone(), receiving.clone());
        Some(ClaimedObject { sync: name.clone(), wanted, cluster, receiving })
    }

    /// True if the Sync that an object in the cluster of `own` names as its owner exists and has
    /// released the object: its newest render does not contain it.
    pub(super) fn has_released(&self, own: &SyncName, owner: &str, id: &ObjectId) -> bool {
        let is_it = |name: &SyncName| name.shares_target(own) && name.owner() == owner;
        let entry = self.syncs.iter().find(|(name, _)| is_it(name)).map(|(_, entry)| entry);
        let wants = entry.filter(|entry| entry.ready).and_then(|entry| entry.wants.as_ref());
        wants.is_some_and(|wants| wants.set.get(id).is_none())
    }

    /// True if it is certain that there is no such Sync, which an object in the cluster of `own`
    /// names as its owner. A Sync of another home cluster is never known.
    pub(super) fn is_gone(&self, own: &SyncName, owner: &str) -> bool {
        let is_known = SyncName::parse_owner(owner).is_some_and(|named| named.shares_target(own));
        let is_it = |name: &SyncName| name.shares_target(own) && name.owner() == owner;
        self.complete && is_known && !self.syncs.keys().any(is_it)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::super::Peers;
    use super::*;
    use crate::cluster::Connection;
    use crate::cluster::lease::WritePermit;
    use crate::desired::{Scopes, build_desired_set};
    use crate::metrics::Metrics;
    use crate::render::{RenderOptions, Rendered, render};
    use crate::sandbox::{Options, Sandbox};
    use crate::settings::Settings;
    use crate::tree::FileTree;

    #[tokio::test]
    async fn a_withdrawn_set_takes_no_object_and_waits_for_those_on_their_way() {
        let connection = Connection::from_client(Sandbox::new(&Options::default()).client(), "moorline");
        let (metrics, settings) = (Metrics::new().unwrap(), Settings::default());
        let cluster = Cluster::new(connection, metrics, WritePermit::unlimited(), &settings);
        let (all, sync) = (Peers::default(), SyncName::new("ops", "a"));
        all.add(&sync);
        all.set_desired(&sync, &Arc::new(DesiredSet::empty()), &cluster, true);
        let gate = all.lock().registry.other_gate(&sync, &Arc::new(DesiredSet::empty())).unwrap();
        let writing = gate.begin().unwrap();
        all.withdraw_desired(&sync);
        assert!(gate.begin().is_none(), "nothing more is handed over");
        assert!(all.wait_for_hand_overs(&sync).now_or_never().is_none(), "a hand-over is in progress");
        drop(writing);
        all.wait_for_hand_overs(&sync).await;
    }

    #[test]
    fn the_owner_of_an_object_is_looked_for_in_its_own_cluster() {
        let [home, away, other] = [None, Some("m"), Some("o")].map(|mark| {
            let name = SyncName::new("ops", "own");
            mark.map_or(name.clone(), |mark| name.in_target(mark))
        });
        let all = Peers::default();
        for (name, mark) in [("b", None), ("a", Some("m"))] {
            let name = SyncName::new("ops", name);
            all.add(&mark.map_or(name.clone(), |mark| name.in_target(mark)));
        }
        assert!(!all.is_gone(&home, "ops/z"), "the list is not complete");
        all.retain_listed(&[SyncName::new("ops", "a"), SyncName::new("ops", "b")].into());
        for (own, owner, expect) in [
            (&home, "ops/z", true),
            (&home, "ops/b", false),
            (&home, "@m/ops.z", false),
            (&away, "@m/ops.z", true),
            (&away, "@m/ops.a", false),
            (&away, "@o/ops.a", false),
            (&away, "ops/z", false),
            (&other, "@m/ops.z", false),
        ] {
            assert_eq!(all.is_gone(own, owner), expect, "{own:?} {owner}");
        }
    }

    #[tokio::test]
    async fn a_claim_counts_in_its_own_cluster_only() {
        let connection = Connection::from_client(Sandbox::new(&Options::default()).client(), "moorline");
        let (metrics, settings) = (Metrics::new().unwrap(), Settings::default());
        let cluster = Cluster::new(connection, metrics, WritePermit::unlimited(), &settings);
        let text = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
        let rendered = render(&FileTree::from_texts([("a.json", text)]), &RenderOptions::default());
        let Rendered::Complete(complete) = rendered else { panic!("the manifest is sound") };
        let set = Arc::new(build_desired_set(complete, "shop", &Scopes::builtin()).unwrap());
        let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
        let own = |mark: Option<&str>| {
            let name = SyncName::new("ops", "own");
            mark.map_or(name.clone(), |mark| name.in_target(mark))
        };
        let all = Peers::default();
        let claimant = SyncName::new("ops", "b").in_target("m");
        all.add(&claimant);
        all.set_desired(&claimant, &set, &cluster, true);
        for (mark, expect) in [(None, false), (Some("o"), false), (Some("m"), true)] {
            let (own, state) = (own(mark), all.lock());
            assert_eq!(state.registry.wanting(&own, &id).len(), usize::from(expect), "{mark:?}");
            let claimed = state.registry.desired_by(&own, &claimant.to_string(), &id);
            assert_eq!(claimed.is_some(), expect, "{mark:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_dropped_is_made_up_for_by_the_next() {
        let (all, sync, gate) = (Peers::default(), SyncName::new("ops", "a"), TransferGate::default());
        let writing = gate.begin().unwrap();
        all.add(&sync);
        all.lock().registry.syncs.get_mut(&sync).unwrap().closing.push(gate.clone());
        gate.close();
        assert!(all.wait_for_hand_overs(&sync).now_or_never().is_none(), "a hand-over is in progress");
        assert!(all.wait_for_hand_overs(&sync).now_or_never().is_none(), "it still is");
        drop(writing);
        all.wait_for_hand_overs(&sync).await;
        assert!(all.lock().registry.syncs[&sync].closing.is_empty());
        assert!(gate.begin().is_none(), "the gate stays closed");
    }
}
