//! How much memory may be taken for the files of one revision and all that is made of them.
//!
//! In: a number of bytes. Out: leave to take more, or [`NoRoom`]. What is going to be allocated is taken here before. Whoever has no room
//! gives up, and whoever made the room learns how much was missing: the work may be done again in a larger one. A room that is
//! stopped gives nothing any more, so that work ends for which there is no time.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A number of bytes that may be taken; cheap to clone, and all clones are one.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    limit: u64,
    taken: AtomicU64,
    /// How much would have been needed when there was no room.
    short: AtomicU64,
    stopped: AtomicBool,
    /// What vouches for the bytes, for as long as somebody may take them.
    behind: OnceLock<Box<dyn Behind>>,
}

/// What vouches for the bytes of a room.
pub trait Behind: Any + Send + Sync {
    /// A processor for work in the room, until what is given is dropped; waited for as long as `go_on` says so.
    fn turn(&self, go_on: &dyn Fn() -> bool) -> Option<Box<dyn Any + Send>>;
}

/// Why no more may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The room is full.
    #[error("this takes more memory than there is for it now")]
    Full,
    /// The work is to end.
    #[error("this took longer than there was time for")]
    Stopped,
}

impl Default for Room {
    /// A room without walls, for what nobody else has to share memory with.
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
    /// A room of so many bytes.
    pub fn of(limit: u64) -> Self {
        Self(Arc::new(Inner {
            limit,
            taken: AtomicU64::new(0),
            short: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            behind: OnceLock::new(),
        }))
    }

    /// How many bytes it has.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// True if it is known what vouches for the bytes.
    pub fn is_backed(&self) -> bool {
        self.0.limit == u64::MAX || self.0.behind.get().is_some()
    }

    /// Keeps what vouches for the bytes.
    pub fn back(&self, behind: impl Behind) {
        // Who comes second gives his back at once.
        drop(self.0.behind.set(Box::new(behind)));
    }

    /// Takes so many bytes.
    pub fn take(&self, bytes: u64) -> Result<(), NoRoom> {
        self.goes_on()?;
        let taken = self.0.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if taken <= self.0.limit {
            return Ok(());
        }
        self.0.short.fetch_max(taken, Ordering::Relaxed);
        Err(NoRoom::Full)
    }

    /// How many bytes are taken.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Gives bytes back that were taken.
    pub fn give(&self, bytes: u64) {
        self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Waits for a processor for work in this room, if there are not enough of them.
    pub fn turn(&self) -> Option<Box<dyn Any + Send>> {
        self.0.behind.get()?.turn(&|| self.goes_on().is_ok())
    }

    /// Refuses once the work is to end.
    pub fn goes_on(&self) -> Result<(), NoRoom> {
        if self.0.stopped.load(Ordering::Relaxed) { Err(NoRoom::Stopped) } else { Ok(()) }
    }

    /// The same as an answer.
    pub fn is_open(&self) -> bool {
        self.goes_on().is_ok()
    }

    /// How many bytes would have been enough as far as is known, if these were not.
    pub fn short(&self) -> Option<u64> {
        Some(self.0.short.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Refuses also if there was no room before: nothing that was begun here can be finished here.
    pub fn is_sound(&self) -> Result<(), NoRoom> {
        self.goes_on()?;
        if self.short().is_some() { Err(NoRoom::Full) } else { Ok(()) }
    }

    /// Ends the work when what is given is dropped.
    #[must_use]
    pub fn stop_when_dropped(&self) -> Stop {
        Stop(self.clone())
    }
}

/// Ends the work in a room when it is dropped.
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
