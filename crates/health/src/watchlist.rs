//! Health of all objects of a Sync, and the schedule of the reads it needs.
//!
//! In: the objects that changed, the bodies read since then, and the time.
//! Out: [`DueReads`], the reads to start now; the time of the next read; and [`HealthSummary`]. A
//! controller often writes a status in several steps, so reads are delayed a little, and no object
//! is read more than once a second. An unhealthy workload is read from time to time together with
//! its Pods, because a Pod can fail without a change of the workload's status. Times are
//! milliseconds on any one clock.

mod entry;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::rules::Rules;
use super::{Context, Health};
use entry::{Entry, LastHealth, PAUSE};
use moorline_core::object::{GroupKind, ObjectId};
pub use summary::HealthSummary;

/// Delay after a failed read: the first, and the longest.
const RETRY: (i64, i64) = (5_000, 300_000);
/// Number of workloads of a Sync whose Pods are read in one period.
const MAX_POD_READS: usize = 10;
/// Up to this many objects of a kind in a namespace are read one by one.
const ONE_BY_ONE: usize = 8;
/// A list is used if at least one in this many of its objects has to be read.
const MIN_LIST_FRACTION: usize = 5;
/// Maximal number of objects that a summary names.
const MAX_WORST: usize = 10;

/// Watches all objects of a Sync whose status has to be read.
#[derive(Debug, Default)]
pub struct Watchlist {
    objects: BTreeMap<ObjectId, Entry>,
    /// Next action for each object, by time.
    schedule: BTreeSet<(i64, ObjectId)>,
}

/// Reads to start now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DueReads {
    /// Objects to read one by one.
    pub objects: Vec<ObjectId>,
    /// Lists to read instead of many single objects.
    pub lists: Vec<ObjectList>,
    /// Workloads to read together with their Pods.
    pub with_pods: Vec<ObjectId>,
}

/// All objects of one kind in one namespace, or of a cluster-scoped kind.
#[derive(Debug, PartialEq, Eq)]
pub struct ObjectList {
    /// Kind of the objects.
    pub kind: GroupKind,
    /// Namespace, if the kind is namespaced.
    pub namespace: Option<Box<str>>,
    /// Objects that the list covers.
    pub ids: BTreeSet<ObjectId>,
}

/// Inputs for judging a body, beside the body.
#[derive(Debug, Clone, Copy)]
pub struct JudgementInputs<'a> {
    /// Health rules of the Sync.
    pub rules: &'a Rules,
    /// Progress timeout of the Sync, if it sets one.
    pub timeout: Option<i64>,
    /// Facts that the body does not contain.
    pub context: Context,
    /// Time in milliseconds since 1970.
    pub unix_millis: i64,
    /// True for an object that runs to completion: its failure is final, and remains known after
    /// the object is deleted.
    pub runs_to_completion: bool,
}

impl Watchlist {
    /// Records that an object changed, or starts to watch it.
    pub fn on_changed(&mut self, id: &ObjectId, now: i64) {
        self.update_entry(id, |entry| {
            entry.ended = false;
            entry.schedule_read(now);
        });
    }

    /// Records that the Sync wrote an object: its known health no longer counts.
    pub fn on_written(&mut self, id: &ObjectId, now: i64) {
        self.update_entry(id, |entry| {
            (entry.last_health, entry.last_written, entry.ended) = (None, now, false);
            entry.schedule_read(now);
        });
    }

    /// Records a deletion. The failure of a Job, a Pod or a hook is kept: deleting it does not undo
    /// the failure.
    pub fn on_deleted(&mut self, id: &ObjectId) {
        if self.has_failed(id) {
            self.update_entry(id, Entry::mark_ended);
        } else {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: &ObjectId) {
        if let Some(entry) = self.objects.remove(id) {
            entry.next_due_at().map(|at| self.schedule.remove(&(at, id.clone())));
        }
    }

    /// Returns the result of an object that has ended: true for success. `None` while it runs or
    /// its result is unknown.
    pub fn completion(&self, id: &ObjectId) -> Option<bool> {
        let known = self.objects.get(id)?.last_health.as_ref()?;
        match known.health {
            _ if known.failed => Some(false),
            Health::Healthy => Some(true),
            Health::Degraded { .. }
            | Health::Progressing { .. }
            | Health::Suspended
            | Health::Unknown { .. } => None,
        }
    }

    /// True for a Job, a Pod or a hook that has failed.
    pub fn has_failed(&self, id: &ObjectId) -> bool {
        self.objects.get(id).and_then(|entry| entry.last_health.as_ref()).is_some_and(|known| known.failed)
    }

    /// Restores final failures that were recorded earlier. Objects that were deleted since then are
    /// known only by this.
    pub fn restore_failures(&mut self, failed: &BTreeSet<ObjectId>) {
        for id in failed.iter().filter(|id| !self.objects.contains_key(*id)).cloned().collect::<Vec<_>>() {
            self.update_entry(&id, |entry| {
                let shown = Health::degraded("it failed, and was deleted since".to_owned());
                entry.last_health = Some(LastHealth {
                    health: shown,
                    progress: None,
                    at_deadline: None,
                    cause: None,
                    failed: true,
                });
                entry.mark_ended();
            });
        }
    }

    /// Watches only the objects that `keep` accepts from now on.
    pub fn retain(&mut self, keep: impl Fn(&ObjectId) -> bool) {
        let gone: Vec<ObjectId> = self.objects.keys().filter(|id| !keep(id)).cloned().collect();
        gone.iter().for_each(|id| self.forget(id));
    }

    /// Re-reads all objects of a kind after the first of them has reported a status: from now on a
    /// status is expected of the others.
    pub fn on_first_report(&mut self, first: &ObjectId, now: i64) {
        let of_kind = |id: &ObjectId| id.is_kind(first.group(), first.kind()) && id != first;
        let there = self.objects.iter().filter(|(id, entry)| of_kind(id) && !entry.ended);
        let all: Vec<ObjectId> = there.map(|(id, _)| id.clone()).collect();
        all.iter().for_each(|id| self.on_changed(id, now));
    }

    /// True if the object is watched.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.objects.contains_key(id)
    }

    /// Time of the next action, unless an event comes first.
    pub fn next_due_at(&self) -> Option<i64> {
        self.schedule.first().map(|(at, _)| *at)
    }

    /// Takes the reads that are due. The caller has to perform them.
    #[must_use]
    pub fn take_due(&mut self, now: i64) -> DueReads {
        let mut due = DueReads::default();
        let all: Vec<ObjectId> =
            self.schedule.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect();
        for id in all {
            self.update_entry(&id, |entry| {
                if entry.pods_due_at().is_some_and(|at| at <= now) {
                    (entry.pods_read_at, entry.read_at, entry.last_read) = (None, None, now);
                    due.with_pods.push(id.clone());
                } else if entry.read_at.is_some_and(|at| at <= now) {
                    (entry.read_at, entry.last_read) = (None, now);
                    due.objects.push(id.clone());
                }
                if let Some(known) = &mut entry.last_health
                    && let Some((_, late)) = known.at_deadline.take_if(|(at, _)| *at <= now)
                {
                    known.health = late;
                }
            });
        }
        due.lists = self.lists(&mut due.objects, now);
        due
    }

    /// Moves reads from `read` into lists if a list is cheaper. A list brings all objects of its
    /// namespace, so each of them counts as read now; objects that change shortly afterwards are
    /// read together, a second later.
    fn lists(&mut self, read: &mut Vec<ObjectId>, now: i64) -> Vec<ObjectList> {
        let place = |id: &ObjectId| (id.group_kind(), id.namespace().map(Box::from));
        let mut counts: BTreeMap<(GroupKind, Option<Box<str>>), usize> = BTreeMap::new();
        read.iter()
            .filter(|id| !is_read_with_others(id))
            .for_each(|id| *counts.entry(place(id)).or_default() += 1);
        let mut lists = Vec::new();
        for ((kind, namespace), count) in counts.into_iter().filter(|(_, count)| *count > ONE_BY_ONE) {
            let is_here =
                |id: &ObjectId| id.is_kind(&kind.group, &kind.kind) && id.namespace() == namespace.as_deref();
            let here = self.objects.iter().filter(|(id, entry)| !entry.ended && is_here(id));
            let ids: BTreeSet<ObjectId> = here.map(|(id, _)| id.clone()).collect();
            if count.saturating_mul(MIN_LIST_FRACTION) < ids.len() {
                continue;
            }
            ids.iter()
                .for_each(|id| self.update_entry(id, |entry| (entry.read_at, entry.last_read) = (None, now)));
            read.retain(|id| !is_here(id));
            lists.push(ObjectList { kind, namespace, ids });
        }
        lists
    }

    /// Records a read object; `cause` is set if the Pods of the workload were read with it.
    pub fn on_read(
        &mut self,
        id: &ObjectId,
        body: &Map<String, Value>,
        cause: Option<Option<String>>,
        of: &JudgementInputs<'_>,
        now: i64,
    ) {
        let free = self.objects.values().filter(|entry| entry.pods_read_at.is_some()).count() < MAX_POD_READS;
        if !self.contains(id) {
            return;
        }
        let kind = id.group_kind();
        self.update_entry(id, |entry| {
            if entry.last_read <= entry.last_written || entry.ended {
                return;
            }
            (entry.failures, entry.misses) = (0, 0);
            // An object that is being deleted says nothing about how it ended.
            if is_deleted(body) && entry.last_health.as_ref().is_some_and(|known| known.failed) {
                return;
            }
            let (known, is_asked) =
                (LastHealth::from_body(&kind, body, entry.last_health.take(), of, now), cause.is_some());
            entry.pod_reads += u32::from(is_asked);
            entry.last_health = Some(LastHealth { cause: cause.unwrap_or(known.cause), ..known });
            entry.schedule_pods_read(&kind, free, now);
        });
    }

    /// Records that an object was not found, although no watch has reported its deletion.
    pub fn on_not_found(&mut self, id: &ObjectId, now: i64) {
        if !self.contains(id) {
            return;
        }
        self.update_entry(id, |entry| {
            if entry.ended {
                return;
            }
            let pause = PAUSE.saturating_mul(1 << entry.misses.min(10)).min(RETRY.1);
            entry.misses = entry.misses.saturating_add(1);
            entry.read_at = Some(entry.read_at.map_or(now + pause, |due| due.min(now + pause)));
        });
    }

    /// Records a failed read.
    pub fn on_read_failed(&mut self, id: &ObjectId, why: &str, now: i64) {
        if !self.contains(id) {
            return;
        }
        self.update_entry(id, |entry| {
            if entry.ended {
                return;
            }
            entry.failures = entry.failures.saturating_add(1);
            // A single failed read does not change the known health.
            if entry.failures == 1 && entry.last_health.is_some() {
                entry.read_at = Some(now + PAUSE);
                return;
            }
            let shown = Health::unknown(format!("its status cannot be read: {why}"));
            let progress = entry.last_health.take().and_then(|known| known.progress);
            entry.last_health =
                Some(LastHealth { health: shown, progress, at_deadline: None, cause: None, failed: false });
            let doubled = RETRY.0.saturating_mul(1 << entry.failures.saturating_sub(1).min(10));
            entry.read_at = Some(now + doubled.min(RETRY.1));
        });
    }

    /// Summarizes the health of all objects.
    pub fn summary(&self) -> HealthSummary {
        let mut summary = HealthSummary { objects: self.objects.len(), ..HealthSummary::default() };
        let mut worst = [Vec::new(), Vec::new(), Vec::new()];
        for (id, entry) in &self.objects {
            let Some(known) = &entry.last_health else {
                summary.unread += 1;
                continue;
            };
            let (count, list) = match known.health {
                Health::Healthy | Health::Suspended => continue,
                Health::Degraded { .. } => (&mut summary.degraded, &mut worst[0]),
                Health::Unknown { .. } => (&mut summary.unknown, &mut worst[1]),
                Health::Progressing { .. } => (&mut summary.progressing, &mut worst[2]),
            };
            *count += 1;
            if list.len() < MAX_WORST {
                list.push((id.clone(), known.with_cause()));
            }
        }
        summary.worst = worst.into_iter().flatten().take(MAX_WORST).collect();
        summary
    }

    /// All objects in the order of their ids, each with its health; `None` if it was not read yet.
    pub fn objects_with_health(&self) -> impl Iterator<Item = (&ObjectId, Option<Health>)> {
        self.objects.iter().map(|(id, entry)| (id, entry.last_health.as_ref().map(LastHealth::with_cause)))
    }

    /// Returns the objects that are not known to be healthy, and of these the degraded ones.
    /// Suspended objects count as healthy unless `may_not_rest` says otherwise.
    pub fn unhealthy_objects(
        &self,
        may_not_rest: impl Fn(&ObjectId) -> bool,
    ) -> (BTreeSet<ObjectId>, BTreeSet<ObjectId>) {
        let (mut unwell, mut degraded) = (BTreeSet::new(), BTreeSet::new());
        for (id, entry) in &self.objects {
            match entry.last_health.as_ref().map(|known| &known.health) {
                Some(Health::Healthy) => continue,
                Some(Health::Suspended) if !may_not_rest(id) => continue,
                Some(Health::Suspended) => {}
                Some(Health::Degraded { .. }) => drop(degraded.insert(id.clone())),
                Some(Health::Progressing { .. } | Health::Unknown { .. }) | None => {}
            }
            unwell.insert(id.clone());
        }
        (unwell, degraded)
    }

    /// Sentence about an unhealthy object.
    pub fn message_of(&self, id: &ObjectId) -> Option<String> {
        self.objects.get(id)?.last_health.as_ref()?.with_cause().message().map(str::to_owned)
    }

    /// Changes the entry of an object and updates the schedule.
    fn update_entry(&mut self, id: &ObjectId, change: impl FnOnce(&mut Entry)) {
        let entry = self.objects.entry(id.clone()).or_insert(Entry::NEW);
        if let Some(at) = entry.next_due_at() {
            self.schedule.remove(&(at, id.clone()));
        }
        change(entry);
        if let Some(at) = entry.next_due_at() {
            self.schedule.insert((at, id.clone()));
        }
    }
}

fn is_deleted(body: &Map<String, Value>) -> bool {
    body.get("metadata")
        .and_then(|metadata| metadata.get("deletionTimestamp"))
        .is_some_and(|at| !at.is_null())
}

/// True for volume claims: their StorageClass is read with them.
fn is_read_with_others(id: &ObjectId) -> bool {
    id.is_kind("", "PersistentVolumeClaim")
}
