//! The writes of one round.
//!
//! In: a plan, what is not tried again yet, and how far the roll-out is. Out: what became of each object; what webhooks were
//! kept back for is remembered.

use std::collections::BTreeMap;

use super::super::carry_out::{Work, carry_out};
use super::super::memory::{Memory, Postponed};
use super::Subject;
use crate::object::ObjectId;
use crate::plan::{AwaitedKinds, Awaits, Outcome, Plan, Rollout};

impl Subject<'_> {
    /// Carries out a plan, of which the steps that are postponed were taken out.
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
