//! Gate for objects that other Syncs hand over to one Sync.
//!
//! In: a render of the receiving Sync. Out: permits to write its objects, until a newer render
//! replaces it: then no further permit is given, and writes in progress end before anything newer
//! is written. So a hand-over never overwrites a newer revision with an older one.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::cluster::Stop;

/// Gate of the hand-overs that use one render; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receiving {
    under_way: Arc<RwLock<()>>,
    stop: Stop,
}

/// RAII permit for one hand-over write.
#[derive(Debug)]
pub(crate) struct Leave {
    /// Set once there is a newer render.
    pub(crate) stop: Stop,
    _under_way: OwnedRwLockReadGuard<()>,
}

impl Receiving {
    /// Returns a permit; none once there is a newer render.
    pub(crate) fn begin(&self) -> Option<Leave> {
        let under_way = self.under_way.clone().try_read_owned().ok()?;
        (!self.stop.is_stopped()).then(|| Leave { stop: self.stop.clone(), _under_way: under_way })
    }

    /// Closes the gate, and waits for the writes in progress, each of which has a deadline.
    pub(crate) async fn end(&self) {
        self.stop.stop();
        drop(self.under_way.write().await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_newer_waits_for_what_is_under_way_and_nothing_begins_after_it() {
        let receiving = Receiving::default();
        let (one, other) = (receiving.begin().unwrap(), receiving.begin().unwrap());
        let ending = tokio::spawn({
            let receiving = receiving.clone();
            async move { receiving.end().await }
        });
        one.stop.stopped().await;
        assert!(receiving.begin().is_none(), "it is too late");
        drop(one);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(!ending.is_finished(), "another is still under way");
        drop(other);
        ending.await.unwrap();
        assert!(receiving.begin().is_none(), "it stays so");
    }
}
