//! Tracks the progress of the rollout of a desired set.
//!
//! In: the desired set, and the health of its objects.
//! Out: a [`Rollout`] for the plan, while it is in progress.
//!
//! A rollout is complete when all objects are applied and healthy. After that, its objects wait for
//! nothing, and none of its hooks runs.

use std::collections::{BTreeMap, BTreeSet};

use super::prepare::PreparedRevision;
use super::{ReconcileContext, ReconcileResult};
use crate::api::{SpecHash, SyncStatus};
use crate::controller::memory::SyncMemory;
use crate::controller::status::StatusRecorder;
use crate::controller::status::events::was_written;
use crate::desired::{DesiredSet, HashMatch, SetDigest};
use crate::health::may_report;
use crate::object::ObjectId;
use crate::observed::{Observed, ObservedSet, Ownership};
use crate::plan::{CompletedHooks, Outcome, Rollout};
use crate::report::is_applied;

/// A desired set whose rollout is complete.
#[derive(Debug)]
enum CompletedRollout {
    /// It was completed in this process.
    Set(SpecHash),
    /// The last one that an earlier daemon recorded, with the hash form of that time.
    Recorded(SpecHash),
    /// An older one.
    Earlier,
}

/// Rollouts that are complete or in progress.
#[derive(Debug, Default)]
pub(crate) struct RolloutProgress {
    /// The last completed rollout.
    done: Option<CompletedRollout>,
    /// The revision that an earlier daemon recorded last.
    recorded: Option<String>,
    /// The rollout in progress; true if another one was completed before it.
    going: Option<(SpecHash, bool)>,
    /// Objects that had failed before the rollout began.
    before: Option<BTreeSet<ObjectId>>,
}

impl RolloutProgress {
    /// Restores the progress that an earlier daemon recorded.
    pub(crate) fn restore(&mut self, status: &SyncStatus) {
        let (Some(revision), None) = (&status.revision, &self.done) else { return };
        self.recorded.clone_from(&revision.attempted);
        let Some(digest) = status.render_digest.as_deref().and_then(SpecHash::parse) else { return };
        // The digest belongs to the last attempted revision.
        let is_attempted = |known: &Option<String>| known.is_some() && *known == revision.attempted;
        self.done = match (is_attempted(&revision.applied), is_attempted(&revision.healthy)) {
            (true, true) => Some(CompletedRollout::Recorded(digest)),
            // It may be the first rollout, of which not all objects are healthy yet.
            (true, false) => revision.healthy.is_some().then_some(CompletedRollout::Earlier),
            (false, _) => revision.applied.is_some().then_some(CompletedRollout::Earlier),
        };
    }

    /// Returns the revision that an earlier daemon recorded last.
    pub(crate) fn recorded(&self) -> Option<&str> {
        self.recorded.as_deref()
    }

    /// Returns true if the rollout of the set is complete. If the key of the recorded digest is
    /// lost, the revision decides.
    fn is_done(&self, digest: &SetDigest, revision: &str) -> bool {
        match &self.done {
            Some(CompletedRollout::Set(hash)) => *hash == digest.hash,
            Some(CompletedRollout::Recorded(hash)) => match digest.matches(hash) {
                HashMatch::Same => true,
                HashMatch::Other => false,
                HashMatch::KeyLost => self.recorded() == Some(revision),
            },
            Some(CompletedRollout::Earlier) | None => false,
        }
    }

    /// Starts or continues a rollout; returns true if another one was completed before it, and
    /// `None` if this one is complete.
    pub(crate) fn begin(&mut self, digest: &SetDigest, revision: &str) -> Option<bool> {
        if self.is_done(digest, revision) {
            self.going = None;
            return None;
        }
        let known = self.going.filter(|(going, _)| *going == digest.hash);
        if known.is_none() {
            self.before = None;
        }
        let is_later = known.map_or(self.done.is_some(), |(_, is_later)| is_later);
        self.going = Some((digest.hash, is_later));
        Some(is_later)
    }

    /// Records written objects: their failures from before the rollout do not count any more.
    pub(crate) fn wrote<'a>(&mut self, ids: impl Iterator<Item = &'a ObjectId>) {
        if let Some(before) = &mut self.before {
            ids.for_each(|id| {
                before.remove(id);
            });
        }
    }

    fn end(&mut self, digest: SpecHash) {
        (self.done, self.going) = (Some(CompletedRollout::Set(digest)), None);
    }
}

/// Returns the progress of the rollout of this set; `None` once it is complete.
pub(crate) fn begin_rollout(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
) -> Option<Rollout> {
    let desired = &prepared.desired;
    memory.unhealthy_at_rollout = None;
    let again = std::mem::take(&mut memory.rerun_failed_hooks);
    let is_later = memory.rolled_out.begin(&prepared.digest, &inputs.record.revision)?;
    let is_later = is_later || inputs.valid_spec().options.helm.is_upgrade;
    if !desired.has_ordering() {
        return Some(Rollout { is_upgrade: is_later, ..Rollout::default() });
    }
    inputs.health_monitor.wants(desired, std::iter::empty());
    // An object that an earlier daemon saw fail may be gone, and has failed all the same.
    let mut ended = memory.completed.written();
    inputs.health_monitor.ends(&mut ended);
    memory.completed.learn(&ended);
    let (unwell, degraded) = inputs.health_monitor.unwell();
    memory.unhealthy_at_rollout = Some((unwell.clone(), degraded.clone()));
    let running = unwell.difference(&degraded).cloned().collect();
    // An object that still has its previous manifest says nothing about the current one.
    let unwell = as_wanted(inputs, desired, unwell);
    // A hook that failed with its current manifest did so for this set.
    let is_hook = |id: &ObjectId| desired.get(id).is_some_and(|it| it.annotations.hook.is_some());
    let is_older = |id: &&ObjectId| !is_hook(id) || memory.completed.ended_well(id) != Some(false);
    let before =
        memory.rolled_out.before.get_or_insert_with(|| degraded.iter().filter(is_older).cloned().collect());
    let failed = unwell.iter().any(|id| degraded.contains(id) && !before.contains(id));
    let failed = failed || memory.is_refused();
    let (restored, only_hooks) = (memory.deleted.clone(), !inputs.valid_spec().health.wait);
    Some(Rollout {
        unhealthy: unwell,
        degraded,
        running,
        failed,
        is_upgrade: is_later,
        restored,
        reruns_failed_hooks: again,
        only_hooks,
    })
}

fn as_wanted(
    inputs: &ReconcileContext,
    desired: &DesiredSet,
    mut ids: BTreeSet<ObjectId>,
) -> BTreeSet<ObjectId> {
    inputs.cluster().read_observed(&inputs.owner, |observed| {
        ids.retain(|id| {
            let recorded = observed.get(id).and_then(|seen| seen.recorded_hash);
            match (desired.get(id), recorded) {
                (Some(wanted), Some(recorded)) => wanted.is_recorded_as(&recorded),
                // It has failed and was deleted.
                (Some(_), None) => true,
                (None, _) => false,
            }
        });
    });
    ids
}

/// Records the end of a rollout: all objects are applied, healthy, and their health is known.
pub(crate) fn finish_rollout_if_done(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    rollout: &Option<Rollout>,
    report: &ReconcileResult,
    digest: SpecHash,
) {
    let Some(rollout) = rollout else { return };
    let Some(set) = &report.set else { return };
    let is_known = written_ones(&report.outcomes).next().is_none();
    let applied = is_applied(&report.outcomes, |id| set.get(id).is_some());
    // A set without waves is rolled out once it is applied.
    let is_well = !set.has_ordering() || is_known && rollout.unhealthy.is_empty();
    if applied && is_well && !inputs.valid_spec().suspend {
        memory.rolled_out.end(digest);
    }
}

/// Returns true if completed hooks exist that are deleted as soon as their end is recorded.
pub(crate) fn are_to_be_cleared(
    inputs: &ReconcileContext,
    desired: &DesiredSet,
    memory: &SyncMemory,
    rollout: Option<&Rollout>,
    observed: &ObservedSet,
) -> bool {
    let over = CompletedHooks::from_results(desired, rollout, |hook| memory.completed.ended_well(&hook.id));
    desired.objects().iter().any(|object| {
        let Some(hook) = object.annotations.hook else { return false };
        let is_left = |seen: &Observed| {
            let may_go = !seen.deleting && !seen.prune_disabled && !seen.reconcile_disabled;
            may_go && seen.ownership == Ownership::Ours && seen.applied_by_us && !seen.controlled
        };
        let clears = |well| over.should_delete(&object.id, hook, well);
        !inputs.valid_spec().protected.contains(&object.id.group_kind())
            && observed.get(&object.id).is_some_and(is_left)
            && memory.completed.ended_well(&object.id).is_some_and(clears)
    })
}

/// Returns the recorded results of completed objects.
pub(crate) fn ended_well(inputs: &ReconcileContext, memory: &SyncMemory) -> BTreeMap<ObjectId, bool> {
    let written = inputs
        .resource_recorder
        .as_ref()
        .map_or_else(|| memory.completed.written(), StatusRecorder::finished);
    let ended = written.into_iter().filter(|end| !end.begun);
    ended.filter_map(|end| Some((ObjectId::parse(&end.object)?, !end.failed))).collect()
}

/// Returns the written objects that report a status: their health is not known yet.
pub(crate) fn written_ones(outcomes: &BTreeMap<ObjectId, Outcome>) -> impl Iterator<Item = ObjectId> {
    let written =
        outcomes.iter().filter(|(id, outcome)| was_written(outcome) && may_report(&id.group_kind()));
    written.map(|(id, _)| id.clone())
}
