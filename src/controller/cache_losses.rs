//! Test hook: drops one in-memory cache, which the daemon must rebuild.
//!
//! In: the cache to drop. Out: a daemon that has to determine its content again, at the cost of
//! requests and nothing else. Only tests call it: a restart drops all caches at once, and so never
//! one while another is kept that was built from it. State that Syncs publish to each other
//! (`peers/`) is not among the caches: no request returns it, only the tasks of
//! those Syncs do.

use std::sync::atomic::{AtomicU64, Ordering};

/// In-memory state of a daemon that it can rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// Lists of objects.
    Objects,
    /// Objects that are known to be as they were applied.
    Trust,
    /// Memory of each Sync between reconciles: the prepared commit, failed and waiting objects.
    Passes,
    /// Newest revisions.
    Revisions,
    /// Kinds that the server serves, and the places of labelled objects.
    Kinds,
    /// Health of the objects of each Sync.
    Health,
}

impl CacheKind {
    /// All caches that can be dropped separately.
    pub const ALL: [Self; 6] =
        [Self::Objects, Self::Trust, Self::Passes, Self::Revisions, Self::Kinds, Self::Health];
}

/// Counters of dropped caches, for all Syncs together.
#[derive(Debug, Default)]
pub(super) struct CacheLosses {
    passes: AtomicU64,
    health: AtomicU64,
}

impl CacheLosses {
    /// Counts that the memory between reconciles is dropped.
    pub(super) fn drop_passes(&self) {
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that the health is dropped.
    pub(super) fn drop_health(&self) {
        self.health.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often the memory between reconciles was dropped.
    pub(super) fn of_passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// Returns how often the health was dropped.
    pub(super) fn of_health(&self) -> u64 {
        self.health.load(Ordering::Relaxed)
    }
}
