//! How all objects of a Sync are, and which of them have to be read for it.
//!
//! In: which objects changed, the bodies that were read because of it, and the time. Out: [`Due`], what is to be read now;
//! when to ask again; and [`Summary`]. What a controller writes in several steps is read once, and no object more often than
//! once a second. A workload that is not well is read from time to time with what lies beneath it, because its Pods get into
//! trouble without a word in its own status. Times are milliseconds on any one clock.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::rules::Rules;
use super::{Context, Health};
use entry::{Entry, Known, PAUSE};
use moorline_core::object::{GroupKind, ObjectId};

/// After reads that failed: the first pause, and the longest.
const RETRY: (i64, i64) = (5_000, 300_000);
/// So many workloads of a Sync are looked beneath at one time.
const MAX_BENEATH: usize = 10;
/// More objects of a kind in a namespace may be listed.
const ONE_BY_ONE: usize = 8;
/// A list is worth it if one object in so many is to be read.
const PART: usize = 5;
/// The most objects that a summary names.
const MAX_WORST: usize = 10;

/// Every object of a Sync whose status has to be read.
#[derive(Debug, Default)]
pub struct Watchlist {
    objects: BTreeMap<ObjectId, Entry>,
    /// When something is to be done about which object.
    agenda: BTreeSet<(i64, ObjectId)>,
}

/// What is to be read now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Objects.
    pub read: Vec<ObjectId>,
    /// Objects that are so many that a list of them costs less.
    pub lists: Vec<Place>,
    /// Objects with what lies beneath them.
    pub beneath: Vec<ObjectId>,
}

/// All objects of one kind in one namespace, or in none.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind.
    pub kind: GroupKind,
    /// The namespace.
    pub namespace: Option<Box<str>>,
    /// The objects.
    pub ids: BTreeSet<ObjectId>,
}

/// What is held against a body.
#[derive(Debug, Clone, Copy)]
pub struct Judgement<'a> {
    /// What the Sync says of kinds.
    pub rules: &'a Rules,
    /// How long an object may be on its way, where the Sync says it.
    pub timeout: Option<i64>,
    /// What the body cannot say.
    pub context: Context,
    /// The time in milliseconds since 1970.
    pub wall: i64,
    /// It is something that runs: that it has failed is its end, and stands when it is cleared away.
    pub runs: bool,
}

/// How the objects of a Sync are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// So many may report how they are.
    pub objects: usize,
    /// So many were not read yet, or not since they were written.
    pub unread: usize,
    /// So many are on their way.
    pub progressing: usize,
    /// So many failed.
    pub degraded: usize,
    /// Of so many nobody can tell.
    pub unknown: usize,
    /// The first of those that are not well, the worst first, each with its sentence.
    pub worst: Vec<(ObjectId, Health)>,
}

impl Watchlist {
    /// An object changed, or is to be watched from now on.
    pub fn changed(&mut self, id: &ObjectId, now: i64) {
        self.enter(id, |entry| {
            entry.ended = false;
            entry.is_due(now);
        });
    }

    /// An object was changed by its Sync: what was known of it counts no more.
    pub fn written(&mut self, id: &ObjectId, now: i64) {
        self.enter(id, |entry| {
            (entry.known, entry.written, entry.ended) = (None, now, false);
            entry.is_due(now);
        });
    }

    /// An object is gone. That a Job, a Pod or a hook has failed stands: whoever clears it away makes nothing well.
    pub fn gone(&mut self, id: &ObjectId) {
        if self.has_failed(id) {
            self.enter(id, Entry::end);
        } else {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: &ObjectId) {
        if let Some(entry) = self.objects.remove(id) {
            entry.next().map(|at| self.agenda.remove(&(at, id.clone())));
        }
    }

    /// Whether an object has come to its end, and did so well; none while that is not known, or takes long.
    pub fn end(&self, id: &ObjectId) -> Option<bool> {
        let known = self.objects.get(id)?.known.as_ref()?;
        match known.shown {
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
        self.objects.get(id).and_then(|entry| entry.known.as_ref()).is_some_and(|known| known.failed)
    }

    /// These have failed for good; of those that are gone there is nothing else to be known.
    pub fn have_failed(&mut self, failed: &BTreeSet<ObjectId>) {
        for id in failed.iter().filter(|id| !self.objects.contains_key(*id)).cloned().collect::<Vec<_>>() {
            self.enter(&id, |entry| {
                let shown = Health::degraded("it failed, and was cleared away since".to_owned());
                entry.known = Some(Known { shown, progress: None, late: None, cause: None, failed: true });
                entry.end();
            });
        }
    }

    /// Only these are watched any more.
    pub fn retain(&mut self, keep: impl Fn(&ObjectId) -> bool) {
        let gone: Vec<ObjectId> = self.objects.keys().filter(|id| !keep(id)).cloned().collect();
        gone.iter().for_each(|id| self.forget(id));
    }

    /// This object says something of its kind that the others are judged by.
    pub fn speaks(&mut self, first: &ObjectId, now: i64) {
        let of_kind = |id: &ObjectId| id.is(first.group(), first.kind()) && id != first;
        let there = self.objects.iter().filter(|(id, entry)| of_kind(id) && !entry.ended);
        let all: Vec<ObjectId> = there.map(|(id, _)| id.clone()).collect();
        all.iter().for_each(|id| self.changed(id, now));
    }

    /// True if the object is watched.
    pub fn has(&self, id: &ObjectId) -> bool {
        self.objects.contains_key(id)
    }

    /// When something is to be done, if nothing happens before.
    pub fn next(&self) -> Option<i64> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Takes what is to be read by now. Whoever asks reads it.
    #[must_use]
    pub fn due(&mut self, now: i64) -> Due {
        let mut due = Due::default();
        let all: Vec<ObjectId> =
            self.agenda.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect();
        for id in all {
            self.enter(&id, |entry| {
                if entry.looks_beneath().is_some_and(|at| at <= now) {
                    (entry.beneath, entry.due, entry.read) = (None, None, now);
                    due.beneath.push(id.clone());
                } else if entry.due.is_some_and(|at| at <= now) {
                    (entry.due, entry.read) = (None, now);
                    due.read.push(id.clone());
                }
                if let Some(known) = &mut entry.known
                    && let Some((_, late)) = known.late.take_if(|(at, _)| *at <= now)
                {
                    known.shown = late;
                }
            });
        }
        due.lists = self.lists(&mut due.read, now);
        due
    }

    /// Takes what is better listed out of what is to be read. A list brings all objects of its place, and so each of them
    /// is read: those that changed a moment later are read together, a second from now.
    fn lists(&mut self, read: &mut Vec<ObjectId>, now: i64) -> Vec<Place> {
        let place = |id: &ObjectId| (id.group_kind(), id.namespace().map(Box::from));
        let mut counts: BTreeMap<(GroupKind, Option<Box<str>>), usize> = BTreeMap::new();
        read.iter()
            .filter(|id| !is_read_with_others(id))
            .for_each(|id| *counts.entry(place(id)).or_default() += 1);
        let mut lists = Vec::new();
        for ((kind, namespace), count) in counts.into_iter().filter(|(_, count)| *count > ONE_BY_ONE) {
            let is_here =
                |id: &ObjectId| id.is(&kind.group, &kind.kind) && id.namespace() == namespace.as_deref();
            let here = self.objects.iter().filter(|(id, entry)| !entry.ended && is_here(id));
            let ids: BTreeSet<ObjectId> = here.map(|(id, _)| id.clone()).collect();
            if count.saturating_mul(PART) < ids.len() {
                continue;
            }
            ids.iter().for_each(|id| self.enter(id, |entry| (entry.due, entry.read) = (None, now)));
            read.retain(|id| !is_here(id));
            lists.push(Place { kind, namespace, ids });
        }
        lists
    }

    /// An object was read, with what lies beneath it where that was asked for.
    pub fn read(
        &mut self,
        id: &ObjectId,
        body: &Map<String, Value>,
        cause: Option<Option<String>>,
        of: &Judgement<'_>,
        now: i64,
    ) {
        let free = self.objects.values().filter(|entry| entry.beneath.is_some()).count() < MAX_BENEATH;
        if !self.has(id) {
            return;
        }
        let kind = id.group_kind();
        self.enter(id, |entry| {
            if entry.read <= entry.written || entry.ended {
                return;
            }
            (entry.failures, entry.misses) = (0, 0);
            // That it goes now says nothing about how it ended.
            if is_deleted(body) && entry.known.as_ref().is_some_and(|known| known.failed) {
                return;
            }
            let (known, is_asked) = (Known::of(&kind, body, entry.known.take(), of, now), cause.is_some());
            entry.looks += u32::from(is_asked);
            entry.known = Some(Known { cause: cause.unwrap_or(known.cause), ..known });
            entry.look_beneath(&kind, free, now);
        });
    }

    /// An object was not there when it was read, although a watch has told of it and not that it is gone.
    pub fn missed(&mut self, id: &ObjectId, now: i64) {
        if !self.has(id) {
            return;
        }
        self.enter(id, |entry| {
            if entry.ended {
                return;
            }
            let pause = PAUSE.saturating_mul(1 << entry.misses.min(10)).min(RETRY.1);
            entry.misses = entry.misses.saturating_add(1);
            entry.due = Some(entry.due.map_or(now + pause, |due| due.min(now + pause)));
        });
    }

    /// An object could not be read.
    pub fn failed(&mut self, id: &ObjectId, why: &str, now: i64) {
        if !self.has(id) {
            return;
        }
        self.enter(id, |entry| {
            if entry.ended {
                return;
            }
            entry.failures = entry.failures.saturating_add(1);
            // Of a single failure nothing is made.
            if entry.failures == 1 && entry.known.is_some() {
                entry.due = Some(now + PAUSE);
                return;
            }
            let shown = Health::unknown(format!("its status cannot be read: {why}"));
            let progress = entry.known.take().and_then(|known| known.progress);
            entry.known = Some(Known { shown, progress, late: None, cause: None, failed: false });
            let doubled = RETRY.0.saturating_mul(1 << entry.failures.saturating_sub(1).min(10));
            entry.due = Some(now + doubled.min(RETRY.1));
        });
    }

    /// What all of them come to.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { objects: self.objects.len(), ..Summary::default() };
        let mut worst = [Vec::new(), Vec::new(), Vec::new()];
        for (id, entry) in &self.objects {
            let Some(known) = &entry.known else {
                summary.unread += 1;
                continue;
            };
            let (count, list) = match known.shown {
                Health::Healthy | Health::Suspended => continue,
                Health::Degraded { .. } => (&mut summary.degraded, &mut worst[0]),
                Health::Unknown { .. } => (&mut summary.unknown, &mut worst[1]),
                Health::Progressing { .. } => (&mut summary.progressing, &mut worst[2]),
            };
            *count += 1;
            if list.len() < MAX_WORST {
                list.push((id.clone(), known.told()));
            }
        }
        summary.worst = worst.into_iter().flatten().take(MAX_WORST).collect();
        summary
    }

    /// All objects in the order of their ids, each with how it is; none for one that was not read yet.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectId, Option<Health>)> {
        self.objects.iter().map(|(id, entry)| (id, entry.known.as_ref().map(Known::told)))
    }

    /// The objects that are not well or not known to be, and of these the ones that have failed. Some may not rest either.
    pub fn unwell(
        &self,
        may_not_rest: impl Fn(&ObjectId) -> bool,
    ) -> (BTreeSet<ObjectId>, BTreeSet<ObjectId>) {
        let (mut unwell, mut degraded) = (BTreeSet::new(), BTreeSet::new());
        for (id, entry) in &self.objects {
            match entry.known.as_ref().map(|known| &known.shown) {
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

    /// What is wrong with an object.
    pub fn why(&self, id: &ObjectId) -> Option<String> {
        self.objects.get(id)?.known.as_ref()?.told().why().map(str::to_owned)
    }

    /// Changes what is known of an object, and when it is looked at next.
    fn enter(&mut self, id: &ObjectId, change: impl FnOnce(&mut Entry)) {
        let entry = self.objects.entry(id.clone()).or_insert(Entry::NEW);
        if let Some(at) = entry.next() {
            self.agenda.remove(&(at, id.clone()));
        }
        change(entry);
        if let Some(at) = entry.next() {
            self.agenda.insert((at, id.clone()));
        }
    }
}

impl Summary {
    /// True if every object is known and as it should be.
    pub fn is_healthy(&self) -> bool {
        self.unread + self.progressing + self.degraded + self.unknown == 0
    }

    /// True if every object was read.
    pub fn is_known(&self) -> bool {
        self.unread == 0
    }

    /// True if both come to the same word: what differs is how many, and which.
    pub fn is_as(&self, other: &Self) -> bool {
        let word = |of: &Self| [of.unread, of.progressing, of.degraded, of.unknown].map(|count| count > 0);
        word(self) == word(other)
    }
}

fn is_deleted(body: &Map<String, Value>) -> bool {
    body.get("metadata")
        .and_then(|metadata| metadata.get("deletionTimestamp"))
        .is_some_and(|at| !at.is_null())
}

/// True for a claim, with which its class is read.
fn is_read_with_others(id: &ObjectId) -> bool {
    id.is("", "PersistentVolumeClaim")
}
