//! One lane for each receiver, so that a receiver that hangs delays no other.
//!
//! In: offered items, and the receiver of each.
//! Out: a task for each item. An item that finds its lane full is refused.
//!
//! A request may hold a thread of the process for as long as its deadline allows. So requests are
//! bounded in all, and receivers whose last request was slow share a small pool of their own. So
//! many receivers that hang take neither all threads nor the turns of the others. A receiver that
//! was slow, or that has had no request yet, gets one request at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;

use crate::clock::{now, since};

/// Most requests to one receiver at a time.
const MAX_TURNS: usize = 16;
/// Most requests to all receivers at a time, without those that are slow.
const MAX_REQUESTS: usize = 64;
/// Most requests to all slow receivers at a time.
const MAX_SLOW_REQUESTS: usize = 16;
/// A request that takes longer makes its receiver a slow one, until one takes less.
const SLOW: Duration = Duration::from_secs(3);
/// Most open items of one receiver.
const MAX_OPEN: usize = 1024;
/// Most open items of all receivers.
const MAX_OPEN_IN_ALL: usize = 8192;

/// Places of requests to all receivers.
#[derive(Debug)]
struct Pools {
    quick: Semaphore,
    slow: Semaphore,
}

/// Pace of a receiver, by its last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Unknown,
    Quick,
    Slow,
}

/// The lane of one receiver.
#[derive(Debug)]
pub struct Lane {
    turns: Semaphore,
    /// The turn of a receiver that is not known to be quick.
    single: Semaphore,
    open: Arc<Semaphore>,
    pace: Mutex<Pace>,
    pools: Arc<Pools>,
}

/// The turn of a request; it ends with the request.
#[derive(Debug)]
pub struct Turn<'a> {
    lane: &'a Lane,
    begun: Instant,
    _permits: (SemaphorePermit<'a>, Option<SemaphorePermit<'a>>, SemaphorePermit<'a>),
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let pace = if since(self.begun) > SLOW { Pace::Slow } else { Pace::Quick };
        *self.lane.pace.lock().unwrap_or_else(PoisonError::into_inner) = pace;
    }
}

impl Lane {
    fn new(pools: Arc<Pools>) -> Self {
        let (turns, single) = (Semaphore::new(MAX_TURNS), Semaphore::new(1));
        let open = Arc::new(Semaphore::new(MAX_OPEN));
        Self { turns, single, open, pace: Mutex::new(Pace::Unknown), pools }
    }

    /// Waits for a turn, which a request holds.
    pub async fn turn(&self) -> Option<Turn<'_>> {
        let turn = self.turns.acquire().await.ok()?;
        loop {
            let single = match self.pace() {
                Pace::Quick => None,
                Pace::Slow | Pace::Unknown => Some(self.single.acquire().await.ok()?),
            };
            // It may have changed meanwhile.
            let pace = self.pace();
            let single = single.filter(|_| pace != Pace::Quick);
            let pool = if pace == Pace::Slow { &self.pools.slow } else { &self.pools.quick };
            let place = pool.acquire().await.ok()?;
            if self.pace() == pace {
                return Some(Turn { lane: self, begun: now(), _permits: (turn, single, place) });
            }
        }
    }

    fn pace(&self) -> Pace {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
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
    let (quick, slow) = (Semaphore::new(MAX_REQUESTS), Semaphore::new(MAX_SLOW_REQUESTS));
    let pools = Arc::new(Pools { quick, slow });
    loop {
        tokio::select! {
            item = offered.recv(), if tasks.len() < MAX_OPEN_IN_ALL => {
                let Some(item) = item else { return };
                let key = W::key(&item);
                if !lanes.contains_key(&key) {
                    lanes.retain(|key, _| work.is_known(key));
                    lanes.insert(key.clone(), Arc::new(Lane::new(pools.clone())));
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

    /// Receivers whose name begins with `hung` hold each request until its deadline.
    #[derive(Clone, Default)]
    struct Deadlines {
        /// Running requests, and the most at a time.
        running: Arc<Mutex<(usize, usize)>>,
        told: Arc<Mutex<Vec<Instant>>>,
    }

    impl LaneWork for Deadlines {
        type Item = String;

        fn key(item: &Self::Item) -> Box<str> {
            item.as_str().into()
        }

        fn is_known(&self, _: &str) -> bool {
            true
        }

        fn refuse(&self, _: Self::Item) {}

        fn deliver(&self, lane: Arc<Lane>, item: Self::Item) -> impl Future<Output = ()> + Send + 'static {
            let all = self.clone();
            async move {
                let is_hung = item.starts_with("hung");
                loop {
                    let turn = lane.turn().await;
                    let most =
                        |(now, most): &mut (usize, usize)| (*now, *most) = (*now + 1, (*most).max(*now + 1));
                    most(&mut all.running.lock().unwrap());
                    tokio::time::sleep(Duration::from_millis(if is_hung { 10_000 } else { 50 })).await;
                    all.running.lock().unwrap().0 -= 1;
                    drop(turn);
                    if !is_hung {
                        return all.told.lock().unwrap().push(now());
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn receivers_that_hang_take_neither_every_thread_nor_the_turns_of_others() {
        // Each hangs with ten items. Most are known to hang when the good one gets its first item.
        for (hung, first_within) in [(1, 1), (40, 1), (200, 12)] {
            let (receivers, (send, offered)) = (Deadlines::default(), mpsc::channel(8192));
            let work = receivers.clone();
            let running = tokio::spawn(async move { run_lanes(&work, offered).await });
            let name = |at: usize| format!("hung-{}", at % hung);
            (0..hung * 10).map(name).for_each(|name| send.try_send(name).unwrap());
            // Before anything is known, each of them holds one place.
            send.try_send("good".to_owned()).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(receivers.told.lock().unwrap().len(), usize::from(hung < MAX_REQUESTS), "{hung} hang");
            tokio::time::sleep(Duration::from_secs(60)).await;
            receivers.told.lock().unwrap().clear();
            let began = now();
            (0..100).for_each(|_| send.try_send("good".to_owned()).unwrap());
            tokio::time::sleep(Duration::from_secs(first_within)).await;
            let told = receivers.told.lock().unwrap().clone();
            assert_eq!(told.len(), 100, "{hung} hang");
            let last = told.last().unwrap().saturating_duration_since(began);
            assert!(last < Duration::from_secs(first_within), "{hung} hang: {last:?}");
            let most = receivers.running.lock().unwrap().1;
            // Of the 512 threads that tokio has for work that blocks.
            assert!(most <= 80, "{most} requests at a time");
            running.abort();
        }
    }
}
