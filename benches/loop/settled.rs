//! When each Sync came to be on which commit.
//!
//! In: the statuses of all Syncs, through one watch of the person who measures. Out: for each Sync the revision that is
//! applied, and when that was told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use tokio::task::AbortHandle;

/// Between two looks at what the watch has told.
const LOOK: Duration = Duration::from_millis(5);

/// The applied revision of a Sync, and when it was first told.
type Applied = HashMap<String, (String, f64)>;

/// A watch on the Syncs; it ends when this is dropped.
pub(crate) struct Settled {
    applied: Arc<Mutex<Applied>>,
    task: AbortHandle,
}

impl Drop for Settled {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Settled {
    pub(crate) fn follow(syncs: Api<DynamicObject>) -> Self {
        let applied = Arc::new(Mutex::new(Applied::new()));
        let told = applied.clone();
        let task = tokio::spawn(async move {
            loop {
                round(&syncs, &told).await;
            }
        });
        Self { applied, task: task.abort_handle() }
    }

    /// When the last of so many Syncs came to the commit; none if one has not in time.
    pub(crate) async fn all(&self, syncs: usize, commit: &str, within: Duration) -> Option<f64> {
        let deadline = Instant::now() + within;
        loop {
            let times = self.on(commit);
            if times.len() >= syncs {
                return times.into_iter().reduce(f64::max);
            }
            if Instant::now() > deadline {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// When each Sync that is on the commit came to it.
    pub(crate) fn on(&self, commit: &str) -> Vec<f64> {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let on = applied.values().filter(|(revision, _)| revision.ends_with(commit));
        on.map(|(_, since)| *since).collect()
    }
}

/// One watch from the beginning until the server ends it.
async fn round(syncs: &Api<DynamicObject>, told: &Mutex<Applied>) {
    let Ok(stream) = syncs.watch(&WatchParams::default(), "0").await else {
        tokio::time::sleep(Duration::from_millis(100)).await;
        return;
    };
    let mut stream = std::pin::pin!(stream);
    while let Some(Ok(event)) = stream.next().await {
        let (WatchEvent::Added(sync) | WatchEvent::Modified(sync)) = event else { continue };
        let revision = sync.data["status"]["revision"]["applied"].as_str().unwrap_or_default().to_owned();
        let name = sync.metadata.name.unwrap_or_default();
        let mut applied = told.lock().unwrap_or_else(PoisonError::into_inner);
        if applied.get(&name).is_none_or(|(known, _)| *known != revision) {
            applied.insert(name, (revision, now()));
        }
    }
}
