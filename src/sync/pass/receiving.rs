//! The objects that this Sync claims, and those that another Sync may hand over to it.
//!
//! In: the objects that a revision wants. Out: the claim. A Sync that hands an object over writes it as the revision of the new
//! owner has it, so that the status names this revision before.

use std::sync::Arc;

use super::Subject;
use crate::desired::DesiredSet;
use crate::observed::Mark;
use crate::report::Trouble;

impl Subject<'_> {
    /// Claims the objects of a revision. With `takes`, other Syncs hand them over from now on.
    pub(super) async fn claims(&self, wants: &Arc<DesiredSet>, takes: bool) -> Result<(), Trouble> {
        if takes && (self.wants_otherwise(wants) || self.may_receive(wants)) {
            // What is under way to this Sync is of the revision that the status names until then.
            self.context.registry.closes(self.owner, wants).await;
            self.record_revision().await?;
        }
        let held = self.context.registry.wants(self.owner, wants, self.cluster, takes).await;
        self.context.neighbours.wake(&held);
        Ok(())
    }

    /// True if this Sync has claimed other objects, or the same ones in another form. A Sync that hears late of an object that it
    /// has handed over hands it over again, in the new form.
    fn wants_otherwise(&self, wants: &Arc<DesiredSet>) -> bool {
        let before = self.context.registry.view(self.owner);
        before.is_some_and(|(before, _)| {
            !Arc::ptr_eq(&before, wants) && before.digest().hash != wants.digest().hash
        })
    }

    /// True if an object is not this Sync's yet.
    fn may_receive(&self, desired: &DesiredSet) -> bool {
        self.cluster.observed(self.owner, |seen| {
            let is_own = |id| seen.get(id).is_some_and(|seen| seen.mark == Mark::Ours);
            desired.objects().iter().any(|object| !is_own(&object.id))
        })
    }
}
