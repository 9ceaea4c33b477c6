//! Claims the objects of a revision, and opens the Sync for hand-overs from other Syncs.
//!
//! In: the desired objects of a revision.
//! Out: the registered claim.
//!
//! Another Sync hands an object over by writing it as this revision contains it. Therefore the
//! status names the revision before the claim is registered.

use std::sync::Arc;

use super::ReconcileContext;
use crate::desired::DesiredSet;
use crate::observed::Ownership;
use crate::report::ReconcileError;

impl ReconcileContext<'_> {
    /// Publishes the desired set to the other Syncs, and the rendered commit to those that wait for
    /// it. While a newer commit cannot be rendered, its claims are unknown, and nothing is handed
    /// over to this Sync.
    pub(super) async fn publish(&self, desired: &Arc<DesiredSet>) -> Result<(), ReconcileError> {
        let is_newest = self.aim.refused().is_none();
        self.claims(desired, !self.wish.suspend && is_newest).await?;
        if is_newest {
            self.publish_rendered();
        }
        Ok(())
    }

    /// Publishes the rendered commit to the Syncs of the same repository, which may wait for it.
    fn publish_rendered(&self) {
        let (held, newest) = (self.revision.commit, self.newest.commit);
        self.context.neighbours.rendered(self.owner, self.spec_revision, held, newest);
    }

    /// Claims the objects of a revision. With `takes`, other Syncs may hand them over from now on.
    async fn claims(&self, wants: &Arc<DesiredSet>, takes: bool) -> Result<(), ReconcileError> {
        if takes && (self.has_new_claim(wants) || self.may_receive(wants)) {
            // Hand-overs in flight still use the revision that the status names until then.
            self.context.registry.closes(self.owner, wants).await;
            self.record_revision().await?;
        }
        let held = self.context.registry.set_desired(self.owner, wants, self.cluster, takes);
        self.context.neighbours.wake(&held);
        self.context.registry.hand_overs_ended(self.owner).await;
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
