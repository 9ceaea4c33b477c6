//! Queue between the tasks that make changes and the thread that writes them down.
//!
//! In: entries. Out: the same in order. It is bounded: what finds no room is counted, at its place
//! in the order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::chain::Head;
use crate::entry::Entry;

/// Entries that wait at most; about 500 bytes each.
pub(crate) const MAX_QUEUED: usize = 4096;

/// Work of the writing thread.
#[derive(Debug)]
pub(crate) enum Item {
    /// A change.
    Entry(Box<Entry>),
    /// Changes that found no room.
    Lost(u64),
    /// A term begins; the head in the Lease.
    Start(Option<Head>),
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<Item>,
    /// True while an item is being written.
    writing: bool,
    closed: bool,
    head: Option<Head>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry; false if there is no room for it.
    pub(crate) fn push(&self, entry: Entry) -> bool {
        let mut state = self.lock();
        let has_room = state.items.len() < MAX_QUEUED;
        match state.items.back_mut() {
            Some(Item::Lost(count)) if !has_room => *count += 1,
            _ if !has_room => state.items.push_back(Item::Lost(1)),
            _ => state.items.push_back(Item::Entry(Box::new(entry))),
        }
        drop(state);
        self.wake.notify_all();
        has_room
    }

    /// Adds the begin of a term.
    pub(crate) fn start(&self, anchor: Option<Head>) {
        self.lock().items.push_back(Item::Start(anchor));
        self.wake.notify_all();
    }

    /// Waits for the next item; none once the queue is closed and empty.
    pub(crate) fn next(&self) -> Option<Item> {
        let mut state = self.lock();
        state.writing = false;
        loop {
            if let Some(item) = state.items.pop_front() {
                state.writing = true;
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits before another attempt; false once the queue is closed.
    pub(crate) fn wait(&self, pause: Duration) -> bool {
        let state = self.lock();
        let waited = self.wake.wait_timeout_while(state, pause, |state| !state.closed);
        !waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    pub(crate) fn set_head(&self, head: Head) {
        self.lock().head = Some(head);
    }

    pub(crate) fn head(&self) -> Option<Head> {
        self.lock().head
    }

    /// True if everything is written.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.items.is_empty() && !state.writing
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_all();
    }
}
