//! Changes that no entry of the history in the status counts yet.
//!
//! In: numbers of objects that were changed for a revision. Out: the counts in its entry, with the
//! next status that is written for another reason: a repair alone causes no write.

use crate::api::{ChangeCounts, SyncStatus};
use crate::report::add_changes;

/// Most revisions whose changes wait for an entry.
const MAX_REVISIONS: usize = 2;

/// Changes by revision; the newest revision is the last one.
#[derive(Default)]
pub(super) struct Uncounted {
    open: Vec<(String, ChangeCounts)>,
    /// Changes in a status that is being written.
    folded: Vec<(String, ChangeCounts)>,
}

impl Uncounted {
    /// Adds changes. Those of a revision that was never applied count for the next one.
    pub(super) fn add(&mut self, revision: &str, mut changes: ChangeCounts) {
        if changes.is_empty() {
            return;
        }
        if let Some(at) = self.open.iter().position(|(known, _)| known == revision) {
            changes += self.open.remove(at).1;
        } else if self.open.len() >= MAX_REVISIONS {
            changes += self.open.remove(0).1;
        }
        self.open.push((revision.to_owned(), changes));
    }

    /// Adds the changes to the entries of a status that is about to be written.
    pub(super) fn fold(&mut self, next: &mut SyncStatus) {
        self.unfold();
        let Some((newest, _)) = self.open.last().cloned() else { return };
        for (revision, changes) in std::mem::take(&mut self.open) {
            let is_in = add_changes(next, &revision, changes)
                || revision != newest && add_changes(next, &newest, changes);
            let list = if is_in { &mut self.folded } else { &mut self.open };
            list.push((revision, changes));
        }
    }

    /// Takes the changes back: the status with the counts was not written.
    pub(super) fn unfold(&mut self) {
        let newer = std::mem::take(&mut self.open);
        let all: Vec<_> = std::mem::take(&mut self.folded).into_iter().chain(newer).collect();
        all.into_iter().for_each(|(revision, changes)| self.add(&revision, changes));
    }

    /// Drops the changes that were in the status: it was written.
    pub(super) fn on_written(&mut self) {
        self.folded.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(revisions: &[&str]) -> SyncStatus {
        let entry = |revision: &&str| json!({"revision": revision, "time": "2026-01-01T00:00:00Z", "result": "Applied"});
        let history: Vec<_> = revisions.iter().map(entry).collect();
        serde_json::from_value(json!({"history": history})).unwrap()
    }

    fn repaired(count: i64) -> ChangeCounts {
        ChangeCounts { repaired: count, ..ChangeCounts::default() }
    }

    fn counts(status: &SyncStatus) -> Vec<i64> {
        status.history.iter().map(|entry| entry.changes.repaired).collect()
    }

    #[test]
    fn each_change_is_counted_once_in_the_entry_of_its_revision() {
        let mut uncounted = Uncounted::default();
        uncounted.add("main@1", repaired(1));
        let mut next = status(&["main@2", "main@1"]);
        uncounted.add("main@2", repaired(2));
        uncounted.fold(&mut next);
        assert_eq!(counts(&next), [2, 1]);
        // The write failed, and an object was repaired meanwhile.
        uncounted.add("main@2", repaired(4));
        let mut next = status(&["main@2", "main@1"]);
        uncounted.fold(&mut next);
        assert_eq!(counts(&next), [6, 1]);
        uncounted.on_written();
        uncounted.fold(&mut next);
        assert_eq!(counts(&next), [6, 1]);
    }

    #[test]
    fn changes_of_a_revision_that_was_never_applied_count_for_the_next() {
        let mut uncounted = Uncounted::default();
        uncounted.add("main@1", repaired(1));
        uncounted.fold(&mut status(&[]));
        uncounted.add("main@2", repaired(1));
        uncounted.add("main@3", repaired(1));
        let mut next = status(&["main@3"]);
        uncounted.fold(&mut next);
        assert_eq!(counts(&next), [3]);
        uncounted.on_written();
        assert!(uncounted.open.is_empty());
    }
}
