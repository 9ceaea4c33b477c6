//! Finds the relation of a new commit to the previous one, after the new one was reconciled.

use futures::future::FutureExt as _;

use super::Reconciler;
use super::signature_check::source_id;
use crate::clock;
use crate::controller::status::revision_change::RevisionChange;
use crate::controller::status::worker_event::WorkerEvent;
use crate::source::Revision;

/// Records the time at which a commit was observed, unless it is already applied, and the
/// previous revision.
pub(super) fn is_new(worker: &mut Reconciler, revision: &Revision) {
    worker.seen_at = (!worker.recorder.has_applied(revision)).then(clock::now);
    let before = match &worker.revision {
        Some(before) => Some(before.clone()),
        None if worker.is_first => {
            worker.recorder.last_seen(&source_id(&worker.order.wish), &worker.order.wish.reference)
        }
        None => None,
    };
    worker.is_first = false;
    // Of several successive revisions the first is compared: those in between were never
    // applied.
    worker.before = worker.before.take().or(before).filter(|before| before.name == revision.name);
}

/// Starts the comparison with the previous commit: the newest one is reconciled, so there is
/// time for it.
pub(super) fn begin_relating(worker: &mut Reconciler) {
    let (Some(before), Some(now)) = (worker.before.take(), &worker.revision) else { return };
    if before.commit != now.commit {
        worker.relating =
            Some(RevisionChange::find(worker.order.repository.clone(), before, now.clone()).boxed());
    }
}

pub(super) fn related(worker: &mut Reconciler, lineage: RevisionChange) {
    worker.relating = None;
    worker.record_event(WorkerEvent::RevisionChanged(lineage));
}
