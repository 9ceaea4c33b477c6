//! Objects on their way to a Sync, given by others.
//!
//! In: a render of the Sync that receives them. Out: leave to write what it says, until a newer one takes its place: then nothing
//! more begins, and what was sent has come to its end before anything newer is written. So who gives never writes an older
//! revision over a newer one.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::cluster::Stop;

/// What is given by one render; clones tell of the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receiving {
    under_way: Arc<RwLock<()>>,
    stop: Stop,
}

/// Leave to write one object; it is given back with this.
#[derive(Debug)]
pub(crate) struct Leave {
    /// Set when a newer render is there.
    pub(crate) stop: Stop,
    _under_way: OwnedRwLockReadGuard<()>,
}

impl Receiving {
    /// None once a newer render is there.
    pub(crate) fn begin(&self) -> Option<Leave> {
        let under_way = self.under_way.clone().try_read_owned().ok()?;
        (!self.stop.is_stopped()).then(|| Leave { stop: self.stop.clone(), _under_way: under_way })
    }

    /// A newer render is there. Waits for what was sent, each of which has a deadline.
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
