//! Waits for the Syncs of `spec.dependsOn`.
//!
//! In: the revision that is to be accepted. Out: the reason why it is not accepted yet. A waiting
//! Sync is woken by the Syncs that it waits for.

use super::super::dependencies::{Applied, Waits};
use super::{Follower, Told};
use crate::api::Reason;
use crate::report::Trouble;
use crate::source::Revision;

/// True for a condition that an event ends, so that no retry is needed.
pub(super) fn is_waiting(trouble: &Trouble) -> bool {
    trouble.reason == reason(Reason::DependencyNotReady)
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::DependencyCycle => "DependencyCycle",
        _ => "DependencyNotReady",
    }
}

impl Follower {
    /// Returns the reason why a revision is not accepted yet. A revision that is already applied is
    /// not checked again.
    pub(super) fn waits(&self, revision: &Revision) -> Option<Trouble> {
        let known = self.taken_up.as_ref() == Some(revision) || self.told.has_applied(revision);
        let waits = match known {
            true => None,
            false => self.context.dependencies.waits(&self.owner, &self.come_to(revision)),
        };
        let trouble = waits.map(|waits| {
            let (why, message, lasting) = match waits {
                Waits::For(message) => (Reason::DependencyNotReady, message, false),
                Waits::Cycle(message) => (Reason::DependencyCycle, message, true),
            };
            Trouble { reason: reason(why), message, problems: Vec::new(), lasting }
        });
        self.tell(Told::Waits(trouble.clone()));
        trouble
    }

    /// True if a revision is not accepted before other Syncs are ready.
    pub(super) fn is_put_off(&self, revision: &Revision) -> bool {
        let is_known = self.taken_up.as_ref() == Some(revision) || self.told.has_applied(revision);
        !is_known && self.context.dependencies.waits(&self.owner, &self.come_to(revision)).is_some()
    }

    /// Clears the waiting reason: the revision in place was accepted before, and waits for no Sync.
    pub(super) fn waits_for_nothing(&self) {
        self.tell(Told::Waits(None));
    }

    fn come_to(&self, revision: &Revision) -> Applied {
        let wish = &self.order.wish;
        Applied { address: wish.address.clone(), reference: wish.reference.clone(), commit: revision.commit }
    }

    /// Publishes the applied revision to the Syncs that depend on this one.
    pub(super) fn has_come(&self) {
        let applied = self.applied.as_ref().filter(|_| self.is_well());
        self.context.dependencies.applied(&self.owner, applied.map(|revision| self.come_to(revision)));
    }
}
