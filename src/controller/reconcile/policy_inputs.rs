//! Gathers the inputs of a plan beside desired and observed objects: deletions by others, completed
//! hooks, and contested fields.
//!
//! In: deletions that the store recorded, metadata of Jobs and Pods, statuses of other hooks, the
//! memory.
//! Out: a [`Policy`], without the claims of other Syncs.
//!
//! A completed Job that its TTL has deleted must not run again. Its status is read once, when its
//! metadata show that it may have completed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::ReconcileContext;
use super::foreign_marks;
use super::prepare::PreparedRevision;
use super::rollout::{begin_rollout, ended_well};
use crate::api::{FinishedObject, SpecHash};
use crate::controller::memory::SyncMemory;
use crate::controller::memory::prune_guards::PruneGuardInputs;
use crate::desired::{DesiredObject, DesiredSet, HashMatch};
use crate::object::ObjectId;
use crate::observed::{Completion, Observed, ObservedSet, has_completed, has_failed, runs_to_completion};
use crate::plan::{Policy, Rollout, next_pause_end};

/// Most completed objects that a status records.
const MAX_FINISHED: usize = 100;

/// Completed Jobs, Pods, and hooks of any kind.
#[derive(Debug, Default)]
pub(crate) struct CompletedObjects {
    pub(crate) finished: BTreeMap<ObjectId, SpecHash>,
    /// Completed objects that did not succeed.
    pub(crate) failed: BTreeSet<ObjectId>,
    /// Running Jobs and the like that the cluster deletes some time after their completion.
    begun: BTreeMap<ObjectId, SpecHash>,
    /// Such Jobs of an earlier daemon, until it is known if they still exist.
    inherited: BTreeMap<ObjectId, SpecHash>,
    /// The status write at which an object was last read.
    checked_writes: BTreeMap<ObjectId, u64>,
}

/// Returns the time in milliseconds since 1970, as a policy has it.
pub(crate) fn wall_clock() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl CompletedObjects {
    /// Restores the records of an earlier daemon.
    pub(crate) fn restore(&mut self, written: &[FinishedObject]) {
        for entry in written {
            if let (Some(id), Some(hash)) = (ObjectId::parse(&entry.object), SpecHash::parse(&entry.hash)) {
                self.failed.extend(entry.failed.then(|| id.clone()));
                let known = if entry.begun { &mut self.inherited } else { &mut self.finished };
                known.entry(id).or_insert(hash);
            }
        }
    }

    /// Records the failures among completed objects.
    pub(crate) fn learn(&mut self, finished: &[FinishedObject]) {
        let failed = finished.iter().filter(|end| end.failed && !end.begun);
        let known = failed.filter_map(|end| ObjectId::parse(&end.object));
        self.failed.extend(known.filter(|id| self.finished.contains_key(id)));
    }

    /// Returns the result of a completed object: true if it succeeded.
    pub(crate) fn ended_well(&self, id: &ObjectId) -> Option<bool> {
        self.finished.contains_key(id).then(|| !self.failed.contains(id))
    }

    /// Forgets the completion of objects that run again.
    pub(crate) fn restart<'a>(&mut self, ids: impl Iterator<Item = &'a ObjectId>) {
        for id in ids {
            self.finished.remove(id);
            self.failed.remove(id);
            self.checked_writes.remove(id);
        }
    }

    /// Returns the records for the status.
    pub(crate) fn written(&self) -> Vec<FinishedObject> {
        let entry = |(id, hash): (&ObjectId, &SpecHash), begun| FinishedObject {
            object: id.as_str().to_owned(),
            hash: hash.to_string(),
            begun,
            failed: self.failed.contains(id),
        };
        // Records beyond the limit are lost, and a failure must not be lost.
        let mut finished: Vec<FinishedObject> =
            self.finished.iter().map(|ended| entry(ended, false)).collect();
        finished.sort_by_key(|ended| !ended.failed);
        let finished = finished.into_iter();
        finished.chain(self.begun.iter().map(|job| entry(job, true))).take(MAX_FINISHED).collect()
    }

    /// Completes the Jobs that an earlier daemon saw running and that are gone now.
    fn inherit(&mut self, desired: &DesiredSet, observed: &ObservedSet) {
        for (id, hash) in std::mem::take(&mut self.inherited) {
            if is_wanted_as(desired, &id, &hash) && observed.get(&id).is_none() {
                self.finished.insert(id, hash);
            }
        }
    }

    /// Records the running Jobs, once they were applied.
    pub(crate) fn begin(&mut self, desired: &DesiredSet, observed: &ObservedSet) {
        let jobs = desired.objects().iter().filter(|it| is_cleared_away(it));
        let begun = jobs.filter_map(|job| {
            let hash = observed.get(&job.id)?.recorded_hash.filter(|hash| job.is_recorded_as(hash))?;
            (!self.finished.contains_key(&job.id)).then(|| (job.id.clone(), hash))
        });
        self.begun = begun.collect();
    }

    /// Forgets objects that are no longer desired, or have another manifest now.
    fn forget(&mut self, desired: &DesiredSet) {
        self.finished.retain(|id, hash| is_wanted_as(desired, id, hash));
        self.failed.retain(|id| self.finished.contains_key(id));
        self.checked_writes.retain(|id, _| desired.get(id).is_some());
    }

    /// Records an observed or deleted object; returns true if its status has to be read.
    fn see(&mut self, id: &ObjectId, seen: &Observed, desired: &DesiredSet) -> bool {
        let hash =
            seen.recorded_hash.filter(|hash| desired.get(id).is_some_and(|it| it.is_recorded_as(hash)));
        match (hash, seen.completion) {
            (Some(hash), Completion::Completed) => {
                self.finished.insert(id.clone(), hash);
                false
            }
            (Some(_), Completion::Unknown(write)) => {
                !self.finished.contains_key(id) && self.checked_writes.get(id) != Some(&write)
            }
            (None, _) | (_, Completion::Running) => false,
        }
    }
}

fn is_wanted_as(desired: &DesiredSet, id: &ObjectId, hash: &SpecHash) -> bool {
    desired.get(id).is_some_and(|wanted| wanted.is_recorded_as(hash))
}

/// Returns true for a Job or a Workflow that the cluster deletes some time after its completion.
fn is_cleared_away(job: &DesiredObject) -> bool {
    let field = match (job.id.group(), job.id.kind()) {
        ("batch", "Job") => "ttlSecondsAfterFinished",
        ("argoproj.io", "Workflow") if job.annotations.hook.is_some() => "ttlStrategy",
        _ => return false,
    };
    let body = job.body();
    let after = body.get("spec").and_then(|spec| spec.get(field));
    after.is_some_and(|after| after.is_number() || after.as_object().is_some_and(|it| !it.is_empty()))
}

/// Gathers the policy of a round. The claims of other Syncs are weighed with the plan.
pub(super) async fn gather_policy(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
) -> Policy {
    find_completed(inputs, memory, &prepared.desired).await;
    let rollout = begin_rollout(inputs, memory, prepared);
    build_policy(inputs, memory, rollout)
}

/// Finds completed objects, and objects that other actors deleted.
async fn find_completed(inputs: &ReconcileContext, memory: &mut SyncMemory, desired: &DesiredSet) {
    memory.completed.forget(desired);
    memory.deleted.retain(|id| desired.get(id).is_some());
    let is_wanted = |id: &ObjectId| desired.get(id).is_some();
    // While a person holds the Sync, the newest revision may be unknown.
    let way_back = inputs.order.hold.is_some() || !inputs.newest.has_same_files(&inputs.revision);
    let (context, cluster, owner) = (&inputs.context, inputs.cluster(), &inputs.owner);
    memory.prune_guards.look(PruneGuardInputs { context, cluster, owner, way_back }, is_wanted).await;
    memory.ignored_marks = foreign_marks::ignored_marks(context, cluster, owner, desired);
    let hooks = inputs.health_monitor.hooks();
    let look: Vec<(ObjectId, Observed)> = inputs.cluster().read_observed(&inputs.owner, |observed| {
        memory.completed.inherit(desired, observed);
        memory.completed.see_hooks(desired, observed, &hooks);
        let ending = observed.iter().filter(|(id, _)| runs_to_completion(id));
        let open = ending.filter(|(id, seen)| memory.completed.see(id, seen, desired));
        open.map(|(id, seen)| (id.clone(), seen.clone())).collect()
    });
    for (id, seen) in look {
        look_at_end(inputs, memory, &id, &seen).await;
    }
    for (id, seen) in inputs.cluster().objects().take_lost(&inputs.owner) {
        let Some(wanted) = desired.get(&id) else { continue };
        // It is gone before its last status could be read: a Job is deleted by its TTL once it
        // has completed.
        if memory.completed.see(&id, &seen, desired) {
            memory.completed.finished.extend(seen.recorded_hash.map(|hash| (id.clone(), hash)));
            // A successful Job would have had a completion time.
            memory.completed.failed.extend(id.is_kind("batch", "Job").then(|| id.clone()));
        }
        let by_others = !inputs.context.peers.was_pruned(&seen.uid);
        if by_others && seen.recorded_hash.is_some_and(|hash| wanted.is_recorded_as(&hash)) {
            memory.deleted.insert(id.clone());
        }
        let is_made_again = wanted.annotations.hook.is_some() && !runs_to_completion(&id);
        if is_made_again || !memory.completed.finished.contains_key(&id) {
            memory.contention.deleted(&id, wanted.hash, inputs.context.now());
        }
        if memory.completed.finished.contains_key(&id) {
            memory.departed.insert(id);
        }
    }
    // An object that exists again is not created: its next change is an ordinary one, and waits
    // for its wave.
    inputs.cluster().read_observed(&inputs.owner, |seen| memory.deleted.retain(|id| seen.get(id).is_none()));
}

async fn look_at_end(inputs: &ReconcileContext, memory: &mut SyncMemory, id: &ObjectId, seen: &Observed) {
    let (Completion::Unknown(write), Some(hash)) = (seen.completion, seen.recorded_hash) else { return };
    inputs.context.settings.verify_turn().await;
    // Without an answer it is read in the next reconcile.
    let Ok(Some(live)) = inputs.cluster().objects().read_whole(id, None).await else { return };
    memory.completed.checked_writes.insert(id.clone(), write);
    let Some(status) = live.body.get("status").filter(|status| has_completed(id, status)) else { return };
    memory.completed.finished.insert(id.clone(), hash);
    memory.completed.failed.extend(has_failed(id, status).then(|| id.clone()));
}

/// Returns the policy for a plan that is made now.
fn build_policy(inputs: &ReconcileContext, memory: &mut SyncMemory, rollout: Option<Rollout>) -> Policy {
    let now = inputs.context.now();
    Policy {
        rollout,
        was_applied: was_applied(inputs, memory),
        refused_newer: inputs.aim.refused().map(Box::from),
        succeeded: ended_well(inputs, memory),
        now: wall_clock(),
        contested: memory.contention.contested(now),
        reclaimed: memory.contention.due_for_retry(now),
        completed: memory.completed.finished.clone(),
        guards: memory.prune_guards.ids(),
        replacements: memory.replacements.clone(),
        unproven_foreign: memory.ignored_marks.clone(),
        own_keys: inputs.cluster().notary().key_secret(),
        uncertain_replicas: memory.autoscaled_replicas.uncertain_replicas.clone(),
        // Withdrawing an approval also withdraws the deletions that are not complete yet.
        approved_objects: inputs
            .order
            .approved
            .as_ref()
            .map(|_| memory.consented.clone())
            .unwrap_or_default(),
        ..inputs.valid_spec().policy(inputs.order.approved.clone())
    }
}

/// Returns true if the status says that every object was applied with its current manifest.
fn was_applied(inputs: &ReconcileContext, memory: &SyncMemory) -> bool {
    let Some((resource_recorder, prepared)) = inputs.resource_recorder.as_ref().zip(memory.prepared.as_ref())
    else {
        return false;
    };
    resource_recorder.status().revision.is_some_and(|it| {
        it.is_applied(&inputs.record.revision, |known| prepared.digest.matches(known) != HashMatch::Other)
    })
}

/// Schedules a reconcile for the end of the next pause that a person asked for.
pub(crate) fn note_pauses(inputs: &ReconcileContext, memory: &mut SyncMemory) {
    let wall = wall_clock();
    let next = inputs.cluster().read_observed(&inputs.owner, |observed| next_pause_end(observed, wall));
    let left = next.and_then(|until| u64::try_from(until - wall).ok());
    memory.pause_ends = left.map(|left| inputs.context.now() + std::time::Duration::from_millis(left + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_back() {
        let hash = SpecHash { form: crate::api::CanonicalForm::V1, digest: [3; 32] };
        let mut ends = CompletedObjects::default();
        ends.finished.insert(ObjectId::parse("batch/Job|shop/migrate").unwrap(), hash);
        ends.failed.insert(ObjectId::parse("batch/Job|shop/migrate").unwrap());
        ends.begun.insert(ObjectId::parse("batch/Job|shop/import").unwrap(), hash);
        let written = ends.written();
        let mut read = CompletedObjects::default();
        read.restore(&written);
        assert_eq!(read.finished, ends.finished);
        assert_eq!(read.inherited, ends.begun);
        assert_eq!(read.failed, ends.failed);
        read.restore(&[FinishedObject {
            object: "nonsense".into(),
            hash: "v9:".into(),
            begun: false,
            failed: true,
        }]);
        assert_eq!(read.finished, ends.finished);
    }
}
