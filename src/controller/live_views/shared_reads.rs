//! Reads that all viewers of a Sync share for a moment.
//!
//! In: a Sync, and a read. Out: its result, which is [`MAX_AGE`] old at most, or as old as the
//! reads say. Viewers who ask while it runs wait for it; a failure is shared as well. Nothing is
//! read again before somebody asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::api::SyncName;
use crate::clock;

/// The longest time for which a result is used.
pub(super) const MAX_AGE: Duration = Duration::from_secs(5);
/// The most results that are kept.
const MAX_KEPT: usize = 8;

/// A result, or the reason why there is none.
type SharedRead<T> = Result<Arc<T>, String>;
/// The result of one Sync, with its time; locked while it is read.
type ReadSlot<T> = tokio::sync::Mutex<Option<(Instant, SharedRead<T>)>>;

/// Results by Sync.
pub(super) struct SharedReads<T> {
    slots: Mutex<HashMap<SyncName, Arc<ReadSlot<T>>>>,
    max_age: Duration,
}

impl<T> Default for SharedReads<T> {
    fn default() -> Self {
        Self::lasting(MAX_AGE)
    }
}

impl<T> SharedReads<T> {
    /// Creates reads whose results are used for this time.
    pub(super) fn lasting(max_age: Duration) -> Self {
        Self { slots: Mutex::default(), max_age }
    }

    /// Returns the result for a Sync, which `read` reads unless it is known.
    pub(super) async fn get(
        &self,
        sync: &SyncName,
        read: impl Future<Output = Result<T, String>>,
    ) -> SharedRead<T> {
        let slot = self.slot(sync);
        let mut known = slot.lock().await;
        if let Some((at, result)) = &*known
            && clock::since(*at) < self.max_age
        {
            return result.clone();
        }
        let result = read.await.map(Arc::new);
        *known = Some((clock::now(), result.clone()));
        result
    }

    /// Returns the slot of a Sync, and drops those that nobody uses and that are too old.
    fn slot(&self, sync: &SyncName) -> Arc<ReadSlot<T>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in_use = |slot: &Arc<ReadSlot<T>>| Arc::strong_count(slot) > 1;
        let is_fresh = |slot: &Arc<ReadSlot<T>>| {
            slot.try_lock()
                .is_ok_and(|known| known.as_ref().is_some_and(|(at, _)| clock::since(*at) < self.max_age))
        };
        slots.retain(|name, slot| name == sync || is_in_use(slot) || is_fresh(slot));
        if slots.len() >= MAX_KEPT && !slots.contains_key(sync) {
            let idle = slots.iter().find(|(_, slot)| !is_in_use(slot)).map(|(name, _)| name.clone());
            idle.map(|idle| slots.remove(&idle));
        }
        slots.entry(sync.clone()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn viewers_of_one_moment_share_one_read() {
        let (reads, count) = (SharedReads::<usize>::default(), AtomicUsize::new(0));
        let read = async || {
            tokio::task::yield_now().await;
            Ok(count.fetch_add(1, Ordering::Relaxed))
        };
        let (shop, bank) = (SyncName::new("ops", "shop"), SyncName::new("ops", "bank"));
        let all = futures::future::join_all((0..20).map(|_| reads.get(&shop, read()))).await;
        assert!(all.iter().all(|one| one.as_deref() == Ok(&0)), "{all:?}");
        assert_eq!(reads.get(&bank, read()).await.as_deref(), Ok(&1));
        let failed = reads.get(&SyncName::new("ops", "bad"), async { Err("no".to_owned()) }).await;
        assert_eq!(failed, Err("no".to_owned()));
        let failed = reads.get(&SyncName::new("ops", "bad"), read()).await;
        assert_eq!(failed, Err("no".to_owned()), "a failure is shared as well");
        for nth in 0..2 * MAX_KEPT {
            let _ = reads.get(&SyncName::new("ops", &nth.to_string()), read()).await;
        }
        assert_eq!(reads.slots.lock().unwrap().len(), MAX_KEPT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_used_as_long_as_the_reads_say() {
        let (reads, count) = (SharedReads::<usize>::lasting(Duration::from_secs(30)), AtomicUsize::new(0));
        let shop = SyncName::new("ops", "shop");
        for (wait, expect) in [(0, 0), (29, 0), (2, 1)] {
            tokio::time::advance(Duration::from_secs(wait)).await;
            let read = async { Ok(count.fetch_add(1, Ordering::Relaxed)) };
            assert_eq!(reads.get(&shop, read).await.as_deref(), Ok(&expect), "{wait}");
        }
    }
}
