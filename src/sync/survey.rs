//! What has to be known before a plan beside what is wanted and what is seen: who deleted what, what has come to its
//! end, and what others fight about.
//!
//! In: the store's losses, metadata of Jobs and Pods, what was read of other hooks, the memory. Out: the rest of the policy. A Job that has finished
//! is cleared away by others and must not run again for that; its status is read once, when its metadata say that
//! there may be something to read.

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

/// More finished objects are not kept in a status.
const MAX_FINISHED: usize = 100;

/// What has come to its end: Jobs, Pods, and hooks of any kind.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(super) finished: BTreeMap<ObjectId, SpecHash>,
    /// Of these, those that ended without success.
    pub(super) failed: BTreeSet<ObjectId>,
    /// Jobs and the like that are there, have not ended, and are cleared away by the cluster when they have.
    begun: BTreeMap<ObjectId, SpecHash>,
    /// Such Jobs of an earlier daemon, until it was seen whether they are still there.
    inherited: BTreeMap<ObjectId, SpecHash>,
    /// At which write of its status an object was looked at.
    looked: BTreeMap<ObjectId, u64>,
}

/// The time, as a policy has it: milliseconds since 1970.
pub(crate) fn wall_clock() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl Ends {
    /// What an earlier daemon wrote down.
    pub(crate) fn restore(&mut self, written: &[Finished]) {
        for entry in written {
            if let (Some(id), Some(hash)) = (ObjectId::parse(&entry.object), SpecHash::parse(&entry.hash)) {
                self.failed.extend(entry.failed.then(|| id.clone()));
                let known = if entry.begun { &mut self.inherited } else { &mut self.finished };
                known.entry(id).or_insert(hash);
            }
        }
    }

    /// Takes in who failed of what has come to its end.
    pub(crate) fn learn(&mut self, finished: &[Finished]) {
        let failed = finished.iter().filter(|end| end.failed && !end.begun);
        let known = failed.filter_map(|end| ObjectId::parse(&end.object));
        self.failed.extend(known.filter(|id| self.finished.contains_key(id)));
    }

    /// Whether an object has ended well, if it has ended.
    pub(crate) fn ended_well(&self, id: &ObjectId) -> Option<bool> {
        self.finished.contains_key(id).then(|| !self.failed.contains(id))
    }

    /// These run anew.
    pub(crate) fn begin_anew<'a>(&mut self, ids: impl Iterator<Item = &'a ObjectId>) {
        for id in ids {
            self.finished.remove(id);
            self.failed.remove(id);
            self.looked.remove(id);
        }
    }

    /// What is to be written down.
    pub(crate) fn written(&self) -> Vec<Finished> {
        let entry = |(id, hash): (&ObjectId, &SpecHash), begun| Finished {
            object: id.as_str().to_owned(),
            hash: hash.to_string(),
            begun,
            failed: self.failed.contains(id),
        };
        // What is cut off is forgotten, and a failure must not be.
        let mut finished: Vec<Finished> = self.finished.iter().map(|ended| entry(ended, false)).collect();
        finished.sort_by_key(|ended| !ended.failed);
        let finished = finished.into_iter();
        finished.chain(self.begun.iter().map(|job| entry(job, true))).take(MAX_FINISHED).collect()
    }

    /// Of the Jobs that an earlier daemon saw begin, those that are gone have ended.
    fn inherit(&mut self, desired: &DesiredSet, observed: &ObservedSet) {
        for (id, hash) in std::mem::take(&mut self.inherited) {
            if is_wanted_as(desired, &id, &hash) && observed.get(&id).is_none() {
                self.finished.insert(id, hash);
            }
        }
    }

    /// Notes which Jobs have begun, once they were applied.
    pub(crate) fn begin(&mut self, desired: &DesiredSet, observed: &ObservedSet) {
        let jobs = desired.objects().iter().filter(|it| is_cleared_away(it));
        let begun = jobs.filter_map(|job| {
            let hash = observed.get(&job.id)?.recorded.filter(|hash| job.is_recorded_as(hash))?;
            (!self.finished.contains_key(&job.id)).then(|| (job.id.clone(), hash))
        });
        self.begun = begun.collect();
    }

    /// Forgets what is not wanted any more, or is wanted otherwise.
    fn forget(&mut self, desired: &DesiredSet) {
        self.finished.retain(|id, hash| is_wanted_as(desired, id, hash));
        self.failed.retain(|id| self.finished.contains_key(id));
        self.looked.retain(|id, _| desired.get(id).is_some());
    }

    /// Takes in an object as it is, or was last. True if its status has to be looked at.
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

/// True for a Job or a Workflow that is deleted by the cluster some time after it has ended.
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
    /// Finds out what has ended, and who deleted what.
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
            // Gone before its last status could be read: whoever clears away a Job does that when it has finished.
            if memory.ends.see(&id, &seen, desired) {
                memory.ends.finished.extend(seen.recorded.map(|hash| (id.clone(), hash)));
                // One that succeeded would have had a completion time.
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
        // One that is there again is not to be made anew: its next change is a change like any other, and waits for its turn.
        self.cluster.observed(self.owner, |seen| memory.deleted.retain(|id| seen.get(id).is_none()));
    }

    async fn look_at_end(&self, memory: &mut Memory, id: &ObjectId, seen: &Observed) {
        let (Ended::Perhaps(write), Some(hash)) = (seen.ended, seen.recorded) else { return };
        self.context.verify_turn().await;
        // Without an answer it is looked at in the next pass.
        let Ok(Some(live)) = self.cluster.whole(id, None).await else { return };
        memory.ends.looked.insert(id.clone(), write);
        let Some(status) = live.body.get("status").filter(|status| has_ended(id, status)) else { return };
        memory.ends.finished.insert(id.clone(), hash);
        memory.ends.failed.extend(has_failed(id, status).then(|| id.clone()));
    }

    /// The policy of this moment.
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
            // Who takes the approval back takes back what it has not brought about yet.
            consented: self.approved.as_ref().map(|_| memory.consented.clone()).unwrap_or_default(),
            ..self.wish.policy(self.approved.clone())
        }
    }

    /// True if the status says that every object was applied as it is wanted now.
    fn was_applied(&self, memory: &Memory) -> bool {
        let Some((desk, prepared)) = self.desk.zip(memory.prepared.as_ref()) else { return false };
        desk.status().revision.is_some_and(|it| {
            it.is_applied(&self.record.revision, |known| prepared.digest.matches(known) != Match::Other)
        })
    }

    /// Notes when the next pause ends for which people ask, so that a pass begins then.
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
