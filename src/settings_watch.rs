//! Notices when the settings file may have changed.
//!
//! In: the path of the file. Out: [`SettingsWatch`], which wakes the tasks that wait. The folder is
//! watched and not the file: a kubelet replaces a mounted file by swapping a link beside it, once,
//! and a watch on the file would see nothing after that. It also wakes at a fixed interval, for
//! file systems that cannot be watched and as a second chance.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::{Event, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Changes within this time after the first one belong to it.
const SETTLE: Duration = Duration::from_millis(200);
/// Interval of the wake-ups without any event.
const NOW_AND_THEN: Duration = Duration::from_secs(60);

/// A watch on the folder of a file; it ends when this is dropped.
#[derive(Debug)]
pub struct SettingsWatch {
    changed: Arc<Notify>,
    _watcher: Option<notify::RecommendedWatcher>,
}

impl SettingsWatch {
    /// Watches the folder of `file`.
    pub fn new(file: &Path) -> Self {
        let changed = Arc::new(Notify::new());
        let wake = changed.clone();
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let watching = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // A read changes nothing, and our own reads would wake us in a loop.
            if event.map_or(true, |event| !event.kind.is_access()) {
                wake.notify_one();
            }
        })
        .and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let watcher = watching
            .inspect_err(|error| tracing::warn!(%error, "the settings file cannot be watched and is checked once a minute"))
            .ok();
        Self { changed, _watcher: watcher }
    }

    /// Waits until something may have changed since the last call.
    pub async fn changed(&self) {
        if tokio::time::timeout(NOW_AND_THEN, self.changed.notified()).await.is_ok() {
            tokio::time::sleep(SETTLE).await;
        }
    }
}
