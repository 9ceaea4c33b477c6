//! PeerSources: the Syncs of the same repository, and the commit that each has rendered.
//!
//! In: the revision that each Sync has rendered last, and failed attempts. Out: the Syncs that lag
//! behind and may still claim an object that another one is about to prune. An object that moves
//! between two folders in one commit is not pruned before the other Sync has read that commit. A
//! Sync that has not tried the commit yet gets a poll request and is waited for, but not long; one
//! that tried and failed counts by the evidence of its files; one that is refused, or cannot read
//! the repository, claims nothing. A waiting Sync is woken by every change. A suspended Sync
//! renders on request and adopts nothing.

mod arrival;
pub(crate) mod claim_evidence;
pub(crate) mod claim_rights;
pub(crate) mod claims;
pub(crate) mod dependencies;
pub(crate) mod latest_revisions;
pub(crate) mod registry;
pub(crate) mod render_attempts;
pub(crate) mod transfer_gate;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::api::SyncName;
use crate::clock;
use crate::source::webhook_call::{RepositoryNames, repository_name};
use crate::source::{Address, ObjectHash, Reference};
pub(crate) use arrival::Arrival;
use arrival::LastLook;
use claim_rights::ClaimRights;
use dependencies::Dependencies;
use latest_revisions::LatestRevisions;
use registry::Registry;
use render_attempts::{FailedAttempt, LaggingPeer};

/// Longest wait for a Sync that has not tried a commit yet.
const UNTRIED: Duration = Duration::from_secs(10);

/// A Sync of another namespace gets that time again at most once in this interval, so that one
/// whose spec changes all the time does not delay others.
const ANEW: Duration = Duration::from_secs(60);

/// Source of a Sync.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum PeerState {
    /// The Sync exists, and its source is not known yet.
    #[default]
    Unknown,
    /// The Sync claims nothing permanently: it is being deleted, or names no repository.
    Rests,
    /// The Sync has a source.
    Follows(PeerSource),
}

/// Source of a Sync, and the commit of it that the Sync has rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PeerSource {
    address: Address,
    reference: Reference,
    /// The Sync renders only on request, and adopts nothing.
    suspended: bool,
    /// The rendered commits, for the newest spec.
    at: Option<RenderedCommits>,
}

/// Commits that a Sync has rendered: the applied one, and the newest that it has read. They differ
/// after a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RenderedCommits {
    held: ObjectHash,
    newest: ObjectHash,
}

impl RenderedCommits {
    /// True if both have rendered the same commit. A Sync that waits for a peer which has rolled
    /// back never renders the commit that was rolled back; the two have the applied commit in
    /// common.
    fn meets(self, other: Self) -> bool {
        let one = |commit| commit == other.held || commit == other.newest;
        one(self.held) || one(self.newest)
    }
}

impl PeerSource {
    fn is_beside(&self, other: &Self) -> bool {
        (&self.address, &self.reference) == (&other.address, &other.reference)
    }
}

/// Notifies that wake the worker of a Sync.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    /// A peer waits until the Sync has polled its repository.
    pub(crate) look: Notify,
    /// A peer that this Sync waits for has changed.
    pub(crate) again: Notify,
    /// The repository is reported to have changed, so that a recent poll does not count.
    pub(crate) called: Notify,
}

#[derive(Debug, Default)]
struct Peer {
    course: PeerState,
    /// Number of the newest request.
    asked: u64,
    /// Time since which the request has been the newest one.
    since: Option<Instant>,
    /// The same time as it counts in other namespaces.
    since_elsewhere: Option<Instant>,
    /// Time since which the applied commit has been the same.
    came: Option<Instant>,
    /// The last commit that it could not render.
    tried: Option<FailedAttempt>,
    /// Its spec is refused.
    is_refused: bool,
    /// The repository cannot be read, and waiting does not help.
    is_shut_out: bool,
    /// The last poll that succeeded.
    looked: Option<LastLook>,
    /// Time at which it was last asked to poll for Syncs that move objects to it.
    called: Option<Instant>,
    bell: Arc<Wakeups>,
    /// Syncs that wait for it.
    waiting: BTreeSet<SyncName>,
}

impl Peer {
    /// Starts the time in which the Sync has to try its commit.
    fn begins(&mut self) {
        let now = clock::now();
        self.since = Some(now);
        if self.since_elsewhere.is_none_or(|last| now.saturating_duration_since(last) >= ANEW) {
            self.since_elsewhere = Some(now);
        }
    }
}

/// Knowledge of the Syncs of a daemon about each other.
#[derive(Default)]
pub struct Peers {
    /// Desired and applied objects of all Syncs, for hand-overs between them.
    pub(in crate::controller) registry: Registry,
    /// Sources of all Syncs, and the commits that they have rendered.
    pub(in crate::controller) sources: PeerSources,
    /// Access reviews by which claims on objects count.
    claim_rights: ClaimRights,
    /// The graph of `spec.dependsOn` between Syncs.
    pub(in crate::controller) dependencies: Dependencies,
    /// Newest known revision of each repository and ref.
    pub(in crate::controller) heads: LatestRevisions,
}

impl Peers {
    /// Adds a Sync.
    pub(crate) fn add(&self, sync: &SyncName) {
        self.registry.add(sync);
        self.sources.add(sync);
        self.dependencies.add(sync);
    }

    /// Removes a Sync, and wakes those that wait for it.
    pub(crate) fn remove(&self, sync: &SyncName) {
        let held = self.registry.remove(sync);
        self.sources.wake(&held);
        self.claim_rights.forget(sync);
        self.sources.remove(sync);
        self.dependencies.remove(sync);
    }
}

/// All Syncs that this daemon knows.
#[derive(Debug, Default)]
pub(crate) struct PeerSources {
    all: Mutex<HashMap<SyncName, Peer>>,
    /// Syncs that move their objects to a Sync which does not exist, with the name of that one.
    missing: Mutex<HashMap<SyncName, SyncName>>,
}

impl PeerSources {
    fn lock(&self) -> MutexGuard<'_, HashMap<SyncName, Peer>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self) -> MutexGuard<'_, HashMap<SyncName, SyncName>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a Sync.
    pub(crate) fn add(&self, sync: &SyncName) {
        let anew = || {
            let mut known = Peer::default();
            known.begins();
            known
        };
        let mut all = self.lock();
        if !all.contains_key(sync) {
            all.insert(sync.clone(), anew());
            drop(all);
            self.comes_to_be(sync);
        }
    }

    /// Removes a Sync.
    pub(crate) fn remove(&self, sync: &SyncName) {
        let mut all = self.lock();
        let gone = all.remove(sync);
        self.missing().remove(sync);
        wake(&all, &gone.map(|known| known.waiting).unwrap_or_default());
    }

    /// Returns the notifies that wake a Sync. A removed Sync gets unused ones: a task of it that
    /// has not ended yet does not add it again.
    pub(crate) fn bell(&self, sync: &SyncName) -> Arc<Wakeups> {
        self.lock().get(sync).map(|known| known.bell.clone()).unwrap_or_default()
    }

    /// Records that a Sync is being deleted and claims nothing any more.
    pub(crate) fn mark_deleting(&self, sync: &SyncName) {
        self.change(sync, |_| PeerState::Rests);
    }

    /// Records the source of a Sync; if that is unchanged, its rendered commits stay.
    pub(crate) fn set_source(
        &self,
        sync: &SyncName,
        address: &Address,
        reference: &Reference,
        suspended: bool,
    ) {
        let (address, reference) = (address.clone(), reference.clone());
        let path = PeerSource { address, reference, suspended, at: None };
        self.change(sync, |it| match &it.course {
            PeerState::Follows(known) if known.is_beside(&path) && known.suspended == suspended => {
                PeerState::Follows(known.clone())
            }
            _ => PeerState::Follows(path),
        });
    }

    /// Records that the source of a refused Sync cannot be read; it may still claim what it claimed
    /// last.
    pub(crate) fn is_unreadable(&self, sync: &SyncName) {
        self.change(sync, |it| match &it.course {
            PeerState::Follows(path) => PeerState::Follows(PeerSource { at: None, ..path.clone() }),
            PeerState::Unknown | PeerState::Rests => PeerState::Rests,
        });
    }

    /// Records the number of a new request: the rendered commits are not of its spec.
    pub(crate) fn set_request(&self, sync: &SyncName, asked: u64) {
        if let Some(known) = self.lock().get_mut(sync) {
            known.asked = asked;
            known.begins();
            known.tried = None;
        }
        self.invalidate(sync);
    }

    /// Records that the spec of a Sync is refused, or accepted again. A refused Sync claims nothing
    /// of the newest commit.
    pub(crate) fn is_refused(&self, sync: &SyncName, refused: bool) {
        self.mark(sync, |known| std::mem::replace(&mut known.is_refused, refused) != refused);
    }

    /// Records that a Sync cannot read its repository for a permanent reason, or can read it again.
    pub(crate) fn is_shut_out(&self, sync: &SyncName, shut_out: bool) {
        self.mark(sync, |known| std::mem::replace(&mut known.is_shut_out, shut_out) != shut_out);
    }

    /// Records that a Sync could not render a commit.
    pub(crate) fn tried(&self, sync: &SyncName, asked: u64, tried: FailedAttempt) {
        self.mark(sync, |known| {
            let is_news = known.asked <= asked
                && known.tried.as_ref().is_none_or(|last| {
                    (last.commit, &last.evidence, last.is_final)
                        != (tried.commit, &tried.evidence, tried.is_final)
                });
            if is_news {
                known.tried = Some(tried);
            }
            is_news
        });
    }

    /// Returns the last commit that a Sync could not render, with the evidence of its files.
    pub(crate) fn last_tried(&self, sync: &SyncName) -> Option<FailedAttempt> {
        self.lock().get(sync)?.tried.clone()
    }

    /// Changes the entry of a Sync, and wakes the Syncs that wait for it if that has an effect.
    fn mark(&self, sync: &SyncName, change: impl FnOnce(&mut Peer) -> bool) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(sync) else { return };
        if change(known) {
            let waiting = std::mem::take(&mut known.waiting);
            wake(&all, &waiting);
        }
    }

    /// Records that a Sync has rendered the commit that it applies, for the request of this number,
    /// which may not be the newest one. `newest` differs from `held` after a rollback.
    pub(crate) fn rendered(&self, sync: &SyncName, asked: u64, held: ObjectHash, newest: ObjectHash) {
        self.come(sync, asked, Some(RenderedCommits { held, newest }));
    }

    /// Records that the rendered commits of a Sync are not those of its newest spec, or that this
    /// is uncertain.
    pub(crate) fn invalidate(&self, sync: &SyncName) {
        self.come(sync, u64::MAX, None);
    }

    /// Records that a Sync has rendered this commit.
    pub(crate) fn set_rendered_commit(&self, sync: &SyncName, at: ObjectHash) {
        self.come(sync, u64::MAX, Some(RenderedCommits { held: at, newest: at }));
    }

    /// Lets all Syncs poll whose repository has one of these names; returns how many there are.
    pub(crate) fn called(&self, names: &RepositoryNames) -> usize {
        let all = self.lock();
        let follows = |known: &&Peer| match &known.course {
            PeerState::Follows(path) if !path.suspended => {
                repository_name(&path.address.to_string()).is_some_and(|name| names.contains(&name))
            }
            PeerState::Follows(_) | PeerState::Unknown | PeerState::Rests => false,
        };
        all.values().filter(follows).map(|known| known.bell.called.notify_one()).count()
    }

    fn come(&self, sync: &SyncName, asked: u64, at: Option<RenderedCommits>) {
        if let Some(known) = self.lock().get_mut(sync) {
            // A commit that was rendered in the end has not failed.
            known.tried = known.tried.take().filter(|tried| at.is_none_or(|at| at.held != tried.commit));
        }
        self.change(sync, |known| match &known.course {
            PeerState::Follows(path) if known.asked <= asked => {
                PeerState::Follows(PeerSource { at, ..path.clone() })
            }
            other => other.clone(),
        });
    }

    fn change(&self, sync: &SyncName, to: impl FnOnce(&Peer) -> PeerState) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(sync) else { return };
        let course = to(known);
        if known.course == course {
            return;
        }
        let path = |course: &PeerState| match course {
            PeerState::Follows(path) => Some(path.clone()),
            PeerState::Unknown | PeerState::Rests => None,
        };
        let (before, now) = (path(&known.course), path(&course));
        if !before.as_ref().zip(now.as_ref()).is_some_and(|(before, now)| before.is_beside(now)) {
            (known.tried, known.is_shut_out, known.looked) = (None, false, None);
        }
        let (before, now) = (before.and_then(|path| path.at), now.and_then(|path| path.at));
        if before != now {
            known.came = Some(clock::now());
        }
        if before.is_some() && now.is_none() {
            // It has to try again, and gets its time for that.
            known.begins();
        }
        known.course = course;
        let waiting = std::mem::take(&mut known.waiting);
        wake(&all, &waiting);
    }

    /// Returns the Syncs with the same source that have not rendered the commit of this one, as far
    /// as they count, sorted by name. Those that have not tried the commit are asked to poll, and
    /// this Sync is woken when one of them changes. The wait of this Sync began when it applied the
    /// commit, or at `begun`, and at the earliest when the term of this daemon began.
    pub(crate) fn lagging_peers(
        &self,
        own: &SyncName,
        begun: Option<Instant>,
        term: Option<Instant>,
    ) -> Vec<LaggingPeer> {
        let mut all = self.lock();
        let Some(known) = all.get(own) else { return Vec::new() };
        let PeerState::Follows(path) = known.course.clone() else { return Vec::new() };
        let (Some(at), came) = (path.at, begun.or(known.came)) else { return Vec::new() };
        let (mut behind, now) = (Vec::new(), clock::now());
        for (name, other) in all.iter_mut().filter(|(name, _)| *name != own) {
            match &other.course {
                PeerState::Unknown => {}
                PeerState::Follows(its) if its.is_beside(&path) => {
                    // Before a suspended Sync resumes, it publishes claims without adopting the
                    // objects.
                    if its.suspended {
                        other.waiting.insert(own.clone());
                    }
                    if its.at.is_some_and(|its| its.meets(at)) {
                        continue;
                    }
                }
                PeerState::Follows(_) | PeerState::Rests => continue,
            }
            if other.is_refused || other.is_shut_out {
                continue;
            }
            let is_this = |tried: &&FailedAttempt| tried.commit == at.held || tried.commit == at.newest;
            match other.tried.as_ref().filter(is_this) {
                Some(tried) => behind.push(LaggingPeer::Failed(name.clone(), tried.clone())),
                None => {
                    let is_at_home = name.namespace == own.namespace;
                    let since = if is_at_home { other.since } else { other.since_elsewhere };
                    let until = came.max(since).max(term).unwrap_or(now) + UNTRIED;
                    if until <= now {
                        continue;
                    }
                    other.bell.look.notify_one();
                    behind.push(LaggingPeer::Untried(name.clone(), until));
                }
            }
        }
        behind.sort_by(|a, b| a.sync().cmp(b.sync()));
        // A Sync that has not tried yet causes a wake on its own, and the others will be checked
        // again then: else a hundred Syncs that wait for each other would be woken a hundred times
        // each.
        let untried = behind.iter().find(|one| matches!(one, LaggingPeer::Untried(..)));
        let calls = untried.map_or_else(|| behind.iter().collect(), |first| vec![first]);
        for one in calls {
            all.get_mut(one.sync()).into_iter().for_each(|other| {
                other.waiting.insert(own.clone());
            });
        }
        behind
    }
}

impl PeerSources {
    /// Wakes these Syncs.
    pub(crate) fn wake(&self, syncs: &BTreeSet<SyncName>) {
        wake(&self.lock(), syncs);
    }
}

/// Wakes the Syncs that have waited.
fn wake(all: &HashMap<SyncName, Peer>, waiting: &BTreeSet<SyncName>) {
    waiting.iter().filter_map(|one| all.get(one)).for_each(|one| one.bell.again.notify_one());
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

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
    fn two() -> PeerSources {
        let all = PeerSources::default();
        for name in ["a", "b"] {
            all.add(&sync(name));
            all.set_source(&sync(name), &address("one"), &Reference::Head, false);
        }
        all.set_rendered_commit(&sync("a"), commit("1"));
        all
    }

    /// Returns the first Sync that lags behind.
    fn behind(all: &PeerSources, own: &str) -> Option<SyncName> {
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
    fn tried(all: &PeerSources, digit: &str, files: Option<FilesHash>) {
        tried_with(all, digit, files, Evidence::Anything(FolderContents::default()));
    }

    fn tried_with(all: &PeerSources, digit: &str, files: Option<FilesHash>, evidence: Evidence) {
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
