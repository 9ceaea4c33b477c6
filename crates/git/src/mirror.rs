//! One repository as the daemon keeps it: the server's refs on one side, objects on the local disk on the other.
//!
//! In: a remote and a folder. Out: revisions and snapshots. All of it is synchronous and has deadlines; the
//! asynchronous face is `repository.rs`. What is damaged on disk is cloned again; what is good stays in force
//! until something better is complete.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::error::Error;
use super::history::relate;
use super::memory::Memory;
use super::protocol::Wanted;
use super::remote::Remote;
use super::revision::{Advertised, History, ObjectHash, Reference, Revision};
use super::store::{self, Store};
use super::turns::Heard;
use moorline_core::nearest::nearest;
use moorline_runtime::clock;

/// The most bytes of one pack.
pub(super) const MAX_PACK_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// How far back histories are fetched to tell a force push, in steps.
pub(super) const NEAR: &[u32] = &[16, 200];
/// The same where it has to be known.
pub(super) const FAR: &[u32] = &[16, 200, 4_000, 100_000];

/// The most bytes that such a question may cost.
const MAX_HISTORY_BYTES: u64 = 32 * 1024 * 1024;

/// A mirror of a repository on a server.
#[derive(Debug)]
pub(super) struct Mirror {
    remote: Remote,
    home: PathBuf,
    store: Option<Store>,
    opened: Option<Opened>,
    bounds: Bounds,
    has_grown: bool,
}

/// What a mirror may take.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    pub(super) memory: Memory,
    /// Bytes on the disk, all mirrors together.
    pub(super) quota: u64,
}

/// Objects that were opened for reading, and a commit that is among them.
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
    /// A mirror in the folder `home`, which it shares with nobody, with the store that was found there.
    pub(super) fn new(remote: Remote, home: PathBuf, store: Option<Store>, bounds: Bounds) -> Self {
        Self { remote, home, store, opened: None, bounds, has_grown: false }
    }

    /// Talks to the server in another way from now on, with what was fetched so far.
    pub(super) fn replace(&mut self, remote: Remote) {
        self.remote = remote;
    }

    /// True if the commit and its files are here.
    pub(super) fn has(&self, commit: ObjectHash) -> bool {
        let is_open = self.opened.as_ref().is_some_and(|opened| opened.commit == commit);
        is_open || self.store.as_ref().is_some_and(|store| store.has(commit))
    }

    /// How the server has behaved since this was asked last.
    pub(super) fn heard(&mut self) -> Heard {
        self.remote.heard()
    }

    /// The revision that `reference` stands for now.
    pub(super) fn look(&mut self, reference: &Reference, by: Instant) -> Result<Revision, Error> {
        let wanted = reference.wanted();
        let listed = if wanted.is_empty() { Vec::new() } else { self.remote.list(&wanted, by)? };
        match reference.choose(&listed) {
            Some(revision) => Ok(revision),
            None => Err(self.missing(reference, by)),
        }
    }

    /// Why there is no such reference.
    fn missing(&mut self, reference: &Reference, by: Instant) -> Error {
        let all = ["HEAD".to_owned(), "refs/heads/".to_owned(), "refs/tags/".to_owned()];
        match self.remote.list(&all, by) {
            Ok(listed) => no_reference(reference, &listed),
            Err(error) => error,
        }
    }

    /// True if something was fetched since this was asked last.
    pub(super) fn has_grown(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
    }

    /// Gives up what was fetched: it is fetched anew when it is wanted.
    pub(super) fn forget(&mut self) {
        self.rest();
        self.store.take().into_iter().for_each(Store::discard);
    }

    /// Makes sure that the files of `commit` are here; the bytes that were fetched for it.
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
        // A fresh clone that failed left the store as it was, so the usual way is still open.
        let Some(store) = self.store.as_mut() else { return Err(Error::Stopped) };
        match add(&mut self.remote, store, commit, &self.bounds, by) {
            Err(Error::Corrupt { .. } | Error::BadAnswer { .. } | Error::Disk { .. }) if !overgrown => {
                self.clone_afresh(commit, by)
            }
            fetched => fetched,
        }
    }

    /// Clones into a new store beside the one in force, and exchanges them.
    fn clone_afresh(&mut self, commit: ObjectHash, by: Instant) -> Result<u64, Error> {
        let number = self.store.as_ref().map_or(0, Store::number) + 1;
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

    /// Reads from a store that has `commit`, fetched if need be; once again from a fresh one if the store proves to be
    /// damaged. With it, how long it took to fetch.
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

    /// Nobody wants to read for now: nothing is kept open, so that no memory stays mapped between two revisions.
    pub(super) fn rest(&mut self) {
        self.opened = None;
    }

    /// How `old` and `new` are related, asked in steps of these `depths`; both were seen before, not necessarily fetched.
    pub(super) fn history(
        &mut self,
        (old, new): (ObjectHash, ObjectHash),
        depths: &[u32],
        by: Instant,
    ) -> Result<History, Error> {
        let here = self.store.as_ref().map(Store::repository).transpose()?;
        let known = |commit: ObjectHash| here.as_ref().and_then(|here| parents(here, commit));
        let mut found = relate(old, new, known);
        for &depth in depths {
            if found != History::Unknown || !self.remote.cuts_history() {
                break;
            }
            let number = self.store.as_ref().map_or(0, Store::number) + 1;
            let past = store::begin(&self.home, number)?;
            let within = (&self.bounds.memory, by);
            let fetched =
                fetch_past(&mut self.remote, &past, &[old, new], depth, within).or_else(
                    |error| match error {
                        // Less is asked for where the server does not give out the older one.
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
                // What lies deeper is not less.
                Err(Error::TooLarge { .. }) => break,
                fetched => fetched?,
            }
        }
        Ok(found)
    }

    /// The packs on disk and their bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        self.store.as_ref().map_or((0, 0), Store::size)
    }
}

/// Why `listed`, all refs of a repository, has no `reference`.
pub(super) fn no_reference(reference: &Reference, listed: &[Advertised]) -> Error {
    if listed.is_empty() {
        return Error::Empty;
    }
    let names = |front: &'static str| listed.iter().filter_map(move |found| found.name.strip_prefix(front));
    let near = match reference {
        Reference::Branch(name) => nearest(name, names("refs/heads/")),
        Reference::Tag(name) => nearest(name, names("refs/tags/")),
        Reference::Named(name) => nearest(name, names("refs/tags/").chain(names("refs/heads/"))),
        Reference::Head | Reference::Semver(_) | Reference::Commit(_) => None,
    };
    Error::NoReference { reference: reference.to_string().into(), nearest: near.map(Into::into) }
}

/// Fetches `commit` into `store`, without its history where the server can cut it.
fn add(
    remote: &mut Remote,
    store: &mut Store,
    commit: ObjectHash,
    bounds: &Bounds,
    by: Instant,
) -> Result<u64, Error> {
    let wanted = Wanted {
        commits: &[commit],
        have: store.tips(),
        shallow: store.shallow(),
        depth: Some(1),
        commits_only: false,
    };
    // A pack that is larger than all of the disk that there is would only take the place of every other one.
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
    past: &Store,
    commits: &[ObjectHash],
    depth: u32,
    (memory, by): (&Memory, Instant),
) -> Result<(), Error> {
    let wanted = Wanted { commits, depth: Some(depth), commits_only: true, ..Wanted::default() };
    past.add((memory, by), |pack| remote.fetch(&wanted, pack, MAX_HISTORY_BYTES, by)).map(drop)
}

pub(super) fn parents(repository: &git2::Repository, commit: ObjectHash) -> Option<Vec<ObjectHash>> {
    let commit = repository.find_commit(commit.oid()).ok()?;
    Some(commit.parent_ids().map(ObjectHash::of).collect())
}
