//! One lane for each receiver, so that one that hangs holds up no other.
//!
//! In: offered items, and the receiver of each.
//! Out: a task for each item. An item that finds its lane full is refused.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;

/// Most requests to one receiver at a time.
const MAX_TURNS: usize = 16;
/// Most open items of one receiver.
const MAX_OPEN: usize = 1024;
/// Most open items of all receivers.
const MAX_OPEN_IN_ALL: usize = 8192;

/// The lane of one receiver.
#[derive(Debug)]
pub struct Lane {
    turns: Semaphore,
    open: Arc<Semaphore>,
}

impl Lane {
    /// Waits for a turn, which a request holds.
    pub async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }
}

/// Treatment of items.
pub trait LaneWork {
    /// An item.
    type Item: Send + 'static;

    /// Returns the receiver of an item.
    fn key(item: &Self::Item) -> Box<str>;

    /// True while the receiver exists.
    fn is_known(&self, key: &str) -> bool;

    /// Takes back an item that found no room.
    fn refuse(&self, item: Self::Item);

    /// Does the work for an item.
    fn deliver(&self, lane: Arc<Lane>, item: Self::Item) -> impl Future<Output = ()> + Send + 'static;
}

/// Works on what is offered, until nothing more can be. Dropping the future ends the tasks.
pub async fn run_lanes<W: LaneWork>(work: &W, mut offered: mpsc::Receiver<W::Item>) {
    let (mut lanes, mut tasks) = (HashMap::<Box<str>, Arc<Lane>>::new(), JoinSet::new());
    loop {
        tokio::select! {
            item = offered.recv(), if tasks.len() < MAX_OPEN_IN_ALL => {
                let Some(item) = item else { return };
                let key = W::key(&item);
                if !lanes.contains_key(&key) {
                    lanes.retain(|key, _| work.is_known(key));
                    let (turns, open) = (Semaphore::new(MAX_TURNS), Arc::new(Semaphore::new(MAX_OPEN)));
                    lanes.insert(key.clone(), Arc::new(Lane { turns, open }));
                }
                let Some(lane) = lanes.get(&key).cloned() else { continue };
                let Ok(place) = lane.open.clone().try_acquire_owned() else {
                    work.refuse(item);
                    continue;
                };
                let delivery = work.deliver(lane, item);
                tasks.spawn(async move {
                    delivery.await;
                    drop(place);
                });
            }
            _ = tasks.join_next(), if !tasks.is_empty() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    /// Receivers: `good` takes 50 milliseconds, `hung` never answers.
    #[derive(Clone, Default)]
    struct Receivers {
        told: Arc<Mutex<usize>>,
        /// Refused items of the good receiver.
        refused: Arc<Mutex<usize>>,
    }

    impl LaneWork for Receivers {
        type Item = &'static str;

        fn key(item: &Self::Item) -> Box<str> {
            (*item).into()
        }

        fn is_known(&self, _: &str) -> bool {
            true
        }

        fn refuse(&self, item: Self::Item) {
            *self.refused.lock().unwrap() += usize::from(item == "good");
        }

        fn deliver(&self, lane: Arc<Lane>, item: Self::Item) -> impl Future<Output = ()> + Send + 'static {
            let told = self.told.clone();
            async move {
                let _turn = lane.turn().await;
                if item == "hung" {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                *told.lock().unwrap() += 1;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ten_thousand_in_a_minute_beside_a_receiver_that_hangs() {
        let (receivers, (send, offered)) = (Receivers::default(), mpsc::channel(1024));
        let work = receivers.clone();
        let running = tokio::spawn(async move { run_lanes(&work, offered).await });
        let began = tokio::time::Instant::now();
        let mut left = 10_000;
        while *receivers.told.lock().unwrap() < 10_000 {
            // A Sync never waits: what finds no room is offered again later.
            for _ in 0..3 {
                let _ = send.try_send("hung");
            }
            for _ in 0..400 {
                left -= usize::from(left > 0 && send.try_send("good").is_ok());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            left += std::mem::take(&mut *receivers.refused.lock().unwrap());
            assert!(began.elapsed() < Duration::from_secs(60), "{left} are left");
        }
        assert_eq!(*receivers.told.lock().unwrap(), 10_000);
        running.abort();
    }
}
