//! Writes of one round.
//!
//! In: a plan, the steps that are not retried yet, and the progress of the rollout.
//! Out: the outcome of each object; resources that delayed webhooks are remembered.

use std::collections::BTreeMap;

use super::super::memory::{BackedOff, SyncMemory};
use super::ReconcileContext;
use crate::controller::apply::{ApplyContext, execute};
use crate::object::ObjectId;
use crate::plan::{AwaitedKinds, Outcome, Plan, Rollout, RolloutGate};

impl ReconcileContext<'_> {
    /// Executes a plan from which the steps that are not due were removed.
    pub(super) async fn execute_plan(
        &self,
        memory: &mut SyncMemory,
        work: &ApplyContext<'_>,
        (plan, postponed): (Plan, &mut BackedOff),
        rollout: Option<&Rollout>,
    ) -> BTreeMap<ObjectId, Outcome> {
        let (now, served) = (self.context.now(), self.cluster.kinds());
        let mut kinds = AwaitedKinds::new(work.desired, memory.awaited.late(now));
        for (id, outcome) in &postponed.outcomes {
            kinds.record_outcome(id, outcome, || served.get(&id.group_kind()).is_some());
        }
        let blocking = std::mem::take(&mut postponed.blocking);
        let awaits = RolloutGate::new(work.desired, rollout);
        let outcomes = execute(work, plan, blocking, awaits, &mut kinds).await;
        memory.awaited.learn(kinds.resources(), self.context.now());
        outcomes
    }
}
