//! Waits for the Syncs of `spec.dependsOn`.
//!
//! In: the revision that is to be accepted. Out: the reason why it is not accepted yet. A waiting
//! Sync is woken by the Syncs that it waits for.

use super::Reconciler;
use crate::controller::peers::dependencies::{AppliedCommit, WaitReason};
use crate::controller::status::worker_event::WorkerEvent;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::Revision;

/// True for a condition that an event ends, so that no retry is needed.
pub(super) fn is_waiting(trouble: &ReconcileError) -> bool {
    trouble.cause == ErrorCause::DependencyNotReady
}

impl Reconciler {
    /// Returns the reason why a revision is not accepted yet. A revision that is already applied is
    /// not checked again.
    pub(super) fn waiting_reason(&self, revision: &Revision) -> Option<ReconcileError> {
        let known = self.taken_up.as_ref() == Some(revision) || self.recorder.has_applied(revision);
        let waits = match known {
            true => None,
            false => self.context.dependencies.waits(&self.owner, &self.applied_at(revision)),
        };
        let trouble = waits.map(|waits| {
            let (cause, message, lasting) = match waits {
                WaitReason::For(message) => (ErrorCause::DependencyNotReady, message, false),
                WaitReason::Cycle(message) => (ErrorCause::DependencyCycle, message, true),
            };
            ReconcileError { cause, message, problems: Vec::new(), permanent: lasting }
        });
        self.record_event(WorkerEvent::Waiting(trouble.clone()));
        trouble
    }

    /// True if a revision is not accepted before other Syncs are ready.
    pub(super) fn is_put_off(&self, revision: &Revision) -> bool {
        let is_known = self.taken_up.as_ref() == Some(revision) || self.recorder.has_applied(revision);
        !is_known && self.context.dependencies.waits(&self.owner, &self.applied_at(revision)).is_some()
    }

    /// Clears the waiting reason: the revision in place was accepted before, and waits for no Sync.
    pub(super) fn waits_for_nothing(&self) {
        self.record_event(WorkerEvent::Waiting(None));
    }

    fn applied_at(&self, revision: &Revision) -> AppliedCommit {
        let wish = &self.order.wish;
        AppliedCommit {
            address: wish.address.clone(),
            reference: wish.reference.clone(),
            commit: revision.commit,
        }
    }

    /// Publishes the applied revision to the Syncs that depend on this one.
    pub(super) fn publish_applied(&self) {
        let applied = self.applied.as_ref().filter(|_| self.is_well());
        self.context.dependencies.applied(&self.owner, applied.map(|revision| self.applied_at(revision)));
    }
}
