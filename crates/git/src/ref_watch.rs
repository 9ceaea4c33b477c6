//! Watches a repository on the local disk for new commits.
//!
//! In: its path.
//! Out: a [`RefWatch`], which wakes waiting tasks. It may wake without a change and, on network
//! disks, not wake at all: it only triggers polls, and regular polling continues.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{Event, EventKind, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::error::Error;
use crate::local_repository;

/// Watch on the refs of a repository on the local disk; it ends on drop.
#[derive(Debug)]
pub struct RefWatch {
    changed: Arc<Notify>,
    _watcher: notify::RecommendedWatcher,
}

impl RefWatch {
    /// Watches the repository at `path`.
    pub fn new(path: &Path) -> Result<Self, Error> {
        let repository = local_repository::open(path)?;
        let failed = |error: notify::Error| Error::Local {
            path: path.display().to_string().into(),
            cause: error.to_string().into(),
        };
        let changed = Arc::new(Notify::new());
        let wake = changed.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // An error may mean that events were lost, so it wakes as well.
            if event.map_or(true, |event| matters(&event)) {
                wake.notify_one();
            }
        })
        .map_err(failed)?;
        // Folders, not files: git replaces files by renaming others over them, and a watch on a
        // file would miss that.
        let (own, common): (PathBuf, PathBuf) = (repository.path().into(), repository.commondir().into());
        watcher.watch(&own, RecursiveMode::NonRecursive).map_err(failed)?;
        if common != own {
            watcher.watch(&common, RecursiveMode::NonRecursive).map_err(failed)?;
        }
        watcher.watch(&common.join("refs"), RecursiveMode::Recursive).map_err(failed)?;
        Ok(Self { changed, _watcher: watcher })
    }

    /// Waits for a change since the last call.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Only changes of HEAD and of refs matter; locks and the index change with every command.
fn matters(event: &Event) -> bool {
    let written = matches!(
        event.kind,
        EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Any
            | EventKind::Other
    );
    let named = |path: &PathBuf| {
        let is_lock = path.extension().is_some_and(|end| end == "lock");
        let name = path.file_name().unwrap_or_default();
        let is_ref = path.components().any(|part| part.as_os_str() == "refs");
        !is_lock && (is_ref || name == "HEAD" || name == "packed-refs")
    };
    written && (event.need_rescan() || event.paths.iter().any(named))
}
