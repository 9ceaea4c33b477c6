//! Writes of one round.
//!
//! In: a plan, the steps that are not retried yet, and the progress of the rollout.
//! Out: the outcome of each object; resources that delayed webhooks are remembered.

use std::collections::BTreeMap;

use super::super::carry_out::{Work, carry_out};
use super::super::memory::{Memory, Postponed};
use super::Subject;
use crate::object::ObjectId;
use crate::plan::{AwaitedKinds, Awaits, Outcome, Plan, Rollout};

impl Subject<'_> {
    /// Executes a plan from which the steps that are not due were removed.
    pub(super) async fn send(
        &self,
        memory: &mut Memory,
        work: &Work<'_>,
        (plan, postponed): (Plan, &mut Postponed),
        rollout: Option<&Rollout>,
    ) -> BTreeMap<ObjectId, Outcome> {
        let (now, served) = (self.context.now(), self.cluster.kinds());
        let mut kinds = AwaitedKinds::new(work.desired, memory.awaited.late(now));
        for (id, outcome) in &postponed.outcomes {
            kinds.note(id, outcome, || served.get(&id.group_kind()).is_some());
        }
        let blocking = std::mem::take(&mut postponed.blocking);
        let awaits = Awaits::new(work.desired, rollout);
        let outcomes = carry_out(work, plan, blocking, awaits, &mut kinds).await;
        memory.awaited.learn(kinds.resources(), self.context.now());
        outcomes
    }
}
