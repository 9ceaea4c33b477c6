//! The last answers to looks, for those who ask at the same time.

use std::time::Instant;

use super::super::error::Error;
use super::super::revision::{Reference, Revision};

/// An answer that others may share.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) reference: Reference,
    pub(super) begun: Instant,
    pub(super) by: Instant,
    pub(super) found: Result<Revision, Error>,
}

impl Looked {
    /// True for one who `asked` before the look began. That it took too long is shared only with those who would
    /// not have waited longer.
    pub(super) fn answers(&self, reference: &Reference, asked: Instant, by: Instant) -> bool {
        let final_answer = !matches!(self.found, Err(Error::Timeout { .. })) || self.by >= by;
        self.reference == *reference && self.begun >= asked && final_answer
    }
}
