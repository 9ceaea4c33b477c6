//! Sources of all Syncs, and the commits that they have rendered.
//!
//! In: the source of each Sync, its renders and failed attempts. Out: the Syncs that lag behind a
//! commit, and the wakes of those that wait for them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::arrival::LastPoll;
use super::render_attempts::{FailedAttempt, LaggingPeer};
use crate::api::SyncName;
use crate::clock;
use crate::source::webhook_call::{RepositoryNames, repository_name};
use crate::source::{Address, ObjectHash, Reference};

/// Longest wait for a Sync that has not tried a commit yet.
pub(super) const UNTRIED: Duration = Duration::from_secs(10);

/// A Sync of another namespace gets that time again at most once in this interval, so that one
/// whose spec changes all the time does not delay others.
const RECHECK_AFTER: Duration = Duration::from_secs(60);

/// Source of a Sync.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum PeerState {
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
pub(super) struct PeerSource {
    pub(super) address: Address,
    pub(super) reference: Reference,
    /// The Sync renders only on request, and adopts nothing.
    pub(super) suspended: bool,
    /// The rendered commits, for the newest spec.
    pub(super) at: Option<RenderedCommits>,
}

/// Commits that a Sync has rendered: the applied one, and the newest that it has read. They differ
/// after a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RenderedCommits {
    pub(super) held: ObjectHash,
    pub(super) newest: ObjectHash,
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
pub(super) struct Peer {
    pub(super) course: PeerState,
    /// Addresses of the mounts of its source.
    pub(super) mounts: Vec<Address>,
    /// Number of the newest request.
    pub(super) asked: u64,
    /// Time since which the request has been the newest one.
    pub(super) since: Option<Instant>,
    /// The same time as it counts in other namespaces.
    pub(super) since_elsewhere: Option<Instant>,
    /// Time since which the applied commit has been the same.
    pub(super) came: Option<Instant>,
    /// The last commit that it could not render.
    pub(super) tried: Option<FailedAttempt>,
    /// Its spec is refused.
    pub(super) is_refused: bool,
    /// The repository cannot be read, and waiting does not help.
    pub(super) is_shut_out: bool,
    /// The last poll that succeeded.
    pub(super) last_poll: Option<LastPoll>,
    /// Time at which it was last asked to poll for Syncs that move objects to it.
    pub(super) called: Option<Instant>,
    pub(super) bell: Arc<Wakeups>,
    /// Syncs that wait for it.
    pub(super) waiting: BTreeSet<SyncName>,
}

impl Peer {
    /// Starts the time in which the Sync has to try its commit.
    fn begins(&mut self) {
        let now = clock::now();
        self.since = Some(now);
        if self.since_elsewhere.is_none_or(|last| now.saturating_duration_since(last) >= RECHECK_AFTER) {
            self.since_elsewhere = Some(now);
        }
    }
}

/// All Syncs that this daemon knows.
#[derive(Debug, Default)]
pub(super) struct PeerSources {
    pub(super) all: HashMap<SyncName, Peer>,
    /// Syncs that move their objects to a Sync which does not exist, with the name of that one.
    pub(super) missing: HashMap<SyncName, SyncName>,
}

impl PeerSources {
    /// Adds a Sync.
    pub(super) fn add(&mut self, sync: &SyncName) {
        if !self.all.contains_key(sync) {
            let mut peer = Peer::default();
            peer.begins();
            self.all.insert(sync.clone(), peer);
            self.comes_to_be(sync);
        }
    }

    /// Removes a Sync.
    pub(super) fn remove(&mut self, sync: &SyncName) {
        let gone = self.all.remove(sync);
        self.missing.remove(sync);
        wake(&self.all, &gone.map(|known| known.waiting).unwrap_or_default());
    }

    /// Returns the notifies that wake a Sync. A removed Sync gets unused ones: a task of it that
    /// has not ended yet does not add it again.
    pub(super) fn wakeups(&self, sync: &SyncName) -> Arc<Wakeups> {
        self.all.get(sync).map(|known| known.bell.clone()).unwrap_or_default()
    }

    /// Records that a Sync is being deleted and claims nothing any more.
    pub(super) fn mark_deleting(&mut self, sync: &SyncName) {
        self.change(sync, |_| PeerState::Rests);
    }

    /// Records the source of a Sync; if that is unchanged, its rendered commits stay.
    pub(super) fn set_source(
        &mut self,
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

    /// Records the addresses of the mounts of a Sync.
    pub(super) fn set_mounts(&mut self, sync: &SyncName, mounts: Vec<Address>) {
        if let Some(known) = self.all.get_mut(sync) {
            known.mounts = mounts;
        }
    }

    /// Records that the source of a refused Sync cannot be read; it may still claim what it claimed
    /// last.
    pub(super) fn mark_unreadable(&mut self, sync: &SyncName) {
        self.change(sync, |it| match &it.course {
            PeerState::Follows(path) => PeerState::Follows(PeerSource { at: None, ..path.clone() }),
            PeerState::Unknown | PeerState::Rests => PeerState::Rests,
        });
    }

    /// Records the number of a new request: the rendered commits are not of its spec.
    pub(super) fn set_request(&mut self, sync: &SyncName, asked: u64) {
        if let Some(known) = self.all.get_mut(sync) {
            known.asked = asked;
            known.begins();
            known.tried = None;
        }
        self.invalidate(sync);
    }

    /// Records that the spec of a Sync is refused, or accepted again. A refused Sync claims nothing
    /// of the newest commit.
    pub(super) fn set_refused(&mut self, sync: &SyncName, refused: bool) {
        self.mark(sync, |known| std::mem::replace(&mut known.is_refused, refused) != refused);
    }

    /// Records that a Sync cannot read its repository for a permanent reason, or can read it again.
    pub(super) fn set_shut_out(&mut self, sync: &SyncName, shut_out: bool) {
        self.mark(sync, |known| std::mem::replace(&mut known.is_shut_out, shut_out) != shut_out);
    }

    /// Records that a Sync could not render a commit.
    pub(super) fn record_failed_attempt(&mut self, sync: &SyncName, asked: u64, tried: FailedAttempt) {
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
    pub(super) fn last_failed_attempt(&self, sync: &SyncName) -> Option<FailedAttempt> {
        self.all.get(sync)?.tried.clone()
    }

    /// Changes the entry of a Sync, and wakes the Syncs that wait for it if that has an effect.
    pub(super) fn mark(&mut self, sync: &SyncName, change: impl FnOnce(&mut Peer) -> bool) {
        let all = &mut self.all;
        let Some(known) = all.get_mut(sync) else { return };
        if change(known) {
            let waiting = std::mem::take(&mut known.waiting);
            wake(all, &waiting);
        }
    }

    /// Records that a Sync has rendered the commit that it applies, for the request of this number,
    /// which may not be the newest one. `newest` differs from `held` after a rollback.
    pub(super) fn set_rendered(&mut self, sync: &SyncName, asked: u64, held: ObjectHash, newest: ObjectHash) {
        self.come(sync, asked, Some(RenderedCommits { held, newest }));
    }

    /// Records that the rendered commits of a Sync are not those of its newest spec, or that this
    /// is uncertain.
    pub(super) fn invalidate(&mut self, sync: &SyncName) {
        self.come(sync, u64::MAX, None);
    }

    /// Records that a Sync has rendered this commit.
    pub(super) fn set_rendered_commit(&mut self, sync: &SyncName, at: ObjectHash) {
        self.come(sync, u64::MAX, Some(RenderedCommits { held: at, newest: at }));
    }

    /// Lets all Syncs poll whose repository has one of these names; returns how many there are.
    pub(super) fn request_polls(&self, names: &RepositoryNames) -> usize {
        let all = &self.all;
        let follows = |known: &&Peer| match &known.course {
            PeerState::Follows(path) if !path.suspended => {
                let is_called = |address: &Address| {
                    repository_name(&address.to_string()).is_some_and(|name| names.contains(&name))
                };
                is_called(&path.address) || known.mounts.iter().any(is_called)
            }
            PeerState::Follows(_) | PeerState::Unknown | PeerState::Rests => false,
        };
        all.values().filter(follows).map(|known| known.bell.called.notify_one()).count()
    }

    fn come(&mut self, sync: &SyncName, asked: u64, at: Option<RenderedCommits>) {
        if let Some(known) = self.all.get_mut(sync) {
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

    fn change(&mut self, sync: &SyncName, to: impl FnOnce(&Peer) -> PeerState) {
        let all = &mut self.all;
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
            (known.tried, known.is_shut_out, known.last_poll) = (None, false, None);
        }
        let (before, now) = (before.and_then(|path| path.at), now.and_then(|path| path.at));
        if before != now {
            known.came = Some(clock::now());
        }
        if before.is_some() && now.is_none() {
            // It has to try again, and its time limit starts once more.
            known.begins();
        }
        known.course = course;
        let waiting = std::mem::take(&mut known.waiting);
        wake(all, &waiting);
    }

    /// Returns the Syncs with the same source that have not rendered the commit of this one, as far
    /// as they count, sorted by name. Those that have not tried the commit are asked to poll, and
    /// this Sync is woken when one of them changes. The wait of this Sync began when it applied the
    /// commit, or at `begun`, and at the earliest when the term of this daemon began.
    pub(super) fn lagging_peers(
        &mut self,
        own: &SyncName,
        begun: Option<Instant>,
        term: Option<Instant>,
    ) -> Vec<LaggingPeer> {
        let all = &mut self.all;
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
    pub(super) fn wake(&self, syncs: &BTreeSet<SyncName>) {
        wake(&self.all, syncs);
    }
}

/// Wakes the Syncs that have waited.
pub(super) fn wake(all: &HashMap<SyncName, Peer>, waiting: &BTreeSet<SyncName>) {
    waiting.iter().filter_map(|one| all.get(one)).for_each(|one| one.bell.again.notify_one());
}
