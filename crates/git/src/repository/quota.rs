//! The quota of the folder with mirrors and charts.
//!
//! In: what lies in the folder, and when it was used last. Out: the same within the quota: what was not used for longest is gone, but
//! nothing that somebody reads. A mirror that is gone is cloned when its files are wanted again; those that are held of it stay.

use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::time::SystemTime;

use super::{House, Place, Repositories, Shared};

/// What takes room on the disk.
struct Taker {
    used: SystemTime,
    bytes: u64,
    name: Box<str>,
}

impl House {
    /// Removes mirrors, the one first that was not used for longest, until the folder is within its quota.
    pub(super) fn tidy(&self) {
        let mut takers: Vec<Taker> = fs::read_dir(&self.data)
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
            if bytes <= self.quota {
                break;
            }
            if self.gives_up(&taker.name) {
                tracing::info!(
                    bytes = taker.bytes,
                    "a mirror was removed, because dataDir takes more than dataQuota"
                );
                bytes -= taker.bytes;
            }
        }
    }

    /// Gives up a mirror, unless somebody reads it now.
    fn gives_up(&self, name: &str) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.data.join(name);
        match open.get(name).and_then(Weak::upgrade) {
            Some(shared) => is_left(&shared),
            // Nobody can open it meanwhile.
            None => fs::remove_dir_all(path).is_ok(),
        }
    }
}

/// Gives up what is open, unless it is in use.
fn is_left(shared: &Arc<Shared>) -> bool {
    match shared.state.try_lock() {
        Ok(mut state) => match &mut state.place {
            Place::Mirrored(mirror) => {
                mirror.forget();
                true
            }
            Place::Unopened(home) => fs::remove_dir_all(home).is_ok(),
            Place::Local(_) => false,
        },
        Err(_) => false,
    }
}

/// True for what lies beside the mirrors and has bounds of its own, and for files.
fn is_another_s(name: &str) -> bool {
    super::BESIDE.contains(&name) || name == "lock" || name == Repositories::RENDERED
}

/// When a mirror was used last.
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
