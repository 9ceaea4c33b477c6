//! Deletions that are suspended: nothing is deleted for them.
//!
//! In: the time since which each Sync is suspended during its deletion. Out: each deletion of an
//! object that was sent in spite of that.

use std::time::Duration;

use moorline::sandbox::ObservedRequest;
use tokio::time::Instant;

use super::{Observer, Seen};

/// So long after its suspension nothing of a Sync that is deleted is deleted any more: what began before has ended.
pub(crate) const HEARD: Duration = Duration::from_secs(120);

impl Observer {
    /// From now on the deletion of a Sync is suspended, or not.
    pub(crate) fn rests(&self, sync: usize, rests: bool) {
        let mut seen = self.seen();
        match rests {
            true => drop(seen.rests.entry(sync).or_insert(Instant::now())),
            false => drop(seen.rests.remove(&sync)),
        }
    }
}

impl Seen {
    /// Nothing is deleted for a Sync whose deletion is suspended.
    pub(super) fn not_suspended(&mut self, owner: Option<usize>, heard: &ObservedRequest<'_>) {
        let rests = owner.and_then(|owner| self.rests.get(&owner));
        if rests.is_some_and(|since| *since + HEARD < heard.sent) {
            self.say("a deletion for a Sync that is suspended while it is deleted", heard);
        }
    }
}
