//! Knowledge of the Syncs of a daemon about each other.
//!
//! In: the desired set, the rendered commits, the failed attempts and the dependencies of each
//! Sync. Out: claims on objects that another Sync would prune, and the Syncs that lag behind a
//! commit and may still claim one.
//!
//! An object that moves between two folders in one commit is not pruned before the other Sync has
//! read that commit. A Sync that has not tried the commit yet gets a poll request and is waited
//! for, but not long; one that tried and failed counts by the evidence of its files; one that is
//! refused, or cannot read the repository, claims nothing. A waiting Sync is woken by every change.
//! A suspended Sync renders on request and adopts nothing.

mod arrival;
pub(crate) mod claim_evidence;
pub(crate) mod claim_rights;
pub(crate) mod claims;
pub(crate) mod dependencies;
pub(crate) mod healthy_span;
pub(crate) mod latest_revisions;
pub(crate) mod registry;
pub(crate) mod render_attempts;
mod sources;
#[cfg(test)]
mod tests;
pub(crate) mod transfer_gate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::api::SyncName;
use crate::clock;
use crate::cluster::Cluster;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::source::webhook_call::RepositoryNames;
use crate::source::{Address, ObjectHash, Reference};
use arrival::Arrival;
use claim_rights::{ClaimRights, ask};
use claims::UnknownRight;
use dependencies::{AppliedCommit, Dependencies, WaitReason};
use healthy_span::HealthySpan;
use registry::{ClaimedObject, Registry};
use render_attempts::{FailedAttempt, LaggingPeer};
use sources::{PeerSources, Wakeups};

/// Knowledge of the Syncs of a daemon about each other, behind one lock. Each method is a
/// transaction: it sees and leaves a consistent state, and holds the lock across no await.
#[derive(Default)]
pub struct Peers(Mutex<KnownSyncs>);

/// The state of [`Peers`].
#[derive(Default)]
struct KnownSyncs {
    /// Desired sets of all Syncs, and claims on their objects.
    registry: Registry,
    /// Sources of all Syncs, and the commits that they have rendered.
    sources: PeerSources,
    /// Access reviews by which claims on objects count.
    claim_rights: ClaimRights,
    /// The graph of `spec.dependsOn` between Syncs.
    dependencies: Dependencies,
}

impl Peers {
    fn lock(&self) -> MutexGuard<'_, KnownSyncs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a Sync.
    pub(crate) fn add(&self, sync: &SyncName) {
        let mut known = self.lock();
        known.registry.add(sync);
        known.sources.add(sync);
        known.dependencies.add(sync);
    }

    /// Adds a Sync whose objects no other Sync waits for: a run without a Sync resource.
    pub(crate) fn add_run(&self, run: &SyncName) {
        self.lock().registry.add(run);
    }

    /// Removes a Sync, and wakes those that wait for it.
    pub(crate) fn remove(&self, sync: &SyncName) {
        let mut known = self.lock();
        let held = known.registry.remove(sync);
        known.sources.wake(&held);
        known.claim_rights.forget(sync);
        known.sources.remove(sync);
        known.dependencies.remove(sync);
    }

    /// Returns the names of all known Syncs.
    pub(crate) fn names(&self) -> Vec<SyncName> {
        self.lock().registry.names()
    }

    /// Retains only the claims of these Syncs, which are all Syncs of the cluster.
    pub(crate) fn retain_listed(&self, syncs: &BTreeSet<SyncName>) {
        self.lock().registry.retain_listed(syncs);
    }

    /// Returns the notifies that wake a Sync. A removed Sync gets unused ones.
    pub(crate) fn wakeups(&self, sync: &SyncName) -> Arc<Wakeups> {
        self.lock().sources.wakeups(sync)
    }

    /// Records the source of a Sync; if that is unchanged, its rendered commits stay.
    pub(crate) fn set_source(
        &self,
        sync: &SyncName,
        address: &Address,
        reference: &Reference,
        suspended: bool,
    ) {
        self.lock().sources.set_source(sync, address, reference, suspended);
    }

    /// Records the addresses of the mounts of a Sync, for webhooks.
    pub(crate) fn set_mounts(&self, sync: &SyncName, mounts: Vec<Address>) {
        self.lock().sources.set_mounts(sync, mounts);
    }

    /// Records that the source of a refused Sync cannot be read.
    pub(crate) fn mark_unreadable(&self, sync: &SyncName) {
        self.lock().sources.mark_unreadable(sync);
    }

    /// Records the number of a new request: the rendered commits are not of its spec.
    pub(crate) fn set_request(&self, sync: &SyncName, asked: u64) {
        self.lock().sources.set_request(sync, asked);
    }

    /// Records that the spec of a Sync is refused, or accepted again.
    pub(crate) fn set_refused(&self, sync: &SyncName, refused: bool) {
        self.lock().sources.set_refused(sync, refused);
    }

    /// Records that a Sync cannot read its repository for a permanent reason, or can read it again.
    pub(crate) fn set_shut_out(&self, sync: &SyncName, shut_out: bool) {
        self.lock().sources.set_shut_out(sync, shut_out);
    }

    /// Records the poll of a Sync: the commit that was found, and the time of the request.
    pub(crate) fn on_polled(&self, sync: &SyncName, asked: Instant, found: ObjectHash) {
        self.lock().sources.on_polled(sync, asked, found);
    }

    /// Records that a Sync could not render a commit.
    pub(crate) fn record_failed_attempt(&self, sync: &SyncName, asked: u64, tried: FailedAttempt) {
        self.lock().sources.record_failed_attempt(sync, asked, tried);
    }

    /// Returns the last commit that a Sync could not render, with the evidence of its files.
    pub(crate) fn last_failed_attempt(&self, sync: &SyncName) -> Option<FailedAttempt> {
        self.lock().sources.last_failed_attempt(sync)
    }

    /// Records that a Sync has rendered a commit, for the request of this number.
    pub(crate) fn set_rendered(&self, sync: &SyncName, asked: u64, held: ObjectHash, newest: ObjectHash) {
        self.lock().sources.set_rendered(sync, asked, held, newest);
    }

    /// Records that the rendered commits of a Sync are not those of its newest spec.
    pub(crate) fn invalidate(&self, sync: &SyncName) {
        self.lock().sources.invalidate(sync);
    }

    /// Records that a Sync has rendered this commit.
    pub(crate) fn set_rendered_commit(&self, sync: &SyncName, at: ObjectHash) {
        self.lock().sources.set_rendered_commit(sync, at);
    }

    /// Lets all Syncs poll whose repository has one of these names; returns how many there are.
    pub(crate) fn request_polls(&self, names: &RepositoryNames) -> usize {
        self.lock().sources.request_polls(names)
    }

    /// Records that the deletion of a Sync begins: it claims nothing any more. With `leaves`, the
    /// Syncs that it depends on wait for it.
    pub(crate) fn begin_deletion(&self, sync: &SyncName, leaves: bool) {
        let mut known = self.lock();
        known.registry.mark_not_ready(sync);
        known.sources.mark_deleting(sync);
        if leaves {
            known.dependencies.begin_departure(sync);
        }
    }

    /// Records that a Sync is being deleted and claims nothing any more.
    pub(crate) fn mark_deleting(&self, sync: &SyncName) {
        self.lock().sources.mark_deleting(sync);
    }

    /// Records that a Sync begins its deletion.
    #[cfg(test)]
    fn begin_departure(&self, sync: &SyncName) {
        self.lock().dependencies.begin_departure(sync);
    }

    /// Records that the deletion of a Sync waits for a person, so that no Sync waits for its end.
    pub(crate) fn cancel_departure(&self, sync: &SyncName) {
        self.lock().dependencies.cancel_departure(sync);
    }

    /// Returns the notify that wakes a Sync which waits for its dependencies.
    pub(crate) fn dependency_notify(&self, sync: &SyncName) -> Arc<Notify> {
        self.lock().dependencies.dependency_notify(sync)
    }

    /// Sets the dependencies of a Sync.
    pub(crate) fn set_dependencies(&self, sync: &SyncName, on: &BTreeMap<SyncName, Duration>) {
        self.lock().dependencies.set_dependencies(sync, on);
    }

    /// Records the commit that a Sync has completely applied, none if it has not, and since when it
    /// is healthy.
    pub(crate) fn set_applied(
        &self,
        sync: &SyncName,
        applied: Option<AppliedCommit>,
        healthy: Option<HealthySpan>,
    ) {
        self.lock().dependencies.set_applied(sync, applied, healthy);
    }

    /// Returns the reason why a Sync does not accept a commit yet.
    pub(crate) fn waiting_reason(&self, sync: &SyncName, next: &AppliedCommit) -> Option<WaitReason> {
        self.lock().dependencies.waiting_reason(sync, next)
    }

    /// Sets the desired set of a Sync, and closes the hand-overs with the previous one. Wakes the
    /// Syncs whose objects were held because of the previous set. [`Peers::wait_for_hand_overs`]
    /// has to be awaited before anything of the set is written.
    pub(crate) fn set_desired(&self, sync: &SyncName, set: &Arc<DesiredSet>, cluster: &Cluster, ready: bool) {
        let mut known = self.lock();
        let held = known.registry.set_desired(sync, set, cluster, ready);
        known.sources.wake(&held);
    }

    /// Withdraws the desired set of a Sync until it renders again, closes the hand-overs into it,
    /// and wakes the Syncs whose objects it has held.
    pub(crate) fn withdraw_desired(&self, sync: &SyncName) {
        let mut known = self.lock();
        let held = known.registry.withdraw_desired(sync);
        known.sources.wake(&held);
    }

    /// Marks the desired set of a Sync as unknown, or as one that the Sync will not apply.
    pub(crate) fn mark_not_ready(&self, sync: &SyncName) {
        self.lock().registry.mark_not_ready(sync);
    }

    /// Records that a Sync of this daemon has pruned an object.
    pub(crate) fn note_pruned(&self, uid: &str) {
        self.lock().registry.note_pruned(uid);
    }

    /// True if a Sync of this daemon has pruned the object.
    pub(crate) fn was_pruned(&self, uid: &str) -> bool {
        self.lock().registry.was_pruned(uid)
    }

    /// Returns the desired set of a Sync, and the cluster with its identity.
    pub(crate) fn view(&self, sync: &SyncName) -> Option<(Arc<DesiredSet>, Cluster)> {
        self.lock().registry.view(sync)
    }

    /// Returns the desired set of a Sync, wherever its objects live.
    pub(crate) fn claimed_set(&self, sync: &SyncName) -> Option<Arc<DesiredSet>> {
        self.lock().registry.claimed_set(sync)
    }

    /// Returns the desired object of a Sync, as a claim.
    pub(crate) fn desired_by(&self, own: &SyncName, sync: &str, id: &ObjectId) -> Option<ClaimedObject> {
        self.lock().registry.desired_by(own, sync, id)
    }

    /// True if this Sync exists and has released the object.
    pub(crate) fn has_released(&self, own: &SyncName, owner: &str, id: &ObjectId) -> bool {
        self.lock().registry.has_released(own, owner, id)
    }

    /// True if it is certain that there is no such Sync.
    pub(crate) fn is_gone(&self, own: &SyncName, owner: &str) -> bool {
        self.lock().registry.is_gone(own, owner)
    }

    /// Returns the Syncs with the same source that have not rendered the commit of this one.
    fn lagging_peers(
        &self,
        own: &SyncName,
        begun: Option<Instant>,
        term: Option<Instant>,
    ) -> Vec<LaggingPeer> {
        let mut all = self.lock().sources.lagging_peers(own, begun, term);
        // A Sync of another cluster claims no object of this one.
        all.retain(|peer| peer.sync().shares_target(own));
        all
    }

    /// Returns the state of the Sync that receives moved objects.
    fn arrival(&self, of: (&SyncName, Option<&SyncName>), begun: Option<Instant>, term: Instant) -> Arrival {
        self.lock().sources.arrival(of, begun, term)
    }

    /// Closes the hand-overs into a Sync that use another desired set than this one. Waits until
    /// those in progress have ended.
    pub(crate) async fn close_other_hand_overs(&self, sync: &SyncName, set: &Arc<DesiredSet>) {
        let before = self.lock().registry.other_gate(sync, set);
        if let Some(before) = before {
            before.end().await;
        }
    }

    /// Waits until the hand-overs into a Sync that use a replaced desired set have ended.
    ///
    /// # Cancellation
    ///
    /// A dropped future loses nothing: the next call waits for the same hand-overs.
    pub(crate) async fn wait_for_hand_overs(&self, sync: &SyncName) {
        let closing = self.lock().registry.closing_gates(sync);
        for gate in closing {
            gate.end().await;
        }
        self.lock().registry.drop_ended_gates(sync);
    }

    /// Queries rights.
    pub(crate) async fn query_rights(&self, open: Vec<UnknownRight>) {
        for UnknownRight { sync, cluster, object } in open {
            let known = self.lock().claim_rights.known(&sync, &object);
            if known.is_none() {
                ask(self, &sync, &cluster, &object).await;
            }
        }
    }

    /// Waits while Syncs that depend on this one are being deleted; for others it waits at most
    /// `grace`, in which they may be deleted as well.
    pub(crate) async fn wait_for_dependents(&self, sync: &SyncName, grace: Duration) {
        let (begun, parting) = (clock::now(), self.lock().dependencies.parting.clone());
        loop {
            let changed = parting.notified();
            let left = grace.saturating_sub(clock::since(begun));
            let (stay, leave) = self.lock().dependencies.dependents(sync);
            if !leave && (!stay || left.is_zero()) {
                return;
            }
            let pause = if leave { grace } else { left };
            // The caller bounds the wait, for a cycle or a deletion that never ends.
            let _ = tokio::time::timeout(pause, changed).await;
        }
    }
}
