//! Fair queue for a limited number of slots: the namespace with the fewest slots goes first, so
//! that one namespace with a thousand requests delays another's by one.
//!
//! In: the namespace of each request.
//! Out: [`SlotGuard`], which frees its slot when it is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A queue for work of which only a few pieces may run at a time; cheap to clone.
#[derive(Debug, Clone)]
pub struct FairQueue(Arc<Mutex<QueueState>>);

#[derive(Debug)]
struct QueueState {
    limit: usize,
    /// Number of slots in use, by namespace.
    active: BTreeMap<Arc<str>, usize>,
    /// Number of slots in use.
    total: usize,
    /// Waiting requests by namespace, each in order of arrival.
    waiting: BTreeMap<Arc<str>, VecDeque<(u64, oneshot::Sender<()>)>>,
    next: u64,
}

/// A position in the queue, and then a slot, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct SlotGuard {
    queue: FairQueue,
    namespace: Arc<str>,
    number: u64,
}

impl FairQueue {
    /// Creates a queue with so many slots.
    pub fn new(most: usize) -> Self {
        let (inside, waiting) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(QueueState {
            limit: most.max(1),
            active: inside,
            total: 0,
            waiting,
            next: 0,
        })))
    }

    /// Waits for a slot. If the future is dropped, the position is freed for the next request.
    pub async fn acquire(&self, who: &str) -> SlotGuard {
        let (place, admitted) = {
            let mut state = self.lock();
            state.next += 1;
            let (number, who) = (state.next, Arc::<str>::from(who));
            let (admit, admitted) = oneshot::channel();
            state.waiting.entry(who.clone()).or_default().push_back((number, admit));
            state.admit();
            (SlotGuard { queue: self.clone(), namespace: who, number }, admitted)
        };
        // The sender is dropped only after it has sent.
        let _ = admitted.await;
        place
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Gives free slots to waiting requests.
    fn admit(&mut self) {
        while self.total < self.limit {
            let Some(who) = self.first() else { return };
            let Some(line) = self.waiting.get_mut(&who) else { return };
            let first = line.pop_front();
            if line.is_empty() {
                self.waiting.remove(&who);
            }
            let Some((_, admit)) = first else { continue };
            self.total += 1;
            *self.active.entry(who).or_default() += 1;
            // If the request was dropped meanwhile, its guard frees the slot at once.
            let _ = admit.send(());
        }
    }

    /// Returns the namespace that is next: of those with the fewest slots, the one whose request
    /// came first.
    fn first(&self) -> Option<Arc<str>> {
        let rank = |who: &Arc<str>, line: &VecDeque<(u64, _)>| {
            let inside = self.active.get(who).copied().unwrap_or_default();
            (inside, line.front().map(|(number, _)| *number))
        };
        self.waiting.iter().min_by_key(|(who, line)| rank(who, line)).map(|(who, _)| who.clone())
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let queued = state.waiting.get_mut(&self.namespace).and_then(|line| {
            let at = line.iter().position(|(number, _)| *number == self.number)?;
            line.remove(at);
            Some(line.is_empty())
        });
        match queued {
            Some(true) => drop(state.waiting.remove(&self.namespace)),
            Some(false) => {}
            None => {
                state.total = state.total.saturating_sub(1);
                let left = state.active.get_mut(&self.namespace).map(|inside| {
                    *inside -= 1;
                    *inside
                });
                if left == Some(0) {
                    state.active.remove(&self.namespace);
                }
            }
        }
        state.admit();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use proptest::prelude::*;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thousand_of_one_namespace_delay_another_by_one() {
        let (line, second) = (FairQueue::new(2), Duration::from_secs(1));
        for _ in 0..1000 {
            let line = line.clone();
            tokio::spawn(async move {
                let _place = line.acquire("noisy").await;
                tokio::time::sleep(second).await;
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let begun = Instant::now();
        for _ in 0..3 {
            let _place = line.acquire("quiet").await;
            tokio::time::sleep(second).await;
        }
        assert!(begun.elapsed() < 6 * second, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_line() {
        let line = FairQueue::new(1);
        let first = line.acquire("a").await;
        let mut second: BoxFuture<'_, SlotGuard> = line.acquire("a").boxed();
        assert!(second.as_mut().now_or_never().is_none());
        drop(second);
        assert!(line.lock().waiting.is_empty());
        drop(first);
        drop(line.acquire("b").await);
        let state = line.lock();
        assert_eq!((state.total, state.active.len(), state.waiting.len()), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn nobody_waits_while_there_is_room(
            most in 1_usize..5,
            steps in proptest::collection::vec((0_u8..4, any::<bool>()), 1..100),
        ) {
            let line = FairQueue::new(most);
            let (mut waiting, mut inside): (Vec<BoxFuture<'_, SlotGuard>>, Vec<SlotGuard>) = Default::default();
            for (who, comes) in steps {
                if comes {
                    let (line, who) = (&line, format!("team-{who}"));
                    waiting.push(async move { line.acquire(&who).await }.boxed());
                } else if !inside.is_empty() {
                    drop(inside.remove(0));
                } else {
                    drop(waiting.pop());
                }
                let mut left = Vec::new();
                for mut one in waiting {
                    match one.as_mut().now_or_never() {
                        Some(place) => inside.push(place),
                        None => left.push(one),
                    }
                }
                waiting = left;
                prop_assert!(inside.len() <= most);
                prop_assert!(waiting.is_empty() || inside.len() == most);
                prop_assert_eq!(line.lock().total, inside.len());
            }
        }
    }
}
