//! Gathers the inputs of a plan beside desired and observed objects: deletions by others, completed
//! hooks, and contested fields.
//!
//! In: deletions that the store recorded, metadata of Jobs and Pods, statuses of other hooks, the
//! memory.
//! Out: the rest of the policy.
//!
//! A completed Job is deleted by its TTL and must not run again for that. Its status is read once,
//! when its metadata show that it may have completed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::belief;
use super::guarded::Guards;
use super::memory::Memory;
use super::pass::Subject;
use crate::api::{Finished, SpecHash};
use crate::desired::{DesiredObject, DesiredSet, Match};
use crate::object::ObjectId;
use crate::observed::{Ended, Observed, ObservedSet, has_ended, has_failed, may_end};
use crate::plan::{Policy, Rollout, next_expiry};

/// Most completed objects that a status records.
const MAX_FINISHED: usize = 100;

/// Completed Jobs, Pods, and hooks of any kind.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(super) finished: BTreeMap<ObjectId, SpecHash>,
    /// Completed objects that did not succeed.
    pub(super) failed: BTreeSet<ObjectId>,
    /// Running Jobs and the like that the cluster deletes some time after their completion.
    begun: BTreeMap<ObjectId, SpecHash>,
    /// Such Jobs of an earlier daemon, until it is known if they still exist.
    inherited: BTreeMap<ObjectId, SpecHash>,
    /// The status write at which an object was last read.
    looked: BTreeMap<ObjectId, u64>,
}

/// Returns the time in milliseconds since 1970, as a policy has it.
pub(crate) fn wall_clock() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl Ends {
    /// Restores the records of an earlier daemon.
    pub(crate) fn restore(&mut self, written: &[Finished]) {
        for entry in written {
            if let (Some(id), Some(hash)) = (ObjectId::parse(&entry.object), SpecHash::parse(&entry.hash)) {
                self.failed.extend(entry.failed.then(|| id.clone()));
                let known = if entry.begun { &mut self.inherited } else { &mut self.finished };
                known.entry(id).or_insert(hash);
            }
        }
    }

    /// Records the failures among completed objects.
    pub(crate) fn learn(&mut self, finished: &[Finished]) {
        let failed = finished.iter().filter(|end| end.failed && !end.begun);
        let known = failed.filter_map(|end| ObjectId::parse(&end.object));
        self.failed.extend(known.filter(|id| self.finished.contains_key(id)));
    }

    /// Returns the result of a completed object: true if it succeeded.
    pub(crate) fn ended_well(&self, id: &ObjectId) -> Option<bool> {
        self.finished.contains_key(id).then(|| !self.failed.contains(id))
    }

    /// Forgets the completion of objects that run again.
    pub(crate) fn begin_anew<'a>(&mut self, ids: impl Iterator<Item = &'a ObjectId>) {
        for id in ids {
            self.finished.remove(id);
            self.failed.remove(id);
            self.looked.remove(id);
        }
    }

    /// Returns the records for the status.
    pub(crate) fn written(&self) -> Vec<Finished> {
        let entry = |(id, hash): (&ObjectId, &SpecHash), begun| Finished {
            object: id.as_str().to_owned(),
            hash: hash.to_string(),
            begun,
            failed: self.failed.contains(id),
        };
        // Records beyond the limit are lost, and a failure must not be lost.
        let mut finished: Vec<Finished> = self.finished.iter().map(|ended| entry(ended, false)).collect();
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
            let hash = observed.get(&job.id)?.recorded.filter(|hash| job.is_recorded_as(hash))?;
            (!self.finished.contains_key(&job.id)).then(|| (job.id.clone(), hash))
        });
        self.begun = begun.collect();
    }

    /// Forgets objects that are no longer desired, or have another manifest now.
    fn forget(&mut self, desired: &DesiredSet) {
        self.finished.retain(|id, hash| is_wanted_as(desired, id, hash));
        self.failed.retain(|id| self.finished.contains_key(id));
        self.looked.retain(|id, _| desired.get(id).is_some());
    }

    /// Records an observed or deleted object; returns true if its status has to be read.
    fn see(&mut self, id: &ObjectId, seen: &Observed, desired: &DesiredSet) -> bool {
        let hash = seen.recorded.filter(|hash| desired.get(id).is_some_and(|it| it.is_recorded_as(hash)));
        match (hash, seen.ended) {
            (Some(hash), Ended::Yes) => {
                self.finished.insert(id.clone(), hash);
                false
            }
            (Some(_), Ended::Perhaps(write)) => {
                !self.finished.contains_key(id) && self.looked.get(id) != Some(&write)
            }
            (None, _) | (_, Ended::No) => false,
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
        ("argoproj.io", "Workflow") if job.switches.hook.is_some() => "ttlStrategy",
        _ => return false,
    };
    let body = job.body();
    let after = body.get("spec").and_then(|spec| spec.get(field));
    after.is_some_and(|after| after.is_number() || after.as_object().is_some_and(|it| !it.is_empty()))
}

impl Subject<'_> {
    /// Finds completed objects, and objects that other actors deleted.
    pub(crate) async fn survey(&self, memory: &mut Memory, desired: &DesiredSet) {
        memory.ends.forget(desired);
        memory.deleted.retain(|id| desired.get(id).is_some());
        let is_wanted = |id: &ObjectId| desired.get(id).is_some();
        let way_back = self.newest.commit != self.revision.commit;
        let (context, cluster, owner) = (self.context, self.cluster, self.owner);
        memory.guarded.look(Guards { context, cluster, owner, way_back }, is_wanted).await;
        memory.disbelieved = belief::disbelieved(context, cluster, owner, desired);
        let hooks = self.vitals.hooks();
        let look: Vec<(ObjectId, Observed)> = self.cluster.observed(self.owner, |observed| {
            memory.ends.inherit(desired, observed);
            memory.ends.see_hooks(desired, observed, &hooks);
            let ending = observed.iter().filter(|(id, _)| may_end(id));
            let open = ending.filter(|(id, seen)| memory.ends.see(id, seen, desired));
            open.map(|(id, seen)| (id.clone(), seen.clone())).collect()
        });
        for (id, seen) in look {
            self.look_at_end(memory, &id, &seen).await;
        }
        for (id, seen) in self.cluster.lost(self.owner) {
            let Some(wanted) = desired.get(&id) else { continue };
            // It is gone before its last status could be read: a Job is deleted by its TTL once it
            // has completed.
            if memory.ends.see(&id, &seen, desired) {
                memory.ends.finished.extend(seen.recorded.map(|hash| (id.clone(), hash)));
                // A successful Job would have had a completion time.
                memory.ends.failed.extend(id.is("batch", "Job").then(|| id.clone()));
            }
            let by_others = !self.context.registry.was_pruned(&seen.uid);
            if by_others && seen.recorded.is_some_and(|hash| wanted.is_recorded_as(&hash)) {
                memory.deleted.insert(id.clone());
            }
            let is_made_again = wanted.switches.hook.is_some() && !may_end(&id);
            if is_made_again || !memory.ends.finished.contains_key(&id) {
                memory.fights.deleted(&id, wanted.hash, self.context.now());
            }
            if memory.ends.finished.contains_key(&id) {
                memory.departed.insert(id);
            }
        }
        // An object that exists again is not created: its next change is an ordinary one, and waits
        // for its wave.
        self.cluster.observed(self.owner, |seen| memory.deleted.retain(|id| seen.get(id).is_none()));
    }

    async fn look_at_end(&self, memory: &mut Memory, id: &ObjectId, seen: &Observed) {
        let (Ended::Perhaps(write), Some(hash)) = (seen.ended, seen.recorded) else { return };
        self.context.verify_turn().await;
        // Without an answer it is read in the next reconcile.
        let Ok(Some(live)) = self.cluster.whole(id, None).await else { return };
        memory.ends.looked.insert(id.clone(), write);
        let Some(status) = live.body.get("status").filter(|status| has_ended(id, status)) else { return };
        memory.ends.finished.insert(id.clone(), hash);
        memory.ends.failed.extend(has_failed(id, status).then(|| id.clone()));
    }

    /// Returns the policy for a plan that is made now.
    pub(crate) fn policy(&self, memory: &mut Memory, rollout: Option<Rollout>) -> Policy {
        let now = self.context.now();
        Policy {
            rollout,
            was_applied: self.was_applied(memory),
            refused: self.aim.refused().map(Box::from),
            ended_well: self.ended_well(memory),
            now: wall_clock(),
            contested: memory.fights.contested(now),
            again: memory.fights.again(now),
            finished: memory.ends.finished.clone(),
            guarded: memory.guarded.ids(),
            replacements: memory.replacements.clone(),
            disbelieved: memory.disbelieved.clone(),
            own_keys: self.cluster.notary().place(),
            in_doubt: memory.scaling.in_doubt.clone(),
            // Withdrawing an approval also withdraws the deletions that are not complete yet.
            consented: self.approved.as_ref().map(|_| memory.consented.clone()).unwrap_or_default(),
            ..self.wish.policy(self.approved.clone())
        }
    }

    /// Returns true if the status says that every object was applied with its current manifest.
    fn was_applied(&self, memory: &Memory) -> bool {
        let Some((desk, prepared)) = self.desk.zip(memory.prepared.as_ref()) else { return false };
        desk.status().revision.is_some_and(|it| {
            it.is_applied(&self.record.revision, |known| prepared.digest.matches(known) != Match::Other)
        })
    }

    /// Schedules a reconcile for the end of the next pause that a person asked for.
    pub(crate) fn note_pauses(&self, memory: &mut Memory) {
        let wall = wall_clock();
        let next = self.cluster.observed(self.owner, |observed| next_expiry(observed, wall));
        let left = next.and_then(|until| u64::try_from(until - wall).ok());
        memory.pause_ends = left.map(|left| self.context.now() + std::time::Duration::from_millis(left + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_back() {
        let hash = SpecHash { form: crate::api::CanonicalForm::V1, digest: [3; 32] };
        let mut ends = Ends::default();
        ends.finished.insert(ObjectId::parse("batch/Job|shop/migrate").unwrap(), hash);
        ends.failed.insert(ObjectId::parse("batch/Job|shop/migrate").unwrap());
        ends.begun.insert(ObjectId::parse("batch/Job|shop/import").unwrap(), hash);
        let written = ends.written();
        let mut read = Ends::default();
        read.restore(&written);
        assert_eq!(read.finished, ends.finished);
        assert_eq!(read.inherited, ends.begun);
        assert_eq!(read.failed, ends.failed);
        read.restore(&[Finished {
            object: "nonsense".into(),
            hash: "v9:".into(),
            begun: false,
            failed: true,
        }]);
        assert_eq!(read.finished, ends.finished);
    }
}
