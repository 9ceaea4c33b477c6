//! The last commits, to which a branch may be reset.
//!
//! In: each commit, with the content of its folders. Out: an earlier one.

use git2::Oid;

use super::charge::Holding;

/// So many are remembered.
const REACH: usize = 5;

/// The last commits, the newest last.
#[derive(Default)]
pub(crate) struct Past(Vec<(Oid, Vec<Holding>)>);

impl Past {
    /// This was committed: after the last commit, or in its place.
    pub(crate) fn note(&mut self, commit: Oid, holdings: Vec<Holding>, forced: bool) {
        if forced {
            self.0.pop();
        }
        self.0.push((commit, holdings));
        let many = self.0.len().saturating_sub(REACH);
        self.0.drain(..many);
    }

    /// The commit so many before the last, or the oldest that is remembered; those after it are gone.
    pub(crate) fn back(&mut self, steps: usize) -> Option<&(Oid, Vec<Holding>)> {
        self.0.truncate(self.0.len().saturating_sub(steps).max(1));
        self.0.last()
    }

    /// From here on nobody goes back: the folders are others.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}
