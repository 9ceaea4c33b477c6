//! Asynchronous interface of this crate: repositories shared by many Syncs.
//!
//! In: addresses, credentials, references, deadlines.
//! Out: [`Revision`]s and [`Snapshot`](super::Snapshot)s. Each repository has one lock, and
//! blocking work runs on at most one thread for it; all repositories together have at most
//! `MAX_WORKERS` threads, shared among servers and namespaces (`worker_pool/`). A cancelled call
//! leaves its thread running until the deadline of its work, and the next call waits for that
//! thread instead of starting another: a silent server costs one thread, regardless of the number
//! of calls.

mod charts;
pub(super) mod clouds;
mod collector;
pub(super) mod exchange;
mod jobs;
mod lfs_files;
mod mount_place;
mod origin;
mod quota;
mod read_files;
mod recent_polls;
mod relations;
mod signature_check;
mod submodule_files;
mod tags;
pub(super) mod transit;
mod waiter_count;

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use charts::ChartStore;
pub use collector::Collector;
use jobs::JobNeed;
pub use lfs_files::{fetch_lfs, fill_lfs};
pub use mount_place::OccupiedPlace;
use origin::{Origin, key};
pub use read_files::{CommitSummary, ReadResult};
use recent_polls::RecentPoll;
use relations::RelationCache;

use super::address::{Address, Kind};
use super::allow_list::AllowList;
use super::artifact::{ArtifactMirror, SignatureStore};
use super::credentials::Credentials;
use super::digest_cache::DigestCache;
use super::error::Error;
use super::hosts::HostPolicy;
use super::http::{Proxy, SharedNetwork};
use super::lfs::{MAX_CACHE_BYTES, MAX_CACHE_FILES};
use super::memory::Memory;
use super::mirror::{Mirror, MirrorLimits};
use super::registry_mirrors::RegistryMirrors;
use super::revision::{ObjectHash, Reference, Revision};
use super::store;
use crate::local_repository::LocalRepository;
use crate::worker_pool::{WaitingCounter, WorkerPool};
use moorline_runtime::clock;

/// Maximum number of threads that contact servers or read objects.
const MAX_WORKERS: usize = 32;

/// Maximum number of results of [`Repository::resolve`] that are kept for concurrent callers.
const MAX_SHARED: usize = 64;

/// All repositories of a daemon, with one folder for their mirrors.
#[derive(Debug, Clone)]
pub struct Repositories(Arc<MirrorFolder>);

#[derive(Debug)]
struct MirrorFolder {
    data: PathBuf,
    network: Arc<SharedNetwork>,
    memory: Memory,
    /// Maximum number of bytes in the folder.
    quota: u64,
    turns: WorkerPool,
    open: Mutex<HashMap<Box<str>, Weak<Shared>>>,
    charts: ChartStore,
    /// Files of Git LFS.
    lfs: DigestCache,
    /// Accepted signatures of artifacts and charts.
    signatures: Arc<SignatureStore>,
    /// Servers that may be asked for data keys.
    vaults: OnceLock<AllowList>,
    /// Held for the lifetime of the daemon, so that no other one uses the folder.
    _lock: File,
}

/// One repository; cheap to clone.
#[derive(Debug, Clone)]
pub struct Repository {
    shared: Arc<Shared>,
    mirrors: Arc<MirrorFolder>,
    /// Namespace whose share of the workers is used.
    asker: Arc<str>,
}

#[derive(Debug)]
struct Shared {
    address: Address,
    owner: Box<str>,
    server: Arc<str>,
    bounds: MirrorLimits,
    state: Arc<tokio::sync::Mutex<RepositoryState>>,
    /// Number of callers waiting for the state.
    waiting: AtomicUsize,
    /// True while the holder of the state waits for a worker.
    queued: AtomicBool,
    /// Cached relations of commits.
    related: Mutex<RelationCache>,
    /// Origin to use from the next call on, after changed credentials.
    next: Mutex<Option<Origin>>,
    credentials: Mutex<Credentials>,
    /// Held while files of Git LFS are fetched.
    lfs: Arc<tokio::sync::Mutex<()>>,
}

/// Files of a repository, and its recent polls.
#[derive(Debug)]
struct RepositoryState {
    place: FileStore,
    looked: Vec<RecentPoll>,
}

/// Files of a repository on this machine.
#[derive(Debug)]
enum FileStore {
    /// A remote repository, before its mirror was opened.
    Unopened(PathBuf),
    Mirrored(Box<Mirror>),
    Artifacts(Box<ArtifactMirror>),
    Local(LocalRepository),
}

impl Repositories {
    /// Subfolder used by another component: cached renders outlive the daemon.
    pub const RENDERED: &'static str = "rendered";

    /// Opens the folder `data` for mirrors, exclusively; `proxy` is used for all http(s) servers,
    /// and only `hosts` may be contacted.
    pub fn new(data: &Path, proxy: Option<Proxy>, hosts: HostPolicy) -> Result<Self, Error> {
        Self::with_limits(data, proxy, hosts, (Memory::new(None), u64::MAX))
    }

    /// Opens the folder with a memory budget and a disk quota.
    pub fn with_limits(
        data: &Path,
        proxy: Option<Proxy>,
        hosts: HostPolicy,
        (memory, quota): (Memory, u64),
    ) -> Result<Self, Error> {
        let lock = quota::lock_folder(data)?;
        Ok(Self(Arc::new(MirrorFolder {
            data: data.to_owned(),
            network: Arc::new(SharedNetwork::new(proxy, hosts)),
            memory,
            quota,
            turns: WorkerPool::new(MAX_WORKERS),
            open: Mutex::default(),
            charts: ChartStore::new(&data.join(charts::FOLDER)),
            lfs: DigestCache::new(&data.join(lfs_files::FOLDER), MAX_CACHE_FILES, MAX_CACHE_BYTES),
            signatures: Arc::new(SignatureStore::new(&data.join(signature_check::FOLDER))),
            vaults: OnceLock::new(),
            _lock: lock,
        })))
    }

    /// Returns the repository at `address`. `owner` names the Secret (`namespace/name`, or empty):
    /// a repository is shared by the Syncs that name the same Secret, and by no others. Changed
    /// credentials are used from now on.
    pub fn repository(
        &self,
        address: &Address,
        owner: &str,
        credentials: &Credentials,
    ) -> Result<Repository, Error> {
        MirrorFolder::repository(&self.0, address, owner, credentials)
    }

    /// Allows servers at these addresses to be asked for data keys; by default there are none. The
    /// first list counts.
    pub fn allow_vaults(&self, allowed: AllowList) {
        drop(self.0.vaults.set(allowed));
    }

    /// Asks these mirrors of registries before the registries themselves; by default there are
    /// none. The first ones count, before any repository is opened.
    pub fn use_mirrors(&self, mirrors: RegistryMirrors) {
        self.0.network.set_mirrors(mirrors);
    }

    /// Returns the network that all clients share.
    pub(super) fn network(&self) -> Arc<SharedNetwork> {
        self.0.network.clone()
    }

    /// Returns the shared memory budgets.
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Reports the number of callers waiting for a worker, whenever it may have changed.
    pub fn report_waiting(&self, tell: impl Fn(usize) + Send + 'static) {
        self.0.turns.count(WaitingCounter(Box::new(tell)));
    }

    /// Removes the mirrors of repositories that are not in use any more.
    pub fn remove_unused(&self) {
        self.0.remove_unused();
    }
}

impl MirrorFolder {
    fn repository(
        self: &Arc<Self>,
        address: &Address,
        owner: &str,
        credentials: &Credentials,
    ) -> Result<Repository, Error> {
        credentials.check_address(address)?;
        let key = key(address, owner);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, known| known.strong_count() > 0);
        if let Some(shared) = open.get(&key).and_then(Weak::upgrade) {
            let mut known = shared.credentials.lock().unwrap_or_else(PoisonError::into_inner);
            if *known != *credentials {
                let origin = self.origin(address, credentials)?;
                *shared.next.lock().unwrap_or_else(PoisonError::into_inner) = origin;
                *known = credentials.clone();
            }
            drop(known);
            return Ok(Repository { shared, mirrors: self.clone(), asker: "".into() });
        }
        let (server, place) = match address.kind() {
            Kind::Local(path) => (path.display().to_string(), FileStore::Local(LocalRepository::new(path))),
            Kind::Http(http) => (http.server(), FileStore::Unopened(self.data.join(&*key))),
            Kind::Ssh(ssh) => (ssh.server(), FileStore::Unopened(self.data.join(&*key))),
            Kind::Registry(registry) => (registry.server(), FileStore::Unopened(self.data.join(&*key))),
        };
        let shared = Arc::new(Shared {
            address: address.clone(),
            owner: owner.into(),
            server: server.into(),
            bounds: MirrorLimits { memory: self.memory.clone(), quota: self.quota },
            state: Arc::new(tokio::sync::Mutex::new(RepositoryState { place, looked: Vec::new() })),
            waiting: AtomicUsize::new(0),
            queued: AtomicBool::new(false),
            related: Mutex::default(),
            next: Mutex::new(self.origin(address, credentials)?),
            credentials: Mutex::new(credentials.clone()),
            lfs: Arc::default(),
        });
        open.insert(key, Arc::downgrade(&shared));
        Ok(Repository { shared, mirrors: self.clone(), asker: "".into() })
    }

    fn remove_unused(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in fs::read_dir(&self.data).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let held =
                name.to_str().and_then(|name| open.get(name)).is_some_and(|one| one.strong_count() > 0);
            if !held
                && !quota::BESIDE.iter().any(|kept| name == *kept)
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
            {
                // A failed removal is repeated the next time.
                drop(fs::remove_dir_all(entry.path()));
            }
        }
    }
}

impl Repository {
    /// Uses the worker share of this namespace.
    pub fn on_behalf_of(self, namespace: &str) -> Self {
        Self { asker: namespace.into(), ..self }
    }

    /// Resolves `reference` to its current revision. Concurrent callers share the next request.
    pub async fn resolve(&self, reference: &Reference, by: Instant) -> Result<Revision, Error> {
        let (asked, reference) = (clock::now(), reference.clone());
        let need = if reference.is_fixed() { JobNeed::Disk } else { JobNeed::Server };
        self.run(need, by, move |state| {
            if let Some(shared) = state.looked.iter().find(|other| other.answers(&reference, asked, by)) {
                return shared.found.clone();
            }
            let begun = clock::now();
            let found = match (&mut state.place, &reference) {
                (FileStore::Artifacts(mirror), Reference::Artifact(artifact)) => mirror.resolve(artifact, by),
                (FileStore::Mirrored(mirror), _) => mirror.resolve(&reference, by),
                (FileStore::Local(local), _) => local.resolve(&reference),
                (FileStore::Artifacts(_) | FileStore::Unopened(_), _) => Err(Error::Stopped),
            };
            state.looked.retain(|other| other.reference != reference);
            state.looked.truncate(MAX_SHARED - 1);
            state.looked.insert(0, RecentPoll { reference, begun, by, found: found.clone() });
            found
        })
        .await
    }

    /// Fetches the commit and its files, unless they are here; returns the number of fetched bytes.
    pub async fn fetch(&self, revision: &Revision, by: Instant) -> Result<u64, Error> {
        let revision = revision.clone();
        self.run(JobNeed::commit(revision.commit), by, move |state| match &mut state.place {
            FileStore::Mirrored(mirror) => mirror.fetch(revision.commit, by),
            FileStore::Artifacts(mirror) => mirror.fetch(&revision, by),
            FileStore::Local(_) => Ok(0),
            FileStore::Unopened(_) => Err(Error::Stopped),
        })
        .await
    }

    /// Returns the number of packs on disk, and the bytes of packs and indexes.
    pub async fn size(&self, by: Instant) -> Result<(usize, u64), Error> {
        self.run(JobNeed::Disk, by, |state| match &state.place {
            FileStore::Mirrored(mirror) => Ok(mirror.size()),
            FileStore::Artifacts(mirror) => Ok(mirror.size()),
            FileStore::Local(_) | FileStore::Unopened(_) => Ok((0, 0)),
        })
        .await
    }
}

impl RepositoryState {
    /// Closes open objects, when no other caller waits.
    fn rest(&mut self) {
        match &mut self.place {
            FileStore::Mirrored(mirror) => mirror.rest(),
            FileStore::Artifacts(mirror) => mirror.rest(),
            FileStore::Unopened(_) | FileStore::Local(_) => {}
        }
    }

    /// True if something was fetched since the last call.
    fn has_grown(&mut self) -> bool {
        match &mut self.place {
            FileStore::Mirrored(mirror) => mirror.has_grown(),
            FileStore::Artifacts(mirror) => mirror.has_grown(),
            FileStore::Unopened(_) | FileStore::Local(_) => false,
        }
    }

    /// Calls `read` with a store that has the files of a revision, fetched if necessary, and with
    /// their commit there; also returns the duration of the fetch.
    fn with<T>(
        &mut self,
        revision: &Revision,
        by: Instant,
        read: impl Fn(&git2::Repository, ObjectHash) -> Result<T, Error>,
    ) -> Result<(T, Option<Duration>), Error> {
        let commit = revision.commit;
        match &mut self.place {
            FileStore::Mirrored(mirror) => mirror.with(commit, by, |repository| read(repository, commit)),
            FileStore::Artifacts(mirror) => mirror.with(revision, by, read),
            FileStore::Local(local) => {
                local.with(commit, |repository| read(repository, commit)).map(|read| (read, None))
            }
            FileStore::Unopened(_) => Err(Error::Stopped),
        }
    }

    /// Opens the mirror at first, and applies changed credentials.
    fn prepare(&mut self, shared: &Shared) -> Result<(), Error> {
        let mut next = shared.next.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut self.place {
            FileStore::Unopened(home) => {
                // The disk first: if it fails, the remote is kept for the next attempt.
                let store = store::open(home)?;
                let (home, bounds) = (home.clone(), shared.bounds.clone());
                self.place = match next.take().ok_or(Error::Stopped)? {
                    Origin::Git(remote) => {
                        FileStore::Mirrored(Box::new(Mirror::new(remote, home, store, bounds)))
                    }
                    Origin::Registry(client) => {
                        FileStore::Artifacts(Box::new(ArtifactMirror::new(*client, home, store, bounds)))
                    }
                };
            }
            FileStore::Mirrored(mirror) => {
                if let Some(Origin::Git(remote)) = next.take() {
                    mirror.replace(remote);
                }
            }
            FileStore::Artifacts(mirror) => {
                if let Some(Origin::Registry(client)) = next.take() {
                    mirror.replace(*client);
                }
            }
            FileStore::Local(_) => {}
        }
        Ok(())
    }
}
