//! What the status that stands says of commits, for a daemon that has only just begun.

use super::Desk;
use crate::source::{Reference, Revision};

impl Desk {
    /// The revision that was seen last, if it was of this `source`, where `asked` was asked for.
    pub(crate) fn last_seen(&self, source: &str, asked: &Reference) -> Option<Revision> {
        let state = self.lock();
        let known =
            state.written.revision.as_ref().filter(|known| known.source.as_deref() == Some(source))?;
        Revision::read(known.seen.as_ref()?, asked)
    }
}
