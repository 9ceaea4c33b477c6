//! Limit of the memory for the files of one revision and everything derived from them.
//!
//! In: a number of bytes.
//! Out: permission to allocate them, or [`MemoryLimitError`]. Memory is reserved here before it is
//! allocated. Work that exceeds the limit fails, and the creator of the limit learns how much was
//! missing, so that it can repeat the work with a larger one. A stopped limit grants nothing more,
//! so that work ends when its time is over.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A number of bytes that may be reserved; cheap to clone, and all clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    limit: u64,
    taken: AtomicU64,
    /// The number of bytes that a refused reservation would have needed.
    short: AtomicU64,
    stopped: AtomicBool,
    /// The reservation in a larger pool that backs the bytes, for as long as they may be used.
    behind: OnceLock<Box<dyn Behind>>,
}

/// A reservation in a larger pool that backs the bytes of a limit.
pub trait Behind: Any + Send + Sync {
    /// Waits for a processor for work under the limit while `go_on` returns true. The processor is
    /// held until the result is dropped.
    fn turn(&self, go_on: &dyn Fn() -> bool) -> Option<Box<dyn Any + Send>>;
}

/// The reason why no more memory is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The limit is reached.
    #[error("this takes more memory than there is for it now")]
    Full,
    /// The work must end.
    #[error("this took longer than there was time for")]
    Stopped,
}

impl Default for Room {
    /// Unlimited, for work that shares no memory with others.
    fn default() -> Self {
        Self::of(u64::MAX)
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.0.taken.load(Ordering::Relaxed), self.0.limit)
    }
}

impl Room {
    /// Creates a limit of so many bytes.
    pub fn of(limit: u64) -> Self {
        Self(Arc::new(Inner {
            limit,
            taken: AtomicU64::new(0),
            short: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            behind: OnceLock::new(),
        }))
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// True if the bytes are backed by a pool, or unlimited.
    pub fn is_backed(&self) -> bool {
        self.0.limit == u64::MAX || self.0.behind.get().is_some()
    }

    /// Keeps the reservation that backs the bytes.
    pub fn back(&self, behind: impl Behind) {
        // If a reservation is present already, the second one is returned to the pool at once.
        drop(self.0.behind.set(Box::new(behind)));
    }

    /// Reserves so many bytes.
    pub fn take(&self, bytes: u64) -> Result<(), NoRoom> {
        self.goes_on()?;
        let taken = self.0.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if taken <= self.0.limit {
            return Ok(());
        }
        self.0.short.fetch_max(taken, Ordering::Relaxed);
        Err(NoRoom::Full)
    }

    /// Returns the number of reserved bytes.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Returns reserved bytes.
    pub fn give(&self, bytes: u64) {
        self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Waits for a processor for work under this limit, if there are not enough of them.
    pub fn turn(&self) -> Option<Box<dyn Any + Send>> {
        self.0.behind.get()?.turn(&|| self.goes_on().is_ok())
    }

    /// Fails once the work must end.
    pub fn goes_on(&self) -> Result<(), NoRoom> {
        if self.0.stopped.load(Ordering::Relaxed) { Err(NoRoom::Stopped) } else { Ok(()) }
    }

    /// True until the work must end.
    pub fn is_open(&self) -> bool {
        self.goes_on().is_ok()
    }

    /// Returns the smallest limit known to be needed, if this one was exceeded.
    pub fn short(&self) -> Option<u64> {
        Some(self.0.short.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Fails if the work must end or if the limit was exceeded before: work that lost a reservation
    /// cannot be completed.
    pub fn is_sound(&self) -> Result<(), NoRoom> {
        self.goes_on()?;
        if self.short().is_some() { Err(NoRoom::Full) } else { Ok(()) }
    }

    /// Returns a guard that stops the work when it is dropped.
    #[must_use]
    pub fn stop_when_dropped(&self) -> Stop {
        Stop(self.clone())
    }
}

/// Stops the work under a limit when it is dropped.
#[derive(Debug)]
pub struct Stop(Room);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.0.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_full_when_its_bytes_are_taken() {
        let room = Room::of(10);
        assert_eq!(room.take(6), Ok(()));
        room.give(2);
        assert_eq!((room.take(6), room.short()), (Ok(()), None));
        assert_eq!(room.is_sound(), Ok(()));
        assert_eq!((room.take(5), room.short()), (Err(NoRoom::Full), Some(15)));
        assert_eq!(room.is_sound(), Err(NoRoom::Full));
        assert_eq!(Room::default().take(1 << 50), Ok(()));
    }

    #[test]
    fn work_ends_when_nobody_waits_for_it() {
        let room = Room::default();
        let stop = room.stop_when_dropped();
        assert_eq!(room.take(1), Ok(()));
        drop(stop);
        assert_eq!((room.take(1), room.goes_on()), (Err(NoRoom::Stopped), Err(NoRoom::Stopped)));
    }
}
