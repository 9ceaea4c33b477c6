//! Mirror of one remote repository: refs from the server, objects on the local disk.
//!
//! In: a remote and a folder.
//! Out: revisions and snapshots. All calls are synchronous and have deadlines; the asynchronous
//! interface is `repository.rs`. A damaged store is cloned again; the old store stays in use until
//! the new one is complete.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::error::Error;
use super::memory::Memory;
use super::remote::Remote;
use super::revision::{AdvertisedRef, History, ObjectHash, Reference, Revision};
use super::store::{self, ObjectStore};
use crate::ancestry::relate;
use crate::upload_pack::FetchRequest;
use crate::worker_pool::ContactResult;
use moorline_core::did_you_mean::nearest_name;
use moorline_runtime::clock;

/// Maximum number of bytes of a pack.
pub(super) const MAX_PACK_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Depths at which history is fetched to detect a force push, one after the other.
pub(super) const NEAR: &[u32] = &[16, 200];
/// Depths if the answer is required.
pub(super) const FAR: &[u32] = &[16, 200, 4_000, 100_000];

/// Maximum number of bytes fetched for such a question.
const MAX_HISTORY_BYTES: u64 = 32 * 1024 * 1024;

/// Mirror of a repository on a server.
#[derive(Debug)]
pub(super) struct Mirror {
    remote: Remote,
    home: PathBuf,
    store: Option<ObjectStore>,
    opened: Option<Opened>,
    bounds: MirrorLimits,
    has_grown: bool,
}

/// Limits of a mirror.
#[derive(Debug, Clone)]
pub(super) struct MirrorLimits {
    pub(super) memory: Memory,
    /// Maximum number of bytes on disk, of all mirrors together.
    pub(super) quota: u64,
}

/// Objects opened for reading, and a commit among them.
struct Opened {
    commit: ObjectHash,
    repository: git2::Repository,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("commit", &self.commit).finish_non_exhaustive()
    }
}

impl Mirror {
    /// Creates a mirror in the folder `home`, which it owns, with the store that was found there.
    pub(super) fn new(
        remote: Remote,
        home: PathBuf,
        store: Option<ObjectStore>,
        bounds: MirrorLimits,
    ) -> Self {
        Self { remote, home, store, opened: None, bounds, has_grown: false }
    }

    /// Replaces the remote, as after changed credentials; fetched objects are kept.
    pub(super) fn replace(&mut self, remote: Remote) {
        self.remote = remote;
    }

    /// True if the commit and its files are here.
    pub(super) fn has(&self, commit: ObjectHash) -> bool {
        let is_open = self.opened.as_ref().is_some_and(|opened| opened.commit == commit);
        is_open || self.store.as_ref().is_some_and(|store| store.has(commit))
    }

    /// Takes the result of the last contact with the server.
    pub(super) fn heard(&mut self) -> ContactResult {
        self.remote.heard()
    }

    /// Resolves `reference` to its current revision.
    pub(super) fn resolve(&mut self, reference: &Reference, by: Instant) -> Result<Revision, Error> {
        let wanted = reference.wanted();
        let listed = if wanted.is_empty() { Vec::new() } else { self.remote.list(&wanted, by)? };
        match reference.choose(&listed) {
            Some(revision) => Ok(revision),
            None => Err(self.missing(reference, by)),
        }
    }

    /// Returns the error for a missing reference.
    fn missing(&mut self, reference: &Reference, by: Instant) -> Error {
        let all = ["HEAD".to_owned(), "refs/heads/".to_owned(), "refs/tags/".to_owned()];
        match self.remote.list(&all, by) {
            Ok(listed) => no_reference(reference, &listed),
            Err(error) => error,
        }
    }

    /// True if something was fetched since the last call.
    pub(super) fn has_grown(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
    }

    /// Removes the objects; they are fetched again when needed.
    pub(super) fn forget(&mut self) {
        self.rest();
        self.store.take().into_iter().for_each(ObjectStore::discard);
    }

    /// Fetches the files of `commit`, unless they are here; returns the number of fetched bytes.
    pub(super) fn fetch(&mut self, commit: ObjectHash, by: Instant) -> Result<u64, Error> {
        let fetched = self.fetch_into(commit, by);
        self.has_grown |= fetched.as_ref().is_ok_and(|bytes| *bytes > 0);
        fetched
    }

    fn fetch_into(&mut self, commit: ObjectHash, by: Instant) -> Result<u64, Error> {
        let Some(store) = self.store.as_mut() else { return self.clone_afresh(commit, by) };
        if store.has(commit) {
            return Ok(0);
        }
        let overgrown = store.is_overgrown();
        if overgrown && let Ok(bytes) = self.clone_afresh(commit, by) {
            return Ok(bytes);
        }
        // A failed clone leaves the old store unchanged, so an ordinary fetch is still possible.
        let Some(store) = self.store.as_mut() else { return Err(Error::Stopped) };
        match add(&mut self.remote, store, commit, &self.bounds, by) {
            Err(Error::Corrupt { .. } | Error::InvalidResponse { .. } | Error::Disk { .. }) if !overgrown => {
                self.clone_afresh(commit, by)
            }
            fetched => fetched,
        }
    }

    /// Clones into a new store, and replaces the old one by it.
    fn clone_afresh(&mut self, commit: ObjectHash, by: Instant) -> Result<u64, Error> {
        let number = self.store.as_ref().map_or(0, ObjectStore::number) + 1;
        let mut fresh = store::begin(&self.home, number)?;
        match add(&mut self.remote, &mut fresh, commit, &self.bounds, by) {
            Ok(bytes) => {
                self.store = Some(fresh.publish(self.store.take())?);
                Ok(bytes)
            }
            Err(error) => {
                fresh.discard();
                Err(error)
            }
        }
    }

    /// Calls `read` with a store that has `commit`, fetched if necessary; repeats it with a fresh
    /// clone if the store turns out to be damaged. Also returns the duration of the fetch.
    pub(super) fn with<T>(
        &mut self,
        commit: ObjectHash,
        by: Instant,
        read: impl Fn(&git2::Repository) -> Result<T, Error>,
    ) -> Result<(T, Option<Duration>), Error> {
        let begun = clock::now();
        store::touch(&self.home);
        self.opened.take_if(|opened| opened.commit != commit);
        let fetched = if self.opened.is_some() { 0 } else { self.fetch(commit, by)? };
        let took = (fetched > 0).then(|| clock::since(begun));
        let read = match self.open(commit).and_then(&read) {
            Err(Error::Corrupt { .. })
                if fetched == 0 || self.store.as_ref().is_some_and(|s| s.tips().len() > 1) =>
            {
                self.rest();
                self.clone_afresh(commit, by)?;
                self.has_grown = true;
                self.open(commit).and_then(read)
            }
            result => result,
        };
        read.map(|read| (read, took))
    }

    fn open(&mut self, commit: ObjectHash) -> Result<&git2::Repository, Error> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => {
                let store = self.store.as_ref().ok_or(Error::Stopped)?;
                Opened { commit, repository: store.repository()? }
            }
        };
        Ok(&self.opened.insert(opened).repository)
    }

    /// Closes the objects while there is no reader, so that no memory stays mapped between two
    /// revisions.
    pub(super) fn rest(&mut self) {
        self.opened = None;
    }

    /// Relates `old` and `new`, and fetches history in steps of `depths`; both were seen before,
    /// but not necessarily fetched.
    pub(super) fn history(
        &mut self,
        (old, new): (ObjectHash, ObjectHash),
        depths: &[u32],
        by: Instant,
    ) -> Result<History, Error> {
        let here = self.store.as_ref().map(ObjectStore::repository).transpose()?;
        let known = |commit: ObjectHash| here.as_ref().and_then(|here| parents(here, commit));
        let mut found = relate(old, new, known);
        for &depth in depths {
            if found != History::Unknown || !self.remote.cuts_history() {
                break;
            }
            let number = self.store.as_ref().map_or(0, ObjectStore::number) + 1;
            let past = store::begin(&self.home, number)?;
            let within = (&self.bounds.memory, by);
            let fetched =
                fetch_past(&mut self.remote, &past, &[old, new], depth, within).or_else(
                    |error| match error {
                        // Without the older commit, in case that the server does not serve it.
                        Error::TooLarge { .. } => Err(error),
                        _ => fetch_past(&mut self.remote, &past, &[new], depth, within),
                    },
                );
            if fetched.is_ok()
                && let Ok(there) = past.repository()
            {
                found = relate(old, new, |commit| parents(&there, commit).or_else(|| known(commit)));
            }
            past.discard();
            match fetched {
                // A deeper history is even larger.
                Err(Error::TooLarge { .. }) => break,
                fetched => fetched?,
            }
        }
        Ok(found)
    }

    /// Returns the number of packs on disk and their bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        self.store.as_ref().map_or((0, 0), ObjectStore::size)
    }
}

/// Returns the error for a `reference` that is not in `listed`, all refs of a repository.
pub(super) fn no_reference(reference: &Reference, listed: &[AdvertisedRef]) -> Error {
    if listed.is_empty() {
        return Error::Empty;
    }
    let names = |front: &'static str| listed.iter().filter_map(move |found| found.name.strip_prefix(front));
    let near = match reference {
        Reference::Branch(name) => nearest_name(name, names("refs/heads/")),
        Reference::Tag(name) => nearest_name(name, names("refs/tags/")),
        Reference::Named(name) => nearest_name(name, names("refs/tags/").chain(names("refs/heads/"))),
        Reference::Head | Reference::Semver(_) | Reference::Commit(_) | Reference::Artifact(_) => None,
    };
    Error::NoReference { reference: reference.to_string().into(), nearest: near.map(Into::into) }
}

/// Fetches `commit` into `store`, without its history if the server supports that.
fn add(
    remote: &mut Remote,
    store: &mut ObjectStore,
    commit: ObjectHash,
    bounds: &MirrorLimits,
    by: Instant,
) -> Result<u64, Error> {
    let wanted = FetchRequest {
        commits: &[commit],
        have: store.tips(),
        shallow: store.shallow(),
        depth: Some(1),
        commits_only: false,
    };
    // A pack that fills the quota would only displace all other mirrors.
    let most = MAX_PACK_BYTES.min(bounds.quota / 2);
    let received = store.add((&bounds.memory, by), |pack| remote.fetch(&wanted, pack, most, by))?;
    if !store.has(commit) {
        return Err(Error::Corrupt { what: "the server sent a pack without the commit" });
    }
    store.remember(commit, &received.shallow, &received.unshallow)?;
    Ok(received.pack_bytes)
}

fn fetch_past(
    remote: &mut Remote,
    past: &ObjectStore,
    commits: &[ObjectHash],
    depth: u32,
    (memory, by): (&Memory, Instant),
) -> Result<(), Error> {
    let wanted = FetchRequest { commits, depth: Some(depth), commits_only: true, ..FetchRequest::default() };
    past.add((memory, by), |pack| remote.fetch(&wanted, pack, MAX_HISTORY_BYTES, by)).map(drop)
}

pub(super) fn parents(repository: &git2::Repository, commit: ObjectHash) -> Option<Vec<ObjectHash>> {
    let commit = repository.find_commit(commit.oid()).ok()?;
    Some(commit.parent_ids().map(ObjectHash::of).collect())
}
