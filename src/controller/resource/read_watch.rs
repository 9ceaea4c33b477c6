//! Watches an object of which a part was read, so that it is read again only after a change.
//!
//! In: the version of each read, and the events of the watch. Out: true while the last read is
//! still current. A change notifies the worker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::SyncWorker;
use super::versions::Versions;
use crate::api::ValuesKind;
use crate::cluster::{Cluster, SharedWatch, ValuesWatchEvent};

/// Watch of one ConfigMap or Secret.
pub(super) struct ReadWatch {
    held: Arc<Mutex<Held>>,
    #[expect(dead_code, reason = "the watch ends when it is dropped")]
    following: SharedWatch,
}

/// State of the object, shared with its watch.
#[derive(Default)]
struct Held {
    versions: Versions,
    /// The last read failed, or the object is missing.
    failed: bool,
    /// It may not be watched, so that a change would stay undetected.
    forbidden: bool,
}

impl ReadWatch {
    /// Watches an object of the worker's namespace.
    pub(super) fn begin(worker: &SyncWorker, kind: ValuesKind, name: &str, cluster: &Cluster) -> Self {
        let held = Arc::<Mutex<Held>>::default();
        let (of_watch, inputs_changed) = (held.clone(), worker.inputs_changed.clone());
        let tell = move |event: ValuesWatchEvent<'_>| {
            let mut held = of_watch.lock().unwrap_or_else(PoisonError::into_inner);
            let was_forbidden = held.forbidden;
            held.forbidden = matches!(event, ValuesWatchEvent::Forbidden);
            if let ValuesWatchEvent::Version(version) = event {
                held.versions.watched = Some(version.map(Box::from));
            }
            if held.versions.is_another() || held.forbidden != was_forbidden {
                inputs_changed.notify_one();
            }
        };
        let following = cluster.substitution_sources().watch(kind, &worker.name.namespace, name, tell);
        Self { held, following }
    }

    /// True if the last read succeeded and nothing has changed since.
    pub(super) fn is_current(&self) -> bool {
        let held = self.lock();
        held.versions.read.is_some() && !held.failed && !held.versions.is_another()
    }

    /// True if the object may not be watched.
    pub(super) fn is_forbidden(&self) -> bool {
        self.lock().forbidden
    }

    /// Notes that a read begins.
    pub(super) fn reads(&self) {
        let mut held = self.lock();
        *held = Held { forbidden: held.forbidden, ..Held::default() };
    }

    /// Notes the version that was read, none if there is no such object or the read failed.
    /// Notifies `again` if it has changed meanwhile.
    pub(super) fn has_read(&self, version: Option<Box<str>>, failed: bool, again: &Notify) {
        let mut held = self.lock();
        (held.versions.read, held.failed) = (Some(version), failed);
        if held.versions.is_another() {
            again.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
