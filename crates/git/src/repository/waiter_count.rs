//! Counts the callers waiting for a repository, so that the last one closes its open objects.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Shared;

/// A caller waiting for the state of a repository.
pub(super) struct WaiterCount<'a>(&'a AtomicUsize);

impl<'a> WaiterCount<'a> {
    pub(super) fn of(shared: &'a Shared) -> Self {
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        Self(&shared.waiting)
    }
}

impl Drop for WaiterCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
