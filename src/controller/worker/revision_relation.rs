//! Finds the relation of a new commit to the previous one, after the new one was reconciled.

use futures::future::FutureExt as _;

use super::Reconciler;
use super::signature_check::source_id;
use crate::clock;
use crate::controller::status::revision_change::RevisionChange;
use crate::controller::status::worker_event::WorkerEvent;
use crate::source::Revision;

impl Reconciler {
    /// Records the time at which a commit was observed, unless it is already applied, and the
    /// previous revision.
    pub(super) fn is_new(&mut self, revision: &Revision) {
        self.seen_at = (!self.recorder.has_applied(revision)).then(clock::now);
        let before = match &self.revision {
            Some(before) => Some(before.clone()),
            None if self.is_first => {
                self.recorder.last_seen(&source_id(&self.order.wish), &self.order.wish.reference)
            }
            None => None,
        };
        self.is_first = false;
        // Of several successive revisions the first is compared: those in between were never
        // applied.
        self.before = self.before.take().or(before).filter(|before| before.name == revision.name);
    }

    /// Starts the comparison with the previous commit: the newest one is reconciled, so there is
    /// time for it.
    pub(super) fn begin_relating(&mut self) {
        let (Some(before), Some(now)) = (self.before.take(), &self.revision) else { return };
        if before.commit != now.commit {
            self.relating =
                Some(RevisionChange::find(self.order.repository.clone(), before, now.clone()).boxed());
        }
    }

    pub(super) fn related(&mut self, lineage: RevisionChange) {
        self.relating = None;
        self.record_event(WorkerEvent::RevisionChanged(lineage));
    }
}
