//! Writes of one round.
//!
//! In: the due steps of a plan, and the progress of the rollout.
//! Out: the outcome of each object; resources that delayed webhooks are remembered.

use std::collections::BTreeMap;

use super::super::memory::SyncMemory;
use super::ReconcileContext;
use crate::controller::apply::{ApplyContext, execute};
use crate::object::ObjectId;
use crate::plan::{AwaitedKinds, DuePlan, Outcome, Rollout, RolloutGate};

impl ReconcileContext<'_> {
    /// Executes the due steps of a plan. Returns their outcomes, and those of the postponed steps.
    pub(super) async fn execute_plan(
        &self,
        memory: &mut SyncMemory,
        work: &ApplyContext<'_>,
        due: DuePlan,
        rollout: Option<&Rollout>,
    ) -> (BTreeMap<ObjectId, Outcome>, BTreeMap<ObjectId, Outcome>) {
        let (now, served) = (self.context.now(), self.cluster.kinds());
        let mut kinds = AwaitedKinds::new(work.desired, memory.awaited.late(now));
        for (id, outcome) in &due.postponed {
            kinds.record_outcome(id, outcome, || served.get(&id.group_kind()).is_some());
        }
        let awaits = RolloutGate::new(work.desired, rollout);
        let outcomes = execute(work, due.plan, due.blocking, awaits, &mut kinds).await;
        memory.awaited.learn(kinds.resources(), self.context.now());
        (outcomes, due.postponed)
    }
}
