//! Where a new commit comes from: asked once the cluster is held to it.

use futures::future::FutureExt as _;

use super::super::lineage::Lineage;
use super::trust::source_id;
use super::{Follower, Told};
use crate::clock;
use crate::source::Revision;

impl Follower {
    /// Notes when a commit was seen, unless it is applied already, and which one was there before.
    pub(super) fn is_new(&mut self, revision: &Revision) {
        self.seen_at = (!self.told.has_applied(revision)).then(clock::now);
        let before = match &self.revision {
            Some(before) => Some(before.clone()),
            None if self.is_first => {
                self.told.last_seen(&source_id(&self.order.wish), &self.order.wish.reference)
            }
            None => None,
        };
        self.is_first = false;
        // Of several that come one after the other, the first tells more than those that were never applied.
        self.before = self.before.take().or(before).filter(|before| before.name == revision.name);
    }

    /// The cluster is held to the newest commit: there is time to ask what came before it.
    pub(super) fn begin_relating(&mut self) {
        let (Some(before), Some(now)) = (self.before.take(), &self.revision) else { return };
        if before.commit != now.commit {
            self.relating = Some(Lineage::find(self.order.repository.clone(), before, now.clone()).boxed());
        }
    }

    pub(super) fn related(&mut self, lineage: Lineage) {
        self.relating = None;
        self.tell(Told::Moved(lineage));
    }
}
