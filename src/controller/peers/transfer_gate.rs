//! Gate for objects that other Syncs hand over to one Sync.
//!
//! In: a render of the receiving Sync. Out: permits to write its objects, until a newer render
//! replaces it: then no further permit is given, and writes in progress end before anything newer
//! is written. So a hand-over never overwrites a newer revision with an older one.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::cluster::CancelFlag;

/// Gate of the hand-overs that use one render; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransferGate {
    under_way: Arc<RwLock<()>>,
    stop: CancelFlag,
}

/// RAII permit for one hand-over write.
#[derive(Debug)]
pub(crate) struct TransferPermit {
    /// Set once there is a newer render.
    pub(crate) stop: CancelFlag,
    _under_way: OwnedRwLockReadGuard<()>,
}

impl TransferGate {
    /// Returns a permit; none once there is a newer render.
    pub(crate) fn begin(&self) -> Option<TransferPermit> {
        let under_way = self.under_way.clone().try_read_owned().ok()?;
        (!self.stop.is_cancelled()).then(|| TransferPermit { stop: self.stop.clone(), _under_way: under_way })
    }

    /// Closes the gate: no further permit is given.
    pub(crate) fn close(&self) {
        self.stop.cancel();
    }

    /// True if the gate is closed and no write is in progress.
    pub(crate) fn has_ended(&self) -> bool {
        self.stop.is_cancelled() && self.under_way.try_write().is_ok()
    }

    /// Closes the gate, and waits for the writes in progress, each of which has a deadline.
    ///
    /// # Cancellation
    ///
    /// The gate is closed before the first await. A dropped future stops only the wait.
    pub(crate) async fn end(&self) {
        self.close();
        drop(self.under_way.write().await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_newer_waits_for_what_is_under_way_and_nothing_begins_after_it() {
        let receiving = TransferGate::default();
        let (one, other) = (receiving.begin().unwrap(), receiving.begin().unwrap());
        let ending = tokio::spawn({
            let receiving = receiving.clone();
            async move { receiving.end().await }
        });
        one.stop.wait_until_cancelled().await;
        assert!(receiving.begin().is_none(), "it is too late");
        drop(one);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(!ending.is_finished(), "another is still under way");
        drop(other);
        ending.await.unwrap();
        assert!(receiving.begin().is_none(), "it stays so");
    }
}
