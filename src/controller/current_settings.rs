//! Settings of a running daemon.
//!
//! In: the settings, at the start and after each change of their file. Out: the newest settings,
//! and the pace of verifications that they set.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, Notify};

use crate::clock;
use crate::settings::Settings;

/// Settings that can change while the daemon runs.
pub(super) struct CurrentSettings {
    newest: RwLock<Arc<Settings>>,
    /// Notified when the settings were replaced.
    pub(super) replaced: Notify,
    /// Time of the last paced verification of an object.
    verified: Mutex<Instant>,
}

impl CurrentSettings {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            newest: RwLock::new(Arc::new(settings)),
            replaced: Notify::new(),
            verified: Mutex::new(clock::now()),
        }
    }

    /// Returns the newest settings.
    pub(super) fn newest(&self) -> Arc<Settings> {
        self.newest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings.
    pub(super) fn replace(&self, settings: Settings) {
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        self.replaced.notify_waiters();
    }

    /// Waits until one more object may be verified.
    pub(super) async fn verify_turn(&self) {
        let mut last = self.verified.lock().await;
        let pause = Duration::from_secs(1) / self.newest().verify_rate.max(1);
        tokio::time::sleep_until((*last + pause).into()).await;
        *last = clock::now();
    }
}
