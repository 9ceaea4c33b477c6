//! The data folder: its lock, and its quota for mirrors and charts.
//!
//! In: the entries of the data folder, with the time of their last use.
//! Out: the folder within its quota: the least recently used mirrors are removed, but none that is
//! being read. A removed mirror is cloned again when its files are needed; files already read are
//! not affected.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::time::SystemTime;

use super::super::error::Error;
use super::{FileStore, MirrorFolder, Repositories, Shared};

/// Folders next to the mirrors, which must not be removed.
pub(super) const BESIDE: [&str; 4] =
    [super::charts::FOLDER, super::lfs_files::FOLDER, super::signature_check::FOLDER, Repositories::RENDERED];

/// Makes the folder, and locks it for this daemon.
pub(super) fn lock_folder(data: &Path) -> Result<File, Error> {
    let disk = |what, error: io::Error| Error::Disk { what, cause: error.to_string().into() };
    // Other users must not read private repositories.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
    made.map_err(|error| disk("make the folder", error))?;
    let lock = File::create(data.join("lock")).map_err(|error| disk("make the lock", error))?;
    lock.try_lock().map_err(|error| match error {
        fs::TryLockError::WouldBlock => {
            disk("begin", io::Error::other("another daemon uses it; each needs its own"))
        }
        fs::TryLockError::Error(error) => disk("take the lock", error),
    })?;
    Ok(lock)
}

/// An entry of the folder.
struct Taker {
    used: SystemTime,
    bytes: u64,
    name: Box<str>,
}

/// Removes mirrors, least recently used first, until the folder is within its quota.
pub(super) fn keep_quota(mirrors: &MirrorFolder) {
    let mut takers: Vec<Taker> = fs::read_dir(&mirrors.data)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.into();
            Some(Taker { used: used(&entry.path()), bytes: size(&entry.path()), name })
        })
        .collect();
    let mut bytes: u64 = takers.iter().map(|taker| taker.bytes).sum();
    takers.sort_by_key(|taker| taker.used);
    for taker in takers.iter().filter(|taker| !is_another_s(&taker.name)) {
        if bytes <= mirrors.quota {
            break;
        }
        if remove_unused(mirrors, &taker.name) {
            tracing::info!(
                bytes = taker.bytes,
                "a mirror was removed, because dataDir takes more than dataQuota"
            );
            bytes -= taker.bytes;
        }
    }
}

/// Removes a mirror, unless it is being read.
fn remove_unused(mirrors: &MirrorFolder, name: &str) -> bool {
    let open = mirrors.open.lock().unwrap_or_else(PoisonError::into_inner);
    let path = mirrors.data.join(name);
    match open.get(name).and_then(Weak::upgrade) {
        Some(shared) => is_left(&shared),
        // It cannot be opened meanwhile.
        None => fs::remove_dir_all(path).is_ok(),
    }
}

/// Removes an open mirror, unless it is in use.
fn is_left(shared: &Arc<Shared>) -> bool {
    match shared.state.try_lock() {
        Ok(mut state) => match &mut state.place {
            FileStore::Mirrored(mirror) => {
                mirror.forget();
                true
            }
            FileStore::Artifacts(mirror) => {
                mirror.forget();
                true
            }
            FileStore::Unopened(home) => fs::remove_dir_all(home).is_ok(),
            FileStore::Local(_) => false,
        },
        Err(_) => false,
    }
}

/// True for entries with limits of their own, and for files.
fn is_another_s(name: &str) -> bool {
    BESIDE.contains(&name) || name == "lock"
}

/// Returns the time of the last use of a mirror.
fn used(home: &Path) -> SystemTime {
    fs::metadata(home).and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
        }
        Ok(found) => found.len(),
        Err(_) => 0,
    }
}
