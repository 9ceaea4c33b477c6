//! How many writes are under way at one time.
//!
//! In: the settings' bounds and what the server's answers say. Out: permits, first come, first served. The bound is
//! halved when the server says that it is too much, and grows again by one for every round of answers without
//! such a complaint. How many may begin in a second is bounded for the whole daemon.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::rate::Rate;
use crate::metrics::Metrics;

/// The gate before all writes on objects.
#[derive(Debug)]
pub(super) struct Gate {
    rate: Arc<Rate>,
    metrics: Metrics,
    permits: Semaphore,
    most: usize,
    /// How many permits there are now, given out or not.
    width: AtomicUsize,
    /// Answers since the width last changed.
    calm: AtomicUsize,
    /// Nothing is sent before this time.
    closed_until: Mutex<Option<Instant>>,
}

impl Gate {
    pub(super) fn new(most: usize, rate: Arc<Rate>, metrics: Metrics) -> Self {
        let most = most.max(1);
        Self {
            rate,
            metrics,
            permits: Semaphore::new(most),
            most,
            width: AtomicUsize::new(most),
            calm: AtomicUsize::new(0),
            closed_until: Mutex::default(),
        }
    }

    /// Waits for its turn. None if this program is ending.
    pub(super) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        let _queued = self.metrics.queued();
        loop {
            let until = *self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
            match until.filter(|until| *until > Instant::now()) {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => break,
            }
        }
        let permit = self.permits.acquire().await.ok()?;
        self.rate.turn().await;
        Some(permit)
    }

    /// An answer came that complains of nothing.
    pub(super) fn calm(&self) {
        let width = self.width.load(Ordering::Relaxed);
        if width < self.most && self.calm.fetch_add(1, Ordering::Relaxed) + 1 >= width {
            self.calm.store(0, Ordering::Relaxed);
            self.width.fetch_add(1, Ordering::Relaxed);
            self.permits.add_permits(1);
        }
    }

    /// The server has too much to do, and may say for how long.
    pub(super) fn strained(&self, pause: Option<Duration>) {
        self.calm.store(0, Ordering::Relaxed);
        let width = self.width.load(Ordering::Relaxed);
        let gone = self.permits.forget_permits(width / 2);
        self.width.fetch_sub(gone, Ordering::Relaxed);
        if let Some(pause) = pause {
            let until = Instant::now() + pause.min(MAX_PAUSE);
            let mut closed = self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
            *closed = Some(closed.map_or(until, |known| known.max(until)));
        }
    }
}

/// However long a server wants to be left alone, it is asked again after this time.
const MAX_PAUSE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_width_is_halved_and_grows_again() {
        let gate = Gate::new(8, Arc::new(Rate::new(0, 1)), Metrics::new().unwrap());
        gate.strained(None);
        assert_eq!(gate.permits.available_permits(), 4);
        (0..4).for_each(|_| gate.calm());
        assert_eq!(gate.permits.available_permits(), 5);
        (0..100).for_each(|_| gate.calm());
        assert_eq!(gate.permits.available_permits(), 8, "and never beyond what is allowed");
        (0..10).for_each(|_| gate.strained(None));
        assert_eq!(gate.permits.available_permits(), 1, "one is always left");
        assert!(gate.enter().await.is_some());
    }
}
