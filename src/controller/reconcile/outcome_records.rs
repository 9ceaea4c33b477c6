//! Records a round: its outcomes in the memory of the Sync and in the result, and the kinds and
//! namespaces in which the Sync may own objects now.
//!
//! In: an executed plan.
//! Out: the memory and the [`ReconcileResult`], brought up to date.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::inventory_scope::{remaining_watches, scope};
use super::missing_permissions::{missing_permissions, rights};
use super::observation::has_all_kinds;
use super::policy_inputs::note_pauses;
use super::prepare::PreparedRevision;
use super::rollout::{are_to_be_cleared, finish_rollout_if_done, written_ones};
use super::writes::ExecutedPlan;
use super::{ReconcileContext, ReconcileResult};
use crate::cluster::WatchRequirements;
use crate::controller::chance;
use crate::controller::memory::SyncMemory;
use crate::controller::memory::field_conflicts::polled;
use crate::controller::status::events::was_written;
use crate::object::ObjectId;
use crate::plan::{Outcome, Rollout};

/// Delay after the end of a hook before its record in the status is checked.
const CLEAR: Duration = Duration::from_secs(1);

/// Records what the execution of a plan has found.
pub(super) fn record_execution(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    executed: ExecutedPlan,
    report: &mut ReconcileResult,
) {
    let ExecutedPlan { outcomes, postponed, held, rollout, was_applied } = executed;
    let desired = &*prepared.desired;
    report.restores(desired, &outcomes, |id| memory.was_deleted(id, was_applied));
    record_outcomes(inputs, memory, prepared, rollout.as_ref(), &outcomes);
    (report.finished, report.tries.next_attempts) = (memory.completed.written(), memory.next_tries());
    report.remarks = memory.ledger.remarks(desired);
    let kinds = inputs.cluster.kinds();
    report.remarks.extend(polled(desired, |kind| kinds.get(kind).is_some_and(|it| !it.watchable)));
    memory.replied(outcomes.keys().cloned(), inputs.context.now());
    let held = memory.leaving.judged(held, inputs.context.now(), inputs.wish.timeout);
    report.gate.iter_mut().for_each(|(unwell, _)| unwell.extend(written_ones(&outcomes)));
    report.adds(held.chain(postponed).chain(outcomes));
    finish_rollout_if_done(inputs, memory, &rollout, report, prepared.digest.hash);
}

/// Records the kinds and namespaces in which the Sync may own objects now, and the permissions
/// that it lacks there.
pub(super) async fn record_inventory(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    needed: WatchRequirements,
    report: &mut ReconcileResult,
) {
    let (desired, kinds) = (&*prepared.desired, inputs.cluster.kinds());
    let needed = inputs
        .cluster
        .read_observed(inputs.owner, |observed| remaining_watches(needed, desired, observed, &kinds));
    memory.inventory_kinds.clone_from(&needed.kinds);
    memory.inventory_namespaces.clone_from(&needed.namespaces);
    let refused = rights(&report.unobserved, &report.outcomes, &inputs.cluster.kinds());
    report.rights = missing_permissions(inputs, memory, desired, prepared.digest.hash, refused).await;
    let scope = scope(&needed);
    if let Some(notebook) = &inputs.context.reporting.notebook {
        notebook.record(scope.clone()).await;
    }
    report.scope = Some(scope);
}

/// Records the outcomes in the memory of the Sync.
fn record_outcomes(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    rollout: Option<&Rollout>,
    outcomes: &BTreeMap<ObjectId, Outcome>,
) {
    let (desired, now) = (&*prepared.desired, inputs.context.now());
    memory.record_outcomes(outcomes, desired, now, chance(), inputs.context.pauses());
    memory.note_tries(outcomes, now, wall_clock());
    let is_new = |outcome: &Outcome| matches!(outcome, Outcome::Created | Outcome::Recreated);
    memory.deleted.retain(|id| !outcomes.get(id).is_some_and(is_new));
    let created = || outcomes.iter().filter(|(_, it)| is_new(it)).map(|(id, _)| id);
    memory.note_departed(outcomes, |id| {
        desired.get(id).is_some() || inputs.cluster.read_observed(inputs.owner, |seen| seen.get(id).is_some())
    });
    memory.completed.restart(created());
    inputs.health_monitor.restart(created());
    memory.fights.learn(outcomes, desired, now);
    memory.wait(inputs.cluster, inputs.owner);
    let is_missing = !has_all_kinds(inputs, prepared) || !memory.scaling.uncertain_replicas.is_empty();
    memory.schedule_rediscovery(is_missing, now, chance(), inputs.context.pauses());
    note_pauses(inputs, memory);
    let hooks = inputs.health_monitor.hooks();
    inputs.cluster.read_observed(inputs.owner, |observed| {
        memory.completed.see_hooks(desired, observed, &hooks);
        memory.completed.begin(desired, observed);
    });
    memory.rolled_out.wrote(outcomes.iter().filter(|(_, it)| was_written(it)).map(|(id, _)| id));
    let clears = !inputs.wish.suspend
        && inputs
            .cluster
            .read_observed(inputs.owner, |seen| are_to_be_cleared(inputs, desired, memory, rollout, seen));
    memory.hook_cleanup_at = clears.then(|| now + CLEAR);
}

fn wall_clock() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}
