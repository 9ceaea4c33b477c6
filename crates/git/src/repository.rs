//! The asynchronous face of this station: repositories that many Syncs share.
//!
//! In: addresses, credentials, references, deadlines. Out: [`Revision`]s and [`Snapshot`]s. Each repository has one
//! lock, and what blocks runs on at most one thread of it; all repositories together have at most
//! `MAX_WORKERS`, of which servers and namespaces have shares (`turns/`). A call that is given up leaves its thread behind
//! until the thread's own deadline, and the next call waits for it instead of starting another: a silent server costs one
//! thread, however often asked.

mod charts;
mod history;
mod looked;
mod modules;
mod quota;
mod reading;
mod trust;
mod waiting;
mod work;

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use charts::Charts;
use history::Related;
use looked::Looked;
pub use reading::Reading;
use sha2::{Digest, Sha256};
use work::Need;

use super::address::{Address, Kind};
use super::credentials::Credentials;
use super::error::Error;
use super::hosts::Hosts;
use super::http::{Network, Proxy};
use super::local::Local;
use super::memory::Memory;
use super::mirror::{Bounds, Mirror};
use super::remote::Remote;
use super::revision::{ObjectHash, Reference, Revision};
use super::ssh::Ssh;
use super::store;
use super::turns::{Counter, Turns};
use super::web::Web;
use moorline_runtime::clock;

/// The most threads that talk to servers or read objects at one time.
const MAX_WORKERS: usize = 32;

/// The most answers to [`Repository::look`] that are kept for those who asked at the same time.
const MAX_SHARED: usize = 64;

/// All repositories of a daemon, with one folder for their mirrors.
#[derive(Debug, Clone)]
pub struct Repositories(Arc<House>);

#[derive(Debug)]
struct House {
    data: PathBuf,
    network: Network,
    memory: Memory,
    /// The most bytes in the folder.
    quota: u64,
    turns: Turns,
    open: Mutex<HashMap<Box<str>, Weak<Shared>>>,
    charts: Charts,
    /// Held as long as the daemon lives, so that no other one uses the folder.
    _lock: File,
}

/// One repository; cheap to clone.
#[derive(Debug, Clone)]
pub struct Repository {
    shared: Arc<Shared>,
    house: Arc<House>,
    /// The namespace on whose behalf it is asked.
    asker: Arc<str>,
}

#[derive(Debug)]
struct Shared {
    address: Address,
    owner: Box<str>,
    server: Arc<str>,
    bounds: Bounds,
    state: Arc<tokio::sync::Mutex<State>>,
    /// How many wait for the state.
    waiting: AtomicUsize,
    /// Who has the state waits for a worker.
    queued: AtomicBool,
    /// The last answer about two commits.
    related: Mutex<Related>,
    /// What is talked to, and with which credentials, from the next call on.
    next: Mutex<Option<Remote>>,
    credentials: Mutex<Credentials>,
}

#[derive(Debug)]
struct State {
    place: Place,
    looked: Vec<Looked>,
}

#[derive(Debug)]
enum Place {
    /// A server, before its mirror was opened.
    Unopened(PathBuf),
    Mirrored(Box<Mirror>),
    Local(Local),
}

impl Repositories {
    /// What others call a folder of their own in the same place: what was rendered there outlives the daemon.
    pub const RENDERED: &'static str = "rendered";

    /// Uses the folder `data` for mirrors, and nobody else may; `proxy` stands before all http(s) servers, and only `hosts` are asked.
    pub fn new(data: &Path, proxy: Option<Proxy>, hosts: Hosts) -> Result<Self, Error> {
        Self::bounded(data, proxy, hosts, (Memory::new(None), u64::MAX))
    }

    /// The same, within this memory and so many bytes on the disk.
    pub fn bounded(
        data: &Path,
        proxy: Option<Proxy>,
        hosts: Hosts,
        (memory, quota): (Memory, u64),
    ) -> Result<Self, Error> {
        let disk = |what, error: std::io::Error| Error::Disk { what, cause: error.to_string().into() };
        // Nobody else is to read private repositories.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
        made.map_err(|error| disk("make the folder", error))?;
        let lock = File::create(data.join("lock")).map_err(|error| disk("make the lock", error))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                disk("begin", std::io::Error::other("another daemon uses it; each needs its own"))
            }
            fs::TryLockError::Error(error) => disk("take the lock", error),
        })?;
        Ok(Self(Arc::new(House {
            data: data.to_owned(),
            network: Network::new(proxy, hosts),
            memory,
            quota,
            turns: Turns::new(MAX_WORKERS),
            open: Mutex::default(),
            charts: Charts::new(&data.join(charts::FOLDER)),
            _lock: lock,
        })))
    }

    /// The repository at `address`. `owner` names the Secret (`namespace/name`, or nothing): repositories are
    /// shared by those who name the same Secret, and by no one else. Its changed content is used from now on.
    pub fn repository(
        &self,
        address: &Address,
        owner: &str,
        credentials: &Credentials,
    ) -> Result<Repository, Error> {
        House::repository(&self.0, address, owner, credentials)
    }

    /// The memory that all of them share.
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Tells how many questions to repositories wait for a worker, whenever that may be another number.
    pub fn count_waiting(&self, tell: impl Fn(usize) + Send + 'static) {
        self.0.turns.count(Counter(Box::new(tell)));
    }

    /// Removes the mirrors of repositories that nobody holds any more.
    pub fn remove_unused(&self) {
        self.0.remove_unused();
    }
}

/// Folders beside the mirrors, which are not theirs to remove.
const BESIDE: [&str; 2] = [charts::FOLDER, Repositories::RENDERED];

impl House {
    fn repository(
        self: &Arc<Self>,
        address: &Address,
        owner: &str,
        credentials: &Credentials,
    ) -> Result<Repository, Error> {
        credentials.fit(address)?;
        let key = key(address, owner);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, known| known.strong_count() > 0);
        if let Some(shared) = open.get(&key).and_then(Weak::upgrade) {
            let mut known = shared.credentials.lock().unwrap_or_else(PoisonError::into_inner);
            if *known != *credentials {
                let remote = self.remote(address, credentials)?;
                *shared.next.lock().unwrap_or_else(PoisonError::into_inner) = remote;
                *known = credentials.clone();
            }
            drop(known);
            return Ok(Repository { shared, house: self.clone(), asker: "".into() });
        }
        let (server, place) = match address.kind() {
            Kind::Local(path) => (path.display().to_string(), Place::Local(Local::new(path))),
            Kind::Http(http) => (http.server(), Place::Unopened(self.data.join(&*key))),
            Kind::Ssh(ssh) => (ssh.server(), Place::Unopened(self.data.join(&*key))),
        };
        let shared = Arc::new(Shared {
            address: address.clone(),
            owner: owner.into(),
            server: server.into(),
            bounds: Bounds { memory: self.memory.clone(), quota: self.quota },
            state: Arc::new(tokio::sync::Mutex::new(State { place, looked: Vec::new() })),
            waiting: AtomicUsize::new(0),
            queued: AtomicBool::new(false),
            related: Mutex::default(),
            next: Mutex::new(self.remote(address, credentials)?),
            credentials: Mutex::new(credentials.clone()),
        });
        open.insert(key, Arc::downgrade(&shared));
        Ok(Repository { shared, house: self.clone(), asker: "".into() })
    }

    fn remove_unused(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in fs::read_dir(&self.data).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let held =
                name.to_str().and_then(|name| open.get(name)).is_some_and(|one| one.strong_count() > 0);
            if !held
                && !BESIDE.iter().any(|kept| name == *kept)
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
            {
                // What cannot be removed now is removed the next time.
                drop(fs::remove_dir_all(entry.path()));
            }
        }
    }

    fn remote(&self, address: &Address, credentials: &Credentials) -> Result<Option<Remote>, Error> {
        match address.kind() {
            Kind::Http(http) => Web::new(http, credentials, &self.network).map(|web| Some(Remote::new(web))),
            Kind::Ssh(ssh) => {
                Ssh::new(ssh, credentials, self.network.hosts()).map(|ssh| Some(Remote::new(ssh)))
            }
            Kind::Local(_) => Ok(None),
        }
    }
}

/// The folder of a mirror. The name says nothing of the URL, which may be private.
fn key(address: &Address, owner: &str) -> Box<str> {
    let hash = Sha256::digest(format!("{address}\0{owner}"));
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl Repository {
    /// The same, asked on behalf of this namespace, whose share of the workers counts.
    pub fn asked_by(self, namespace: &str) -> Self {
        Self { asker: namespace.into(), ..self }
    }

    /// The revision that `reference` stands for now. With a server that speaks version 2 it costs one request,
    /// and those who ask while it runs share the next one.
    pub async fn look(&self, reference: &Reference, by: Instant) -> Result<Revision, Error> {
        let (asked, reference) = (clock::now(), reference.clone());
        let need = if reference.wanted().is_empty() { Need::Disk } else { Need::Server };
        self.run(need, by, move |state| {
            if let Some(shared) = state.looked.iter().find(|other| other.answers(&reference, asked, by)) {
                return shared.found.clone();
            }
            let begun = clock::now();
            let found = match &mut state.place {
                Place::Mirrored(mirror) => mirror.look(&reference, by),
                Place::Local(local) => local.look(&reference),
                Place::Unopened(_) => Err(Error::Stopped),
            };
            state.looked.retain(|other| other.reference != reference);
            state.looked.truncate(MAX_SHARED - 1);
            state.looked.insert(0, Looked { reference, begun, by, found: found.clone() });
            found
        })
        .await
    }

    /// Makes sure that the commit and its files are here; the bytes that were fetched for it.
    pub async fn fetch(&self, revision: &Revision, by: Instant) -> Result<u64, Error> {
        let commit = revision.commit;
        self.run(Need::commit(commit), by, move |state| match &mut state.place {
            Place::Mirrored(mirror) => mirror.fetch(commit, by),
            Place::Local(_) => Ok(0),
            Place::Unopened(_) => Err(Error::Stopped),
        })
        .await
    }

    /// The number of packs on disk, and their bytes with those of their indexes.
    pub async fn size(&self, by: Instant) -> Result<(usize, u64), Error> {
        self.run(Need::Disk, by, |state| match &state.place {
            Place::Mirrored(mirror) => Ok(mirror.size()),
            Place::Local(_) | Place::Unopened(_) => Ok((0, 0)),
        })
        .await
    }
}

impl State {
    /// Nobody else waits: what is kept for the next one is let go.
    fn rest(&mut self) {
        match &mut self.place {
            Place::Mirrored(mirror) => mirror.rest(),
            Place::Unopened(_) | Place::Local(_) => {}
        }
    }

    /// True if something was fetched since this was asked last.
    fn has_grown(&mut self) -> bool {
        match &mut self.place {
            Place::Mirrored(mirror) => mirror.has_grown(),
            Place::Unopened(_) | Place::Local(_) => false,
        }
    }

    /// Reads from what has `commit`, fetched if need be; with it, how long it took to fetch.
    fn with<T>(
        &mut self,
        commit: ObjectHash,
        by: Instant,
        read: impl Fn(&git2::Repository) -> Result<T, Error>,
    ) -> Result<(T, Option<Duration>), Error> {
        match &mut self.place {
            Place::Mirrored(mirror) => mirror.with(commit, by, read),
            Place::Local(local) => local.with(commit, read).map(|read| (read, None)),
            Place::Unopened(_) => Err(Error::Stopped),
        }
    }

    /// Opens the mirror at first, and takes over changed credentials.
    fn prepare(&mut self, shared: &Shared) -> Result<(), Error> {
        let mut next = shared.next.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut self.place {
            Place::Unopened(home) => {
                // The disk first: where it fails, the remote stays for the next attempt.
                let store = store::open(home)?;
                let remote = next.take().ok_or(Error::Stopped)?;
                self.place = Place::Mirrored(Box::new(Mirror::new(
                    remote,
                    home.clone(),
                    store,
                    shared.bounds.clone(),
                )));
            }
            Place::Mirrored(mirror) => {
                if let Some(remote) = next.take() {
                    mirror.replace(remote);
                }
            }
            Place::Local(_) => {}
        }
        Ok(())
    }
}
