//! Planning step of a reconcile.
//!
//! In: the desired and the observed objects, and the policy of the Sync.
//! Out: the steps that are due, with the claims of other Syncs weighed.

use std::collections::{BTreeSet, VecDeque};

use super::super::memory::SyncMemory;
use super::ReconcileContext;
use crate::controller::apply::verify::{VerifyMethod, to_verify};
use crate::controller::peers::claims::{Claims, LeftObjects, UnknownRight};
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::ObservedSet;
use crate::plan::{Claim, ClaimState, Deferrals, DuePlan, Plan, Policy, plan};

impl ReconcileContext<'_> {
    /// Returns the due plan, the objects to verify, and the claimed objects that may be pruned by
    /// approval.
    pub(super) async fn make_plan(
        &self,
        memory: &mut SyncMemory,
        desired: &DesiredSet,
        policy: Policy,
        deferrals: &Deferrals,
    ) -> (DuePlan, VecDeque<(ObjectId, VerifyMethod)>, BTreeSet<ObjectId>) {
        loop {
            let decide = |observed: &ObservedSet| {
                let (plan, claimed) = self.decide(memory, desired, observed, policy.clone())?;
                let open = to_verify(&plan, observed, self.wish.suspend);
                Ok((plan.defer(desired, deferrals), open, claimed))
            };
            match self.cluster.read_observed(self.owner, decide) {
                Ok(decided) => return decided,
                Err(open) => self.context.learn_rights(open).await,
            }
        }
    }

    /// Returns the plan and the claimed objects about which a person decides; or the patch rights
    /// that have to be queried first.
    fn decide(
        &self,
        memory: &mut SyncMemory,
        desired: &DesiredSet,
        observed: &ObservedSet,
        policy: Policy,
    ) -> Result<(Plan, BTreeSet<ObjectId>), Vec<UnknownRight>> {
        let unwanted = observed.iter().map(|(id, _)| id).filter(|id| desired.get(id).is_none());
        let leaves = LeftObjects { left: memory.claim_waits.left(), begun: None, moves_to: self.moves_to };
        let Claims { by_object: mut claims, due } = self.context.claims(self.owner, unwanted, leaves)?;
        let due = due.map(|due| due.saturating_duration_since(self.context.began));
        let limit = self.context.settings().claim_timeout;
        memory.claim_waits.judge(&mut claims, due, self.context.now(), limit);
        let asks = |claim: &Claim| matches!(claim.state, ClaimState::WithoutRights | ClaimState::Overdue);
        let claimed = claims.iter().filter(|(_, claim)| asks(claim)).map(|(id, _)| id.clone()).collect();
        Ok((plan(desired, observed, &Policy { claims, ..policy }), claimed))
    }
}
