//! What is only remembered can be lost at any time, and that costs requests and nothing else.
//!
//! In: what is to be lost. Out: a daemon that has to find it out anew. Only tests ask for it: a restart loses everything at
//! once, and so never one thing while another is kept that was made with it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

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
}

impl Remembered {
    /// Everything that can be lost alone.
    pub const ALL: [Self; 4] = [Self::Objects, Self::Trust, Self::Passes, Self::Revisions];
}

impl Context {
    /// Loses what is only remembered.
    pub fn lose(self: &Arc<Self>, what: Remembered) {
        match what {
            Remembered::Objects => self.begin_anew(),
            Remembered::Trust => self.distrust_all(),
            Remembered::Passes => drop(self.losses.fetch_add(1, Ordering::Relaxed)),
            Remembered::Revisions => self.heads.lose(),
        }
    }

    /// How often what Syncs keep from pass to pass was lost.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }
}
