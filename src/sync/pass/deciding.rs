//! Planning step of a reconcile.
//!
//! In: the desired and the observed objects, and the policy of the Sync.
//! Out: the plan, with the claims of other Syncs weighed.

use std::collections::{BTreeSet, VecDeque};

use super::super::claims::{Claims, Leaves, OpenRight};
use super::super::memory::Memory;
use super::super::verify::{How, to_verify};
use super::Subject;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::ObservedSet;
use crate::plan::{Claim, ClaimStanding, Plan, Policy, plan};

impl Subject<'_> {
    /// Returns the plan, the objects to verify, and the claimed objects that may be pruned by
    /// approval.
    pub(super) async fn decided(
        &self,
        memory: &mut Memory,
        desired: &DesiredSet,
        policy: Policy,
    ) -> (Plan, VecDeque<(ObjectId, How)>, BTreeSet<ObjectId>) {
        loop {
            let decide = |observed: &ObservedSet| {
                let plan = self.decide(memory, desired, observed, policy.clone())?;
                let open = to_verify(&plan.0, observed, self.wish.suspend);
                Ok((plan.0, open, plan.1))
            };
            match self.cluster.observed(self.owner, decide) {
                Ok(decided) => return decided,
                Err(open) => self.context.learn_rights(open).await,
            }
        }
    }

    /// Returns the plan and the claimed objects about which a person decides; or the patch rights
    /// that have to be queried first.
    fn decide(
        &self,
        memory: &mut Memory,
        desired: &DesiredSet,
        observed: &ObservedSet,
        policy: Policy,
    ) -> Result<(Plan, BTreeSet<ObjectId>), Vec<OpenRight>> {
        let unwanted = observed.iter().map(|(id, _)| id).filter(|id| desired.get(id).is_none());
        let leaves = Leaves { left: memory.claim_waits.left(), begun: None, moves_to: self.moves_to };
        let Claims { by_object: mut claims, due } = self.context.claims(self.owner, unwanted, leaves)?;
        let due = due.map(|due| due.saturating_duration_since(self.context.began));
        let limit = self.context.settings().claim_timeout;
        memory.claim_waits.judge(&mut claims, due, self.context.now(), limit);
        let asks =
            |claim: &Claim| matches!(claim.standing, ClaimStanding::WithoutRights | ClaimStanding::Overdue);
        let claimed = claims.iter().filter(|(_, claim)| asks(claim)).map(|(id, _)| id.clone()).collect();
        Ok((plan(desired, observed, &Policy { claims, ..policy }), claimed))
    }
}
