//! What the status that stands says of commits, for a daemon that has only just begun.

use super::Desk;
use crate::api::Revisions;
use crate::source::{ObjectHash, Revision};

impl Desk {
    /// The commit that was seen last under the same name, if this Sync asked for the same then.
    pub(crate) fn last_seen(&self, now: &Revision) -> Option<Revision> {
        self.last(now, |revisions| revisions.seen.as_ref())
    }

    /// The same of the commit that was applied last.
    pub(crate) fn last_applied(&self, now: &Revision) -> Option<Revision> {
        self.last(now, |revisions| revisions.applied.as_ref())
    }

    /// The commit that was applied last, under whatever name, if this Sync asked for the same then.
    pub(crate) fn applied_commit(&self) -> Option<ObjectHash> {
        self.written(|revisions| revisions.applied.as_ref()).map(|(_, commit)| commit)
    }

    fn last(&self, now: &Revision, told: fn(&Revisions) -> Option<&String>) -> Option<Revision> {
        let (told, commit) = self.written(told)?;
        Some(Revision { commit, ..now.clone() }).filter(|revision| revision.to_string() == told)
    }

    /// A revision in the status, and its commit.
    fn written(&self, told: fn(&Revisions) -> Option<&String>) -> Option<(String, ObjectHash)> {
        let state = self.lock();
        let same = state.written.observed_generation == state.generation;
        let told = told(state.written.revision.as_ref().filter(|_| same)?)?;
        let commit = ObjectHash::parse(told.get(told.len().checked_sub(40)?..)?)?;
        Some((told.clone(), commit))
    }
}
