//! Files of Git LFS: those on disk take the place of their pointers, the others are fetched.
//!
//! In: a snapshot; the pointers that a render reads.
//! Out: the snapshot with files, and the pointers that are left; the files on disk. Fetches use the
//! same network and workers as the repository, and not its lock. Concurrent fetches for one
//! repository wait for the first one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::super::address::Kind;
use super::super::chart::Digest;
use super::super::digest_cache::DigestCache;
use super::super::error::Error;
use super::super::lfs::{self, LfsError, LfsFile, LfsProblem};
use super::super::remote::heard;
use super::super::snapshot::Snapshot;
use super::{Repository, key};
use moorline_core::tree::{FileTree, LfsPointer, LfsPointers, MemoryLimitError, TreeEntry};
use moorline_runtime::chance;

/// Folder of files, next to those of mirrors.
pub(super) const FOLDER: &str = "lfs";

/// Replaces the pointers of a snapshot by the files that are on disk. The other pointers of the
/// repository itself are returned, and the tree records which of them are read.
pub fn fill_lfs(repository: &Repository, snapshot: &mut Snapshot) -> Result<LfsPointers, MemoryLimitError> {
    let modules: Vec<Box<str>> = snapshot.modules.iter().map(|(path, _)| path.clone()).collect();
    let is_in_module = |path: &str| {
        modules.iter().any(|module| path.strip_prefix(&**module).is_some_and(|rest| rest.starts_with('/')))
    };
    let is_remote = matches!(repository.shared.address.kind(), Kind::Http(_) | Kind::Ssh(_));
    let follows = |path: &str| is_remote && !is_in_module(path);
    let pointers = LfsPointers::of(&snapshot.files, follows);
    let cache = &repository.mirrors.lfs;
    let owner = key(&repository.shared.address, &repository.shared.owner);
    let mut files: BTreeMap<&LfsPointer, Option<Arc<[u8]>>> = BTreeMap::new();
    let mut entries = Vec::new();
    for (path, pointer) in pointers.iter() {
        let bytes = match files.get(pointer) {
            // A file at several paths is stored once.
            Some(known) => known.clone(),
            None => {
                let read = read(cache, &owner, pointer, &snapshot.files)?;
                files.insert(pointer, read.clone());
                read
            }
        };
        entries.extend(bytes.map(|bytes| (path.into(), TreeEntry::File(bytes))));
    }
    // A file that is a pointer itself stands for no other file.
    let filled: BTreeSet<Box<str>> = entries.iter().map(|(path, _): &(Box<str>, _)| path.clone()).collect();
    if !entries.is_empty() {
        snapshot.files = std::mem::take(&mut snapshot.files).with_entries(entries);
    }
    let left = LfsPointers::of(&snapshot.files, |path| follows(path) && !filled.contains(path));
    snapshot.files = std::mem::take(&mut snapshot.files).with_lfs(left.clone());
    Ok(left)
}

/// Reads a file from disk, within the memory limit of the tree; none if it is not there.
fn read(
    cache: &DigestCache,
    owner: &str,
    pointer: &LfsPointer,
    tree: &FileTree,
) -> Result<Option<Arc<[u8]>>, MemoryLimitError> {
    let Some(digest) = Digest::parse(&pointer.oid).filter(|digest| cache.has(owner, *digest)) else {
        return Ok(None);
    };
    let limit = tree.memory_limit();
    // The bytes are copied once.
    limit.reserve(2 * pointer.size)?;
    let bytes = cache.read(owner, digest, pointer.size);
    let bytes = bytes.filter(|bytes| bytes.len() as u64 == pointer.size);
    limit.give_back(if bytes.is_some() { pointer.size } else { 2 * pointer.size });
    Ok(bytes.map(Arc::from))
}

/// Fetches files of Git LFS that are not on disk yet. All `files` are those of one render.
pub async fn fetch_lfs(repository: &Repository, files: Vec<LfsFile>, by: Instant) -> Result<(), LfsError> {
    let Some(first) = files.first().cloned() else { return Ok(()) };
    let shared = &repository.shared;
    let address = shared.address.clone();
    let credentials = shared.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let owner = key(&shared.address, &shared.owner);
    let work = async {
        let turn = shared.lfs.clone().lock_owned().await;
        let mut worker = repository.mirrors.turns.take(repository.ask(true)).await;
        let mirrors = repository.mirrors.clone();
        let done = chance::spawn_blocking_deterministic(move || {
            let cache = (&mirrors.lfs, &*owner);
            let fetched = lfs::fetch(cache, &mirrors.network, (&address, &credentials), &files, by);
            worker.heard(match &fetched {
                Err(LfsError { problem: LfsProblem::Server(error), .. }) => heard(Some(error)),
                Ok(()) | Err(_) => heard(None),
            });
            drop(turn);
            fetched
        });
        done.await.map_err(|_| first.error(Error::Stopped))?
    };
    match tokio::time::timeout_at(by.into(), work).await {
        Ok(done) => done,
        Err(_) => Err(first.error(repository.late())),
    }
}
