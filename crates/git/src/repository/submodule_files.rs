//! Adds the files of submodules to a snapshot.
//!
//! In: a snapshot that names submodules.
//! Out: the same with their files, at any depth of nesting. A submodule that is not followed stays
//! an unreadable folder, with the reason.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use super::super::error::Error;
use super::super::mirror::MAX_PACK_BYTES;
use super::super::revision::{ObjectHash, Revision};
use super::super::snapshot::{ObjectIds, Snapshot, no_path};
use super::super::submodules;
use super::{MirrorFolder, PoisonError, ReadResult, Repository, key};
use crate::read_limits::ReadLimits;
use moorline_core::tree::{FileTree, MAX_FILES, MAX_TREE_BYTES, TreeEntry};
use moorline_runtime::chance;

/// Maximum number of submodules of a revision, including nested ones.
const MAX_MODULES: usize = 64;
/// Maximum number of bytes of all submodules on disk.
const MAX_MIRRORED: u64 = 2 * MAX_PACK_BYTES;

impl Repository {
    /// As [`Repository::read_changed`], with the files of submodules.
    pub async fn read_with_submodules(
        &self,
        revision: &Revision,
        (folders, extra_folders): (&[&str], &[Box<str>]),
        earlier: &ObjectIds,
        within: &ReadLimits,
        by: Instant,
    ) -> Result<ReadResult, Error> {
        let mut reading = self.read_again(revision, (folders, extra_folders), earlier, within, by).await?;
        if let Some(snapshot) = &mut reading.snapshot {
            let added = self.add_modules(snapshot, within, by).await;
            if let Err(Error::TooMuch { .. }) = added {
                // Mirrors beyond the limit are removed at once; those that help the next attempt
                // are kept.
                let (mirrors, unwanted) =
                    (self.mirrors.clone(), std::mem::take(&mut snapshot.submodule_repositories));
                let _ =
                    chance::spawn_blocking_deterministic(move || remove_mirrors(&mirrors, unwanted)).await;
            }
            added?;
            is_there(snapshot, revision)?;
        }
        Ok(reading)
    }

    async fn add_modules(
        &self,
        snapshot: &mut Snapshot,
        within: &ReadLimits,
        by: Instant,
    ) -> Result<(), Error> {
        let mut files: BTreeMap<Box<str>, TreeEntry> = own(&snapshot.files, "");
        let mut waiting: Vec<PendingSubmodule> = wanted(self, snapshot, "");
        // The filter for manifests needs the whole tree, so all files of a part are read.
        let all = ReadLimits { memory_limit: within.memory_limit.clone(), ..ReadLimits::default() };
        let (mut count, mut size, mut sized) = (0, 0, BTreeSet::new());
        while let Some(PendingSubmodule { place, path, commit, said, from }) = waiting.pop() {
            count += 1;
            if count > MAX_MODULES {
                return Err(too_much("submodules", MAX_MODULES as u64));
            }
            let module = match from.module(&said, &path) {
                Ok(module) => module,
                Err(reason) => {
                    files.insert(place, TreeEntry::Unreadable { folder: true, reason: reason.into() });
                    continue;
                }
            };
            let revision = Revision {
                commit,
                name: commit.to_string().into(),
                tag: None,
                chart: None,
                mounts: Vec::new(),
            };
            // Holding them keeps their mirrors on disk.
            snapshot.submodule_repositories.push(module.clone());
            let told = |error| Error::Module { path: place.clone(), cause: Box::new(error) };
            let inner = module.read_here(&revision, &[""], &all, by).await.map_err(told)?;
            // One repository may appear at several paths.
            if sized.insert(key(&module.shared.address, &module.shared.owner)) {
                size += module.size(by).await.map_err(told)?.1;
            }
            if size > MAX_MIRRORED {
                return Err(too_much("bytes on disk", MAX_MIRRORED));
            }
            waiting.extend(wanted(&module, &inner, &place));
            files.remove(&place);
            files.extend(own(&inner.files, &place));
            check_size(&files)?;
        }
        let files = files.into_iter().collect::<FileTree>().with_memory_limit(within.memory_limit.clone());
        snapshot.files = files.with_fetched(snapshot.ids.keys().cloned());
        Ok(())
    }

    /// Returns the repository of a submodule, with the credentials of this one.
    fn module(&self, said: &str, path: &str) -> Result<Self, &'static str> {
        let shared = &self.shared;
        let address = submodules::address(said, path, &shared.address)?;
        let credentials = shared.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone();
        MirrorFolder::repository(&self.mirrors, &address, &shared.owner, &credentials)
            .map(|module| module.on_behalf_of(&self.asker))
            .map_err(|_| "it is a submodule for whose server the Secret does not fit")
    }
}

/// Removes the mirrors of these repositories, unless they are in use.
fn remove_mirrors(mirrors: &MirrorFolder, unwanted: Vec<Repository>) {
    let keys: Vec<Box<str>> =
        unwanted.iter().map(|module| key(&module.shared.address, &module.shared.owner)).collect();
    drop(unwanted);
    let gone = |key: &str| mirrors.data.join(format!("{key}.gone"));
    {
        // Opening a repository waits for this lock, so the folder is only renamed here.
        let open = mirrors.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held = |key: &str| open.get(key).is_some_and(|one| one.strong_count() > 0);
        for unheld in keys.iter().filter(|key| !is_held(key)) {
            drop(fs::rename(mirrors.data.join(&**unheld), gone(unheld)));
        }
    }
    // A failed removal is repeated by the next cleanup.
    keys.iter().for_each(|key| drop(fs::remove_dir_all(gone(key))));
}

/// Checks that every requested path exists.
fn is_there(snapshot: &Snapshot, revision: &Revision) -> Result<(), Error> {
    for path in &snapshot.inside {
        let refused = snapshot.files.entries().find_map(|(place, entry)| match entry {
            TreeEntry::Unreadable { reason, .. } if lies_in(path, place) => Some(reason),
            _ => None,
        });
        let problem: Cow<'static, str> = match refused {
            Some(reason) => format!("cannot be read: {reason}").into(),
            None if snapshot.files.contains(path) => continue,
            None => "does not exist".into(),
        };
        return Err(no_path(path, problem, revision.commit));
    }
    Ok(())
}

fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A submodule that is to be read.
struct PendingSubmodule {
    /// Its path from the root of the outermost repository.
    place: Box<str>,
    /// Its path in the repository that names it.
    path: Box<str>,
    commit: ObjectHash,
    said: Box<str>,
    from: Repository,
}

fn wanted(from: &Repository, snapshot: &Snapshot, below: &str) -> Vec<PendingSubmodule> {
    let one = |(path, commit): &(Box<str>, ObjectHash)| PendingSubmodule {
        place: join(below, path),
        path: path.clone(),
        commit: *commit,
        said: snapshot.said.clone(),
        from: from.clone(),
    };
    snapshot.modules.iter().map(one).collect()
}

/// Returns the files of a tree, below a folder.
fn own(files: &FileTree, below: &str) -> BTreeMap<Box<str>, TreeEntry> {
    files.entries().map(|(path, entry)| (join(below, path), entry.clone())).collect()
}

fn join(folder: &str, path: &str) -> Box<str> {
    if folder.is_empty() { path.into() } else { format!("{folder}/{path}").into() }
}

fn check_size(files: &BTreeMap<Box<str>, TreeEntry>) -> Result<(), Error> {
    let size = |entry: &TreeEntry| match entry {
        TreeEntry::File(bytes) => bytes.len() as u64,
        _ => 0,
    };
    if files.len() > MAX_FILES {
        return Err(too_much("files", MAX_FILES as u64));
    }
    match files.values().map(size).sum::<u64>() > MAX_TREE_BYTES {
        true => Err(too_much("bytes", MAX_TREE_BYTES)),
        false => Ok(()),
    }
}

fn too_much(of: &'static str, limit: u64) -> Error {
    Error::TooMuch { path: "the repository with its submodules".into(), of, limit }
}
