//! Sees that the settings file may have changed.
//!
//! In: its path. Out: [`SettingsWatch`], which wakes whoever waits. The folder is watched and not the file: a kubelet
//! replaces a mounted file by swapping a link beside it, once, and a watch on the file would go deaf with that. Where
//! nothing can be watched, and as a second chance, it wakes now and then by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::{Event, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// After the first sign of a change: what follows in this time belongs to it.
const SETTLE: Duration = Duration::from_millis(200);
/// Without any sign.
const NOW_AND_THEN: Duration = Duration::from_secs(60);

/// A watch over the folder of a file; it ends when it is dropped.
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
            // That a file was read changes nothing, and we are the ones who read it.
            if event.map_or(true, |event| !event.kind.is_access()) {
                wake.notify_one();
            }
        })
        .and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let watcher = watching
            .inspect_err(|error| tracing::warn!(%error, "changed settings are seen once a minute only"))
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
