//! Pool of workers that contact servers and read objects.
//!
//! In: the namespace, and the server if any.
//! Out: a [`WorkerSlot`], returned on drop. `fair_share.rs` decides about the next free worker.

mod fair_share;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use fair_share::FairShare;
pub(super) use fair_share::{ContactResult, WaitReason, WorkerRequest};

/// All workers, and the requests waiting for one.
#[derive(Debug, Clone)]
pub(super) struct WorkerPool(Arc<Mutex<PoolState>>);

#[derive(Debug)]
struct PoolState {
    share: FairShare,
    /// Channels that notify waiting requests.
    admit: BTreeMap<u64, oneshot::Sender<()>>,
    /// Receiver of the number of waiting requests.
    counter: Option<WaitingCounter>,
}

/// Callback for the number of waiting requests, called on every change.
pub(super) struct WaitingCounter(pub(super) Box<dyn Fn(usize) + Send>);

impl fmt::Debug for WaitingCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counter")
    }
}

/// A place in the queue, and then a worker, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct WorkerSlot {
    turns: WorkerPool,
    who: u64,
    heard: ContactResult,
}

impl WorkerPool {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(PoolState {
            share: FairShare::new(most),
            admit: BTreeMap::new(),
            counter: None,
        })))
    }

    /// Waits for a worker. On cancellation the place in the queue is released.
    pub(super) async fn take(&self, ask: WorkerRequest) -> WorkerSlot {
        let (turn, admitted) = {
            let mut line = self.lock();
            let who = line.share.ask(ask);
            let (admit, admitted) = oneshot::channel();
            line.admit.insert(who, admit);
            line.grant();
            (WorkerSlot { turns: self.clone(), who, heard: ContactResult::Nothing }, admitted)
        };
        // The sender is dropped only after sending.
        let _ = admitted.await;
        turn
    }

    /// Returns the reason for which such a request would wait now.
    pub(super) fn why(&self, ask: &WorkerRequest) -> Option<WaitReason> {
        self.lock().share.why(ask)
    }

    /// Sets the receiver of the number of waiting requests.
    pub(super) fn count(&self, counter: WaitingCounter) {
        self.lock().counter = Some(counter);
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn grant(&mut self) {
        for who in self.share.grant() {
            // A cancelled request returns its worker at once.
            let _ = self.admit.remove(&who).map(|admit| admit.send(()));
        }
        self.counter.iter().for_each(|counter| counter.0(self.share.waiting()));
    }
}

impl WorkerSlot {
    /// Records the result of the contact with the server.
    pub(super) fn heard(&mut self, heard: ContactResult) {
        self.heard = heard;
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        let mut line = self.turns.lock();
        line.admit.remove(&self.who);
        line.share.leave(self.who, self.heard);
        line.grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(namespace: &str, server: &str) -> WorkerRequest {
        WorkerRequest { namespace: namespace.into(), server: Some(server.into()) }
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_line_and_who_panics_gives_back() {
        let turns = WorkerPool::new(1);
        let first = turns.take(ask("a", "x")).await;
        let second = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take(ask("b", "x")).await }
        });
        let waiting = || turns.lock().share.waiting();
        while waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.why(&ask("c", "y")), Some(WaitReason::Unproven));
        second.abort();
        assert!(second.await.is_err());
        assert_eq!(waiting(), 0);
        let broken = tokio::spawn(async move {
            let _held = first;
            panic!("planted");
        });
        assert!(broken.await.is_err());
        let mut turn = turns.take(ask("b", "x")).await;
        turn.heard(ContactResult::Silence);
        drop(turn);
        drop(turns.take(ask("b", "x")).await);
    }
}
