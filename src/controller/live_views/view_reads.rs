//! Orders the waits of a read for viewers: for the slot of its Sync first, and for a turn last.
//!
//! In: a Sync, and its reads. Out: a tree or Events that all viewers of the Sync share. A read has
//! a turn only while it waits for the cluster, never while it waits for another read.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::shared_reads::SharedReads;
use crate::api::SyncName;

/// Trees and Events of all Syncs.
pub(super) struct ViewReads<T, E> {
    trees: SharedReads<T>,
    events: SharedReads<E>,
    turns: Semaphore,
}

impl<T, E> ViewReads<T, E> {
    /// Creates it with a number of reads at the same time.
    pub(super) fn new(turns: usize) -> Self {
        Self { trees: SharedReads::default(), events: SharedReads::default(), turns: Semaphore::new(turns) }
    }

    /// Returns the tree of a Sync.
    pub(super) async fn tree(
        &self,
        sync: &SyncName,
        read: impl Future<Output = Result<T, String>>,
    ) -> Result<Arc<T>, String> {
        let in_turn = async {
            let _turn = self.turns.acquire().await;
            read.await
        };
        self.trees.get(sync, in_turn).await
    }

    /// Returns the Events of a Sync, which are read once its tree is there.
    pub(super) async fn events<F: Future<Output = Result<E, String>>>(
        &self,
        sync: &SyncName,
        tree: impl Future<Output = Result<T, String>>,
        read: impl FnOnce(Arc<T>) -> F,
    ) -> Result<Arc<E>, String> {
        let in_turn = async {
            let tree = self.tree(sync, tree).await?;
            let _turn = self.turns.acquire().await;
            read(tree).await
        };
        self.events.get(sync, in_turn).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::future::join;
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn events_and_trees_of_many_syncs_never_wait_for_each_other() {
        let (reads, now, most) = (ViewReads::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let read = async || {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            Ok::<(), String>(())
        };
        // The first two reads have the turns. Of each other Sync, Events are asked for before the
        // tree.
        let both = (0..6).map(|number| {
            let (reads, read, sync) = (&reads, &read, SyncName::new("ops", &number.to_string()));
            async move {
                if number < 2 {
                    return reads.tree(&sync, read()).await.is_ok();
                }
                let events = reads.events(&sync, read(), |_| read());
                let (events, tree) = join(events, reads.tree(&sync, read())).await;
                events.is_ok() && tree.is_ok()
            }
        });
        let all = timeout(Duration::from_secs(60), futures::future::join_all(both)).await;
        assert_eq!(all, Ok(vec![true; 6]));
        assert_eq!(most.load(Ordering::Relaxed), 2, "reads at the same time");
    }
}
