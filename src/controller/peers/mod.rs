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
pub(crate) mod latest_revisions;
pub(crate) mod registry;
pub(crate) mod render_attempts;
mod sources;
pub(crate) mod transfer_gate;

use std::collections::BTreeSet;
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
    pub(crate) fn bell(&self, sync: &SyncName) -> Arc<Wakeups> {
        self.lock().sources.bell(sync)
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

    /// Records that the source of a refused Sync cannot be read.
    pub(crate) fn is_unreadable(&self, sync: &SyncName) {
        self.lock().sources.is_unreadable(sync);
    }

    /// Records the number of a new request: the rendered commits are not of its spec.
    pub(crate) fn set_request(&self, sync: &SyncName, asked: u64) {
        self.lock().sources.set_request(sync, asked);
    }

    /// Records that the spec of a Sync is refused, or accepted again.
    pub(crate) fn is_refused(&self, sync: &SyncName, refused: bool) {
        self.lock().sources.is_refused(sync, refused);
    }

    /// Records that a Sync cannot read its repository for a permanent reason, or can read it again.
    pub(crate) fn is_shut_out(&self, sync: &SyncName, shut_out: bool) {
        self.lock().sources.is_shut_out(sync, shut_out);
    }

    /// Records the poll of a Sync: the commit that was found, and the time of the request.
    pub(crate) fn has_looked(&self, sync: &SyncName, asked: Instant, found: ObjectHash) {
        self.lock().sources.has_looked(sync, asked, found);
    }

    /// Records that a Sync could not render a commit.
    pub(crate) fn tried(&self, sync: &SyncName, asked: u64, tried: FailedAttempt) {
        self.lock().sources.tried(sync, asked, tried);
    }

    /// Returns the last commit that a Sync could not render, with the evidence of its files.
    pub(crate) fn last_tried(&self, sync: &SyncName) -> Option<FailedAttempt> {
        self.lock().sources.last_tried(sync)
    }

    /// Records that a Sync has rendered a commit, for the request of this number.
    pub(crate) fn rendered(&self, sync: &SyncName, asked: u64, held: ObjectHash, newest: ObjectHash) {
        self.lock().sources.rendered(sync, asked, held, newest);
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
    pub(crate) fn called(&self, names: &RepositoryNames) -> usize {
        self.lock().sources.called(names)
    }

    /// Records that the deletion of a Sync begins: it claims nothing any more. With `leaves`, the
    /// Syncs that it depends on wait for it.
    pub(crate) fn begin_deletion(&self, sync: &SyncName, leaves: bool) {
        let mut known = self.lock();
        known.registry.unready(sync);
        known.sources.mark_deleting(sync);
        if leaves {
            known.dependencies.leaves(sync);
        }
    }

    /// Records that a Sync is being deleted and claims nothing any more.
    pub(crate) fn mark_deleting(&self, sync: &SyncName) {
        self.lock().sources.mark_deleting(sync);
    }

    /// Records that a Sync begins its deletion.
    #[cfg(test)]
    fn leaves(&self, sync: &SyncName) {
        self.lock().dependencies.leaves(sync);
    }

    /// Records that the deletion of a Sync waits for a person, so that no Sync waits for its end.
    pub(crate) fn stays(&self, sync: &SyncName) {
        self.lock().dependencies.stays(sync);
    }

    /// Returns the notify that wakes a Sync which waits for its dependencies.
    pub(crate) fn again(&self, sync: &SyncName) -> Arc<Notify> {
        self.lock().dependencies.again(sync)
    }

    /// Sets the dependencies of a Sync.
    pub(crate) fn depends(&self, sync: &SyncName, on: &BTreeSet<SyncName>) {
        self.lock().dependencies.depends(sync, on);
    }

    /// Records the commit that a Sync has completely applied; none if it has not.
    pub(crate) fn applied(&self, sync: &SyncName, applied: Option<AppliedCommit>) {
        self.lock().dependencies.applied(sync, applied);
    }

    /// Returns the reason why a Sync does not accept a commit yet.
    pub(crate) fn waits(&self, sync: &SyncName, next: &AppliedCommit) -> Option<WaitReason> {
        self.lock().dependencies.waits(sync, next)
    }

    /// Sets the desired set of a Sync, and closes the hand-overs with the previous one. Wakes the
    /// Syncs whose objects were held because of the previous set. [`Peers::hand_overs_ended`] has
    /// to be awaited before anything of the set is written.
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
    pub(crate) fn unready(&self, sync: &SyncName) {
        self.lock().registry.unready(sync);
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

    /// Returns the desired object of a Sync, as a claim.
    pub(crate) fn desired_by(&self, sync: &str, id: &ObjectId) -> Option<ClaimedObject> {
        self.lock().registry.desired_by(sync, id)
    }

    /// True if this Sync exists and has released the object.
    pub(crate) fn has_released(&self, sync: &str, id: &ObjectId) -> bool {
        self.lock().registry.has_released(sync, id)
    }

    /// True if it is certain that there is no such Sync.
    pub(crate) fn is_gone(&self, sync: &str) -> bool {
        self.lock().registry.is_gone(sync)
    }

    /// Returns the Syncs with the same source that have not rendered the commit of this one.
    fn lagging_peers(
        &self,
        own: &SyncName,
        begun: Option<Instant>,
        term: Option<Instant>,
    ) -> Vec<LaggingPeer> {
        self.lock().sources.lagging_peers(own, begun, term)
    }

    /// Returns the state of the Sync that receives moved objects.
    fn arrival(&self, of: (&SyncName, Option<&SyncName>), begun: Option<Instant>, term: Instant) -> Arrival {
        self.lock().sources.arrival(of, begun, term)
    }

    /// Closes the hand-overs into a Sync that use another desired set than this one. Waits until
    /// those in progress have ended.
    pub(crate) async fn closes(&self, sync: &SyncName, set: &Arc<DesiredSet>) {
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
    pub(crate) async fn hand_overs_ended(&self, sync: &SyncName) {
        let closing = self.lock().registry.closing_gates(sync);
        for gate in closing {
            gate.end().await;
        }
        self.lock().registry.drop_ended_gates(sync);
    }

    /// Queries rights.
    pub(crate) async fn learn_rights(&self, open: Vec<UnknownRight>) {
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

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::sources::UNTRIED;
    use super::*;
    use crate::controller::peers::claim_evidence::Evidence;
    use crate::controller::peers::render_attempts::FilesHash;
    use crate::object::ObjectId;
    use crate::render::{FolderContents, RenderOptions};
    use crate::tree::FileTree;

    fn sync(name: &str) -> SyncName {
        SyncName::new("ops", name)
    }

    fn address(repository: &str) -> Address {
        Address::remote(&format!("https://host/{repository}")).unwrap()
    }

    fn commit(digit: &str) -> ObjectHash {
        ObjectHash::parse(&digit.repeat(40)).unwrap()
    }

    /// Returns two Syncs of one repository, of which the first has rendered a commit.
    fn two() -> Peers {
        let all = Peers::default();
        for name in ["a", "b"] {
            all.add(&sync(name));
            all.set_source(&sync(name), &address("one"), &Reference::Head, false);
        }
        all.set_rendered_commit(&sync("a"), commit("1"));
        all
    }

    /// Returns the first Sync that lags behind.
    fn behind(all: &Peers, own: &str) -> Option<SyncName> {
        all.lagging_peers(&sync(own), None, None).first().map(|behind| behind.sync().clone())
    }

    fn rings(bell: &Notify) -> bool {
        bell.notified().now_or_never().is_some()
    }

    #[test]
    fn who_has_not_rendered_the_same_commit_is_behind_and_is_asked_to_look() {
        let all = two();
        assert_eq!(behind(&all, "b"), None, "who has rendered nothing prunes nothing");
        let bell = all.bell(&sync("b"));
        assert!(!rings(&bell.look));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        assert!(rings(&bell.look));
        all.set_rendered_commit(&sync("b"), commit("2"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "another commit is not this one");
        all.set_rendered_commit(&sync("b"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn who_waits_is_woken_by_every_change_and_only_once() {
        let all = two();
        let bell = all.bell(&sync("a"));
        all.set_rendered_commit(&sync("b"), commit("2"));
        assert!(!rings(&bell.again), "nobody waits yet");
        behind(&all, "a");
        all.set_rendered_commit(&sync("b"), commit("2"));
        assert!(!rings(&bell.again), "nothing has changed");
        all.set_rendered_commit(&sync("b"), commit("1"));
        assert!(rings(&bell.again));
        all.invalidate(&sync("b"));
        assert!(!rings(&bell.again), "nobody waits any more");
        all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
        behind(&all, "a");
        all.remove(&sync("b"));
        assert!(rings(&bell.again), "who is gone is waited for no more");
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn only_who_goes_by_the_same_is_waited_for() {
        let all = two();
        all.set_source(&sync("b"), &address("two"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), None);
        all.set_source(&sync("b"), &address("one"), &Reference::branch("main").unwrap(), false);
        assert_eq!(behind(&all, "a"), None);
        all.mark_deleting(&sync("b"));
        assert_eq!(behind(&all, "a"), None);
        all.add(&sync("c"));
        assert_eq!(behind(&all, "a"), Some(sync("c")), "nothing is known of it yet");
        all.set_source(&sync("c"), &address("two"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), None, "it follows something else, whether it comes to it or not");
    }

    #[test]
    fn who_follows_something_else_for_a_while_has_rendered_nothing_of_this() {
        let all = two();
        all.set_rendered_commit(&sync("b"), commit("1"));
        all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), None, "the same repository is as far as it was");
        all.set_source(&sync("b"), &address("two"), &Reference::Head, false);
        all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
    }

    #[test]
    fn who_is_suspended_is_behind_until_it_has_rendered_and_wakes_when_it_goes_on() {
        let all = two();
        let one = address("one");
        let is = |suspended| all.set_source(&sync("b"), &one, &Reference::Head, suspended);
        all.set_rendered_commit(&sync("b"), commit("2"));
        is(true);
        let (own, other) = (all.bell(&sync("a")), all.bell(&sync("b")));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        assert!(rings(&other.look), "it is asked all the same");
        all.set_rendered_commit(&sync("b"), commit("1"));
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None, "what it wants is known");
        is(true);
        assert!(!rings(&own.again), "nothing has changed");
        is(false);
        assert!(rings(&own.again), "it goes on");
        assert_eq!(behind(&all, "a"), Some(sync("b")), "and does not take anything yet");
        all.set_rendered_commit(&sync("b"), commit("1"));
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None);
        all.set_source(&sync("b"), &one, &Reference::branch("main").unwrap(), true);
        assert_eq!(behind(&all, "a"), None, "it follows something else");
    }

    #[test]
    fn who_is_refused_is_behind_whatever_it_rendered_before() {
        let all = two();
        let bell = all.bell(&sync("a"));
        all.set_rendered_commit(&sync("b"), commit("1"));
        all.invalidate(&sync("b"));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.is_unreadable(&sync("b"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "it may want what it followed last");
        all.mark_deleting(&sync("b"));
        assert!(rings(&bell.again));
        assert_eq!(behind(&all, "a"), None, "it is being deleted");
        all.add(&sync("c"));
        all.is_unreadable(&sync("c"));
        assert_eq!(behind(&all, "a"), None, "it names no repository");
    }

    #[test]
    fn who_is_gone_does_not_come_back_by_what_it_still_does() {
        let all = two();
        all.remove(&sync("b"));
        let bell = all.bell(&sync("b"));
        all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
        all.invalidate(&sync("b"));
        assert_eq!(behind(&all, "a"), None);
        assert!(!rings(&bell.look));
        all.add(&sync("b"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "it was made anew");
    }

    #[test]
    fn what_was_rendered_as_it_is_asked_for_no_more_does_not_count() {
        let all = two();
        all.set_request(&sync("b"), 1);
        all.rendered(&sync("b"), 1, commit("1"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
        all.set_request(&sync("b"), 2);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.rendered(&sync("b"), 1, commit("1"), commit("1"));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.rendered(&sync("b"), 2, commit("1"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn who_has_gone_back_waits_neither_for_who_goes_on_nor_for_who_stays() {
        let all = two();
        let behind = |name: &str| behind(&all, name);
        // The first has rolled back the second commit.
        all.rendered(&sync("a"), 0, commit("1"), commit("2"));
        all.set_rendered_commit(&sync("b"), commit("1"));
        assert_eq!((behind("a"), behind("b")), (None, None), "the other one waits for it");
        all.set_rendered_commit(&sync("b"), commit("2"));
        assert_eq!((behind("a"), behind("b")), (None, None), "the other one has taken it up");
        all.set_rendered_commit(&sync("b"), commit("3"));
        assert_eq!((behind("a"), behind("b")), (Some(sync("b")), Some(sync("a"))));
    }

    /// Records a failed attempt at a commit that may contain any object.
    fn tried(all: &Peers, digit: &str, files: Option<FilesHash>) {
        tried_with(all, digit, files, Evidence::Anything(FolderContents::default()));
    }

    fn tried_with(all: &Peers, digit: &str, files: Option<FilesHash>, evidence: Evidence) {
        let (commit, evidence) = (commit(digit), Arc::new(evidence));
        let tried = FailedAttempt {
            commit,
            evidence,
            memory: None,
            files,
            same_in: Vec::new(),
            is_final: true,
            cluster: None,
        };
        all.tried(&sync("b"), 0, tried.after(all.last_tried(&sync("b")).as_ref()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sync_that_has_not_tried_is_waited_for_but_not_for_long() {
        let all = two();
        assert!(matches!(all.lagging_peers(&sync("a"), None, None).as_slice(), [LaggingPeer::Untried(..)]));
        tokio::time::advance(UNTRIED).await;
        assert_eq!(behind(&all, "a"), None);
        // It has a new request, and gets its time again.
        all.set_request(&sync("b"), 1);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        tokio::time::advance(UNTRIED).await;
        assert_eq!(behind(&all, "a"), None);
        all.set_rendered_commit(&sync("a"), commit("2"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "another commit is another question");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sync_of_another_namespace_that_changes_all_the_time_holds_up_nobody() {
        let all = two();
        let stranger = SyncName::new("other", "c");
        all.add(&stranger);
        all.set_source(&stranger, &address("one"), &Reference::Head, false);
        all.set_rendered_commit(&sync("b"), commit("1"));
        assert_eq!(behind(&all, "a"), Some(stranger.clone()));
        let mut held = 0;
        for asked in 1..60 {
            tokio::time::advance(Duration::from_secs(5)).await;
            all.set_request(&stranger, asked);
            held += usize::from(behind(&all, "a").is_some());
        }
        assert!((5..=15).contains(&held), "for 10 s of each minute: {held} of 59 times");
        // In its own namespace it gets its time again each time.
        tokio::time::advance(UNTRIED).await;
        all.set_request(&sync("b"), 1);
        tokio::time::advance(UNTRIED).await;
        all.set_request(&sync("b"), 2);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
    }

    #[test]
    fn a_sync_that_is_refused_or_shut_out_holds_nothing() {
        let all = two();
        let own = all.bell(&sync("a"));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.is_refused(&sync("b"), true);
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None);
        all.is_refused(&sync("b"), false);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.is_shut_out(&sync("b"), true);
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None);
        // Another repository may grant access.
        all.set_source(&sync("b"), &address("two"), &Reference::Head, false);
        all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
    }

    #[test]
    fn a_failed_try_counts_until_the_commit_is_rendered_also_of_a_suspended_sync() {
        let all = two();
        let (own, other) = (all.bell(&sync("a")), all.bell(&sync("b")));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        assert!(rings(&other.look));
        tried(&all, "1", None);
        assert!(rings(&own.again));
        assert!(matches!(all.lagging_peers(&sync("a"), None, None).as_slice(), [LaggingPeer::Failed(..)]));
        assert!(!rings(&other.look), "it has looked");
        all.set_source(&sync("b"), &address("one"), &Reference::Head, true);
        tried(&all, "1", None);
        assert_eq!(behind(&all, "a"), Some(sync("b")), "it may take the object when it goes on");
        all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
        all.set_rendered_commit(&sync("b"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn an_object_has_not_moved_to_files_that_stay_the_same() {
        let all = two();
        let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
        let may_hold = |left: &str| all.last_tried(&sync("b")).unwrap().may_hold(&id, Some(&commit(left)));
        tried(&all, "1", Some([1; 32]));
        tried(&all, "2", Some([1; 32]));
        assert!(!may_hold("1") && may_hold("7"));
        assert!(all.last_tried(&sync("b")).unwrap().may_hold(&id, None), "nobody knows since when");
        tried(&all, "3", Some([1; 32]));
        assert!(!may_hold("1") && !may_hold("2"));
        tried(&all, "4", Some([2; 32]));
        assert!(may_hold("1") && may_hold("3"), "other files may hold it");
        tried(&all, "5", None);
        tried(&all, "6", None);
        assert!(may_hold("5"), "unknown files are not the same");
    }

    #[test]
    fn files_that_stay_the_same_hold_what_they_name() {
        let all = two();
        let text = "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: shop, name: a}\n---\nkind: [\n";
        for evidence in [Evidence::Files, Evidence::Anything] {
            for digit in ["1", "2"] {
                let tree = FileTree::from_texts([("bad.yaml", text)]);
                let contents = FolderContents::from_tree(&tree, &RenderOptions::default());
                tried_with(&all, digit, Some([1; 32]), evidence(contents));
            }
            let may_hold = |id: &str| {
                let id = ObjectId::parse(id).unwrap();
                all.last_tried(&sync("b")).unwrap().may_hold(&id, Some(&commit("1")))
            };
            assert!(may_hold("/ConfigMap|shop/a"), "it was copied there in an earlier commit");
            assert!(!may_hold("/ConfigMap|shop/b"));
        }
    }
}
