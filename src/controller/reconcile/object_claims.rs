//! Claims the objects of a revision, and opens the Sync for hand-overs from other Syncs.
//!
//! In: the desired objects of a revision.
//! Out: the registered claim.
//!
//! Another Sync hands an object over by writing it as this revision has it, so the status names the
//! revision before.

use std::sync::Arc;

use super::ReconcileContext;
use crate::desired::DesiredSet;
use crate::observed::Ownership;
use crate::report::ReconcileError;

impl ReconcileContext<'_> {
    /// Claims the objects of a revision. With `takes`, other Syncs may hand them over from now on.
    pub(super) async fn claims(&self, wants: &Arc<DesiredSet>, takes: bool) -> Result<(), ReconcileError> {
        if takes && (self.has_new_claim(wants) || self.may_receive(wants)) {
            // Hand-overs in flight still use the revision that the status names until then.
            self.context.registry.closes(self.owner, wants).await;
            self.record_revision().await?;
        }
        let held = self.context.registry.set_desired(self.owner, wants, self.cluster, takes).await;
        self.context.neighbours.wake(&held);
        Ok(())
    }

    /// Returns true if the new claim differs from the registered one. A Sync that notices a
    /// hand-over late hands the object over again, in the new form.
    fn has_new_claim(&self, wants: &Arc<DesiredSet>) -> bool {
        let before = self.context.registry.view(self.owner);
        before.is_some_and(|(before, _)| {
            !Arc::ptr_eq(&before, wants) && before.digest().hash != wants.digest().hash
        })
    }

    /// Returns true if some object is not owned by this Sync yet.
    fn may_receive(&self, desired: &DesiredSet) -> bool {
        self.cluster.read_observed(self.owner, |seen| {
            let is_own = |id| seen.get(id).is_some_and(|seen| seen.ownership == Ownership::Ours);
            desired.objects().iter().any(|object| !is_own(&object.id))
        })
    }
}
