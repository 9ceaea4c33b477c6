//! Results of recent polls, for concurrent callers.

use std::time::Instant;

use super::super::error::Error;
use super::super::revision::{Reference, Revision};

/// A result that may be shared.
#[derive(Debug)]
pub(super) struct RecentPoll {
    pub(super) reference: Reference,
    pub(super) begun: Instant,
    pub(super) by: Instant,
    pub(super) found: Result<Revision, Error>,
}

impl RecentPoll {
    /// True for a caller that `asked` before the poll began. A timeout is shared only with callers
    /// whose own deadline is not later.
    pub(super) fn answers(&self, reference: &Reference, asked: Instant, by: Instant) -> bool {
        let final_answer = !matches!(self.found, Err(Error::Timeout { .. })) || self.by >= by;
        self.reference == *reference && self.begun >= asked && final_answer
    }
}
