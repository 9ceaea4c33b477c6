//! Records the time at which each Sync reached each commit.
//!
//! In: the statuses of all Syncs, by one watch of the benchmark.
//! Out: for each Sync its applied revision, and the time of the first event with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use tokio::task::AbortHandle;

/// Interval between two checks of the recorded events.
const LOOK: Duration = Duration::from_millis(5);

/// Applied revision of each Sync, and the time of the first event with it.
type Applied = HashMap<String, (String, f64)>;

/// A watch on the Syncs; it ends on drop.
pub(crate) struct AppliedRevisions {
    applied: Arc<Mutex<Applied>>,
    task: AbortHandle,
}

impl Drop for AppliedRevisions {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl AppliedRevisions {
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

    /// Returns the time at which the last of so many Syncs reached the commit; `None` after a
    /// timeout.
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

    /// Returns the times at which Syncs reached the commit, for all that have it now.
    pub(crate) fn on(&self, commit: &str) -> Vec<f64> {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let on = applied.values().filter(|(revision, _)| revision.ends_with(commit));
        on.map(|(_, since)| *since).collect()
    }
}

/// One watch, until the server ends it.
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
