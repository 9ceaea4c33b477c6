//! What is only remembered can be lost at any time, and that costs requests and nothing else.
//!
//! In: what is to be lost. Out: a daemon that has to find it out anew. Only tests ask for it: a restart loses everything at
//! once, and so never one thing while another is kept that was made with it. What Syncs say to each other (`registry.rs`,
//! `neighbours.rs`) is not among it: it is not found out, it is what their own tasks are at.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Context;

/// What a daemon remembers and can find out anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// The objects that were listed.
    Objects,
    /// That objects are as they were applied.
    Trust,
    /// What each Sync keeps from pass to pass: the prepared commit, what failed, what waits.
    Passes,
    /// The newest revisions.
    Revisions,
    /// The kinds that the server serves, and where labelled objects were found.
    Kinds,
    /// How the objects of each Sync are.
    Health,
}

impl Remembered {
    /// Everything that can be lost alone.
    pub const ALL: [Self; 6] =
        [Self::Objects, Self::Trust, Self::Passes, Self::Revisions, Self::Kinds, Self::Health];
}

/// How often all Syncs have lost something.
#[derive(Debug, Default)]
pub(super) struct Losses {
    passes: AtomicU64,
    health: AtomicU64,
}

impl Losses {
    /// How often they have lost what they keep from pass to pass.
    pub(super) fn of_passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// How often they have lost how their objects are.
    pub(super) fn of_health(&self) -> u64 {
        self.health.load(Ordering::Relaxed)
    }
}

impl Context {
    /// Loses what is only remembered.
    pub fn lose(self: &Arc<Self>, what: Remembered) {
        match what {
            Remembered::Objects => self.begin_anew(),
            Remembered::Trust => self.distrust_all(),
            Remembered::Passes => drop(self.losses.passes.fetch_add(1, Ordering::Relaxed)),
            Remembered::Revisions => self.heads.lose(),
            Remembered::Kinds => {
                let cluster = self.cluster.clone();
                tokio::spawn(async move { cluster.lose_kinds().await });
            }
            Remembered::Health => drop(self.losses.health.fetch_add(1, Ordering::Relaxed)),
        }
    }
}
