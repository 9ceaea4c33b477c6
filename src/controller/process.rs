//! The process of the daemon: its place, its start and its end.
//!
//! In: the options of the daemon, and the signal that it shuts down. Out: what Syncs may use of the
//! place, and times that are measured from the start.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::schedule::Uptime;
use crate::clock;

/// Time that work in progress gets when the daemon shuts down.
const GRACE: Duration = Duration::from_secs(8);

/// The process of the daemon.
pub struct Process {
    /// Namespace of the daemon: only Syncs in it may act with the daemon's own rights.
    pub namespace: Box<str>,
    /// Folder of the local disk in which Syncs may name repositories, if any.
    disk: Option<PathBuf>,
    began: Instant,
    /// True once the daemon shuts down.
    pub ending: watch::Receiver<bool>,
    /// Time that work in progress gets at shutdown.
    pub(super) grace: Duration,
}

impl Process {
    pub(super) fn new(namespace: Box<str>, disk: Option<PathBuf>, ending: watch::Receiver<bool>) -> Self {
        Self { namespace, disk, began: clock::now(), ending, grace: GRACE }
    }

    /// Returns the folder in which Syncs may name repositories: only a demonstration has one.
    pub(super) fn disk(&self) -> Option<&Path> {
        self.disk.as_deref()
    }

    /// True if resources of this namespace may use its Secrets as the daemon may: it is the
    /// daemon's own namespace, or this is a demonstration.
    pub(super) fn is_own(&self, namespace: &str) -> bool {
        *self.namespace == *namespace || self.disk.is_some()
    }

    /// Returns the time since the start.
    pub(super) fn uptime(&self) -> Uptime {
        clock::since(self.began)
    }

    /// Returns the instant of a time since the start.
    pub(super) fn instant(&self, time: Uptime) -> Instant {
        self.began + time
    }

    /// Returns the time since the start at an instant.
    pub(super) fn uptime_at(&self, instant: Instant) -> Uptime {
        instant.saturating_duration_since(self.began)
    }
}
