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
pub struct MemoryLimit(Arc<Inner>);

struct Inner {
    limit: u64,
    taken: AtomicU64,
    /// The number of bytes that a refused reservation would have needed.
    short: AtomicU64,
    stopped: AtomicBool,
    /// The reservation in a larger pool that backs the bytes, for as long as they may be used.
    behind: OnceLock<Box<dyn MemoryBacking>>,
}

/// A reservation in a larger pool that backs the bytes of a limit.
pub trait MemoryBacking: Any + Send + Sync {
    /// Waits for a processor for work under the limit while `go_on` returns true. The processor is
    /// held until the result is dropped.
    fn wait_for_processor(&self, go_on: &dyn Fn() -> bool) -> Option<Box<dyn Any + Send>>;
}

/// The reason why no more memory is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoryLimitError {
    /// The limit is reached.
    #[error("this needs more memory than is available now")]
    Full,
    /// The work must end.
    #[error("this exceeded its time limit")]
    Stopped,
}

impl Default for MemoryLimit {
    /// Unlimited, for work that shares no memory with others.
    fn default() -> Self {
        Self::with_bytes(u64::MAX)
    }
}

impl fmt::Debug for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.0.taken.load(Ordering::Relaxed), self.0.limit)
    }
}

impl MemoryLimit {
    /// Creates a limit of so many bytes.
    pub fn with_bytes(limit: u64) -> Self {
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
    pub fn set_backing(&self, behind: impl MemoryBacking) {
        // If a reservation is present already, the second one is returned to the pool at once.
        drop(self.0.behind.set(Box::new(behind)));
    }

    /// Reserves so many bytes.
    pub fn reserve(&self, bytes: u64) -> Result<(), MemoryLimitError> {
        self.check_running()?;
        let taken = self.0.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if taken <= self.0.limit {
            return Ok(());
        }
        self.0.short.fetch_max(taken, Ordering::Relaxed);
        Err(MemoryLimitError::Full)
    }

    /// Returns the number of reserved bytes.
    pub fn reserved_bytes(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Returns reserved bytes.
    pub fn give_back(&self, bytes: u64) {
        self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Waits for a processor for work under this limit, if there are not enough of them.
    pub fn wait_for_processor(&self) -> Option<Box<dyn Any + Send>> {
        self.0.behind.get()?.wait_for_processor(&|| self.check_running().is_ok())
    }

    /// Fails once the work must end.
    pub fn check_running(&self) -> Result<(), MemoryLimitError> {
        if self.0.stopped.load(Ordering::Relaxed) { Err(MemoryLimitError::Stopped) } else { Ok(()) }
    }

    /// True until the work must end.
    pub fn is_running(&self) -> bool {
        self.check_running().is_ok()
    }

    /// Returns the smallest limit known to be needed, if this one was exceeded.
    pub fn required_bytes(&self) -> Option<u64> {
        Some(self.0.short.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Fails if the work must end or if the limit was exceeded before: work that lost a reservation
    /// cannot be completed.
    pub fn check_intact(&self) -> Result<(), MemoryLimitError> {
        self.check_running()?;
        if self.required_bytes().is_some() { Err(MemoryLimitError::Full) } else { Ok(()) }
    }

    /// Returns a guard that stops the work when it is dropped.
    #[must_use]
    pub fn stop_on_drop(&self) -> StopGuard {
        StopGuard(self.clone())
    }
}

/// Stops the work under a limit when it is dropped.
#[derive(Debug)]
pub struct StopGuard(MemoryLimit);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.0.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_full_when_its_bytes_are_taken() {
        let limit = MemoryLimit::with_bytes(10);
        assert_eq!(limit.reserve(6), Ok(()));
        limit.give_back(2);
        assert_eq!((limit.reserve(6), limit.required_bytes()), (Ok(()), None));
        assert_eq!(limit.check_intact(), Ok(()));
        assert_eq!((limit.reserve(5), limit.required_bytes()), (Err(MemoryLimitError::Full), Some(15)));
        assert_eq!(limit.check_intact(), Err(MemoryLimitError::Full));
        assert_eq!(MemoryLimit::default().reserve(1 << 50), Ok(()));
    }

    #[test]
    fn work_ends_when_nobody_waits_for_it() {
        let limit = MemoryLimit::default();
        let stop = limit.stop_on_drop();
        assert_eq!(limit.reserve(1), Ok(()));
        drop(stop);
        assert_eq!(
            (limit.reserve(1), limit.check_running()),
            (Err(MemoryLimitError::Stopped), Err(MemoryLimitError::Stopped))
        );
    }
}
