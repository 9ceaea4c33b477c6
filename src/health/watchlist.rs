//! How all objects of a Sync are, and which of them have to be read for it.
//!
//! In: which objects changed, the bodies that were read because of it, and the time. Out: [`Due`], what is to be read now;
//! when to ask again; and [`Summary`]. What a controller writes in several steps is read once, and no object more often than
//! once a second. A workload that is not well is read from time to time with what lies beneath it, because its Pods get into
//! trouble without a word in its own status. Times are milliseconds on any one clock.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::rules::Rules;
use super::stall::{is_mute_for_good, patience};
use super::{Context, Health, Progress, Reports, health, judge};
use crate::object::{GroupKind, ObjectId};
use crate::observed::may_end;

/// From a change to the read: controllers answer to a change within a moment.
const SETTLE: i64 = 100;
/// Between two reads of one object.
const PAUSE: i64 = 1_000;
/// After reads that failed: the first pause, and the longest.
const RETRY: (i64, i64) = (5_000, 300_000);
/// Between two looks beneath a workload that is not well: the first, and the longest.
const BENEATH: (i64, i64) = (2_000, 60_000);
/// So many workloads of a Sync are looked beneath at one time.
const MAX_BENEATH: usize = 10;
/// The most objects that a summary names.
const MAX_WORST: usize = 10;

/// Every object of a Sync whose status has to be read.
#[derive(Debug, Default)]
pub struct Watchlist {
    objects: BTreeMap<ObjectId, Entry>,
    /// When something is to be done about which object.
    agenda: BTreeSet<(i64, ObjectId)>,
}

#[derive(Debug)]
struct Entry {
    /// When it has to be read.
    due: Option<i64>,
    /// When what lies beneath it has to be read with it.
    beneath: Option<i64>,
    /// How often that was done since it was well.
    looks: u32,
    read: i64,
    /// When its Sync wrote it last: a read from before says nothing.
    written: i64,
    /// How often it could not be read, one time after the other.
    failures: u32,
    /// It failed for good, and is gone since.
    ended: bool,
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    shown: Health,
    progress: Option<Progress>,
    /// What it comes to if nothing changes until then.
    late: Option<(i64, Health)>,
    /// What lies beneath it.
    cause: Option<String>,
}

/// What is to be read now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Objects.
    pub read: Vec<ObjectId>,
    /// Objects with what lies beneath them.
    pub beneath: Vec<ObjectId>,
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

    /// An object is gone. That a Job or Pod has failed stands: whoever clears it away makes nothing well.
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

    /// True for a Job or Pod that has failed.
    pub fn has_failed(&self, id: &ObjectId) -> bool {
        let known = self.objects.get(id).and_then(|entry| entry.known.as_ref());
        may_end(id) && known.is_some_and(|known| matches!(known.shown, Health::Degraded { .. }))
    }

    /// Of all that are gone these, and no others, have failed for good.
    pub fn have_failed(&mut self, failed: &BTreeSet<ObjectId>) {
        let mut known: BTreeSet<ObjectId> =
            self.objects.iter().filter(|(_, entry)| entry.ended).map(|(id, _)| id.clone()).collect();
        known.retain(|id| !failed.contains(id));
        known.iter().for_each(|id| self.forget(id));
        for id in failed.iter().filter(|id| !self.objects.contains_key(*id)).cloned().collect::<Vec<_>>() {
            self.enter(&id, |entry| {
                let shown = Health::degraded("it failed, and was cleared away since".to_owned());
                entry.known = Some(Known { shown, progress: None, late: None, cause: None });
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
        due
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
            entry.failures = 0;
            let (known, is_asked) = (Known::of(&kind, body, entry.known.take(), of, now), cause.is_some());
            entry.looks += u32::from(is_asked);
            entry.known = Some(Known { cause: cause.unwrap_or(known.cause), ..known });
            entry.look_beneath(&kind, free, now);
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
            entry.known = Some(Known { shown, progress, late: None, cause: None });
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

/// Long before anything.
const NEVER: i64 = i64::MIN / 2;

impl Entry {
    const NEW: Self = Self {
        due: None,
        beneath: None,
        looks: 0,
        read: NEVER,
        written: NEVER - 1,
        failures: 0,
        ended: false,
        known: None,
    };

    fn next(&self) -> Option<i64> {
        let late = self.known.as_ref().and_then(|known| known.late.as_ref()).map(|(at, _)| *at);
        [self.due, self.looks_beneath(), late].into_iter().flatten().min()
    }

    /// When what lies beneath is read: with it the object is, which was read a moment ago perhaps.
    fn looks_beneath(&self) -> Option<i64> {
        self.beneath.map(|at| at.max(self.read + PAUSE))
    }

    /// It is gone, and what is known of it will not change.
    fn end(&mut self) {
        (self.due, self.beneath, self.ended) = (None, None, true);
        self.known.iter_mut().for_each(|known| known.late = None);
    }

    fn is_due(&mut self, now: i64) {
        let due = (now + SETTLE).max(self.read + PAUSE);
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    /// Notes when to look beneath a workload that is not well.
    fn look_beneath(&mut self, kind: &GroupKind, free: bool, now: i64) {
        let is_well = !self.known.as_ref().is_some_and(|known| known.shown.is_wanting());
        if is_well || !has_beneath(kind) {
            (self.beneath, self.looks) = (None, 0);
        } else if self.beneath.is_none() && free {
            let pause = BENEATH.0.saturating_mul(1 << self.looks.min(10)).min(BENEATH.1);
            self.beneath = Some(now + pause);
        }
    }
}

impl Known {
    fn of(
        kind: &GroupKind,
        body: &Map<String, Value>,
        before: Option<Self>,
        of: &Judgement<'_>,
        now: i64,
    ) -> Self {
        let mut context = of.context;
        if is_mute_for_good(kind, body, &context, of.wall) {
            context.reports = Reports::No;
        }
        let found = of.rules.judge(kind, body).unwrap_or_else(|| health(kind, body, &context));
        let (progress, cause) = before.map_or((None, None), |before| (before.progress, before.cause));
        let progress = Progress::follow(progress, &found, now);
        let deadline = patience(kind, body, &context, of.timeout);
        let late = progress.as_ref().map(|progress| {
            let ends = progress.ends(deadline);
            (ends, judge(kind, body, &context, found.clone(), Some(progress), ends, deadline))
        });
        let cause = cause.filter(|_| found.is_wanting());
        match late {
            // It was too long before, and still is.
            Some((ends, late)) if ends <= now => Self { shown: late, progress, late: None, cause },
            late => Self { shown: found, progress, late, cause },
        }
    }

    /// The health with what lies beneath it.
    fn told(&self) -> Health {
        let with = |why: &str| match &self.cause {
            Some(cause) => format!("{why}; {cause}"),
            None => why.to_owned(),
        };
        match &self.shown {
            Health::Progressing { why } => Health::progressing(with(why)),
            Health::Degraded { why } => Health::degraded(with(why)),
            other => other.clone(),
        }
    }
}

impl Health {
    fn is_wanting(&self) -> bool {
        matches!(self, Self::Progressing { .. } | Self::Degraded { .. })
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

/// The kinds whose Pods tell more than they do.
fn has_beneath(kind: &GroupKind) -> bool {
    let workloads = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];
    &*kind.group == "apps" && workloads.contains(&&*kind.kind)
        || &*kind.group == "batch" && &*kind.kind == "Job"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ObjectId {
        ObjectId::new("apps", "Deployment", "shop", name).unwrap()
    }

    fn deployment(ready: u8) -> Map<String, Value> {
        let text = format!(
            r#"{{"metadata": {{"name": "web", "generation": 2}}, "spec": {{"replicas": 3}}, "status": {{
                "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": {ready},
                "availableReplicas": {ready}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    struct Case {
        list: Watchlist,
        rules: Rules,
        timeout: Option<i64>,
    }

    impl Case {
        fn new() -> Self {
            Self { list: Watchlist::default(), rules: Rules::default(), timeout: None }
        }

        fn read(&mut self, name: &str, ready: u8, cause: Option<Option<&str>>, now: i64) {
            let cause = cause.map(|cause| cause.map(str::to_owned));
            let (timeout, context) = (self.timeout, Context::default());
            let of = Judgement { rules: &self.rules, timeout, context, wall: 0 };
            self.list.read(&id(name), &deployment(ready), cause, &of, now);
        }

        fn due(&mut self, now: i64) -> (usize, usize) {
            let due = self.list.due(now);
            (due.read.len(), due.beneath.len())
        }

        fn worst(&self) -> String {
            let summary = self.list.summary();
            summary.worst.first().map(|(_, health)| format!("{health:?}")).unwrap_or_default()
        }
    }

    #[test]
    fn an_object_is_read_once_a_second_however_often_it_changes() {
        let mut case = Case::new();
        let mut reads = Vec::new();
        for now in 0..5_000 {
            if now < 3_000 && now % 7 == 0 {
                case.list.changed(&id("web"), now);
            }
            if case.due(now).0 > 0 {
                reads.push(now);
                case.read("web", 3, None, now + 3);
            }
        }
        assert_eq!(reads, [100, 1_100, 2_100, 3_100]);
        assert_eq!(case.list.next(), None, "and never while nothing changes");
        assert!(case.list.summary().is_healthy());
    }

    #[test]
    fn what_was_written_is_not_healthy_before_it_was_read() {
        let mut case = Case::new();
        case.list.changed(&id("web"), 0);
        assert_eq!(case.list.summary().unread, 1);
        assert_eq!(case.due(100), (1, 0));
        case.read("web", 3, None, 105);
        assert!(case.list.summary().is_healthy());
        case.list.changed(&id("web"), 5_000);
        assert!(case.list.summary().is_healthy(), "others' changes are read first");
        case.list.written(&id("web"), 5_000);
        assert!(!case.list.summary().is_healthy());
        assert_eq!(case.due(5_100), (1, 0));
        case.list.gone(&id("web"));
        assert_eq!((case.list.next(), case.list.summary()), (None, Summary::default()));
        case.read("web", 3, None, 5_105);
        assert_eq!(case.list.summary().objects, 0, "a late answer brings nothing back");
    }

    #[test]
    fn what_was_read_before_a_write_says_nothing_after_it() {
        let mut case = Case::new();
        case.list.changed(&id("web"), 0);
        assert_eq!(case.due(100), (1, 0));
        case.list.written(&id("web"), 150);
        case.read("web", 3, None, 200);
        assert_eq!(case.list.summary().unread, 1);
        assert_eq!(case.due(1_100), (1, 0));
        case.read("web", 3, None, 1_105);
        assert!(case.list.summary().is_healthy());
    }

    #[test]
    fn a_read_that_fails_once_is_nothing_and_then_is_tried_less_and_less() {
        let mut case = Case::new();
        case.list.changed(&id("web"), 0);
        assert_eq!(case.due(100), (1, 0));
        case.read("web", 3, None, 100);
        case.list.changed(&id("web"), 5_000);
        let mut tries = Vec::new();
        while let Some(next) = case.list.next().filter(|next| *next < 700_000) {
            assert_eq!(case.due(next), (1, 0));
            case.list.failed(&id("web"), "too many requests", next);
            tries.push(next / 1000);
            assert_eq!(case.list.summary().unknown, usize::from(tries.len() > 1));
        }
        assert_eq!(tries, [5, 6, 16, 36, 76, 156, 316, 616]);
    }

    #[test]
    fn what_comes_no_further_is_degraded_by_time_alone() {
        let mut case = Case::new();
        case.timeout = Some(60_000);
        case.list.changed(&id("web"), 0);
        assert_eq!(case.due(100), (1, 0));
        case.read("web", 1, None, 105);
        assert!(case.worst().starts_with("Progressing"), "{}", case.worst());
        while let Some(next) = case.list.next().filter(|next| *next < 60_105) {
            let _ = case.list.due(next);
        }
        assert_eq!(case.list.next(), Some(60_105));
        let _ = case.list.due(60_105);
        assert!(case.worst().starts_with("Degraded"), "{}", case.worst());
        case.list.changed(&id("web"), 61_000);
        assert_eq!(case.due(61_105).0, 1);
        case.read("web", 1, None, 61_110);
        assert!(case.worst().starts_with("Degraded"), "another look at the same changes nothing");
        case.list.changed(&id("web"), 63_000);
        assert_eq!(case.due(63_105).0, 1);
        case.read("web", 3, None, 63_110);
        assert!(case.list.summary().is_healthy());
    }

    #[test]
    fn what_lies_beneath_is_looked_at_from_time_to_time() {
        let mut case = Case::new();
        case.list.changed(&id("web"), 0);
        assert_eq!(case.due(100), (1, 0));
        case.read("web", 1, None, 100);
        let mut looks = Vec::new();
        while let Some(next) = case.list.next().filter(|next| *next < 200_000) {
            assert_eq!(case.due(next), (0, 1));
            looks.push(next / 1000);
            case.read("web", 1, Some(Some("Pod web-1 cannot pull its image")), next);
        }
        assert_eq!(looks, [2, 6, 14, 30, 62, 122, 182]);
        assert!(case.worst().contains("; Pod web-1 cannot pull"), "{}", case.worst());
        case.list.changed(&id("web"), 200_000);
        assert_eq!(case.due(200_100), (1, 0));
        case.read("web", 2, None, 200_100);
        assert!(case.worst().contains("; Pod web-1 cannot pull"), "it stays until it is asked again");
        case.list.changed(&id("web"), 202_000);
        assert_eq!(case.due(202_100).0, 1);
        case.read("web", 3, None, 202_100);
        assert_eq!(case.list.next(), None);
    }

    #[test]
    fn no_object_is_read_twice_in_a_second_also_for_what_lies_beneath() {
        let mut case = Case::new();
        case.list.changed(&id("web"), 0);
        assert_eq!(case.due(100), (1, 0));
        case.read("web", 1, None, 100);
        case.list.changed(&id("web"), 1_500);
        assert_eq!(case.due(1_600), (1, 0));
        case.read("web", 1, None, 1_600);
        assert_eq!(case.list.next(), Some(2_600));
        assert_eq!(case.due(2_600), (0, 1));
    }

    #[test]
    fn that_a_job_has_failed_stands_when_it_is_cleared_away() {
        let job = ObjectId::parse("batch/Job|shop/migrate").unwrap();
        let body = |kind: &str| {
            let text = format!(r#"{{"status": {{"conditions": [{{"type": "{kind}", "status": "True"}}]}}}}"#);
            serde_json::from_str::<Map<String, Value>>(&text).unwrap()
        };
        let mut case = Case::new();
        let read = |case: &mut Case, kind: &str, now| {
            let of =
                Judgement { rules: &Rules::default(), timeout: None, context: Context::default(), wall: 0 };
            case.list.read(&job, &body(kind), None, &of, now);
        };
        case.list.changed(&job, 0);
        assert_eq!(case.due(100).0, 1);
        read(&mut case, "Failed", 100);
        case.list.gone(&job);
        assert!(case.worst().starts_with("Degraded"), "{}", case.worst());
        assert_eq!(case.list.next(), None);
        let failed = BTreeSet::from([job.clone()]);
        case.list.have_failed(&failed);
        assert!(case.worst().contains("it failed"), "{}", case.worst());
        // It was not the end of it.
        case.list.have_failed(&BTreeSet::new());
        assert_eq!(case.list.summary(), Summary::default());
        // An earlier daemon saw it fail; now it runs once more.
        case.list.have_failed(&failed);
        assert_eq!(case.list.summary().degraded, 1);
        case.list.written(&job, 5_000);
        assert_eq!(case.due(5_100).0, 1);
        read(&mut case, "Complete", 5_100);
        case.list.have_failed(&BTreeSet::new());
        assert!(case.list.summary().is_healthy() && case.list.has(&job));
        case.list.gone(&job);
        assert!(!case.list.has(&job), "of what ended well nothing is left to say");
    }

    #[test]
    fn the_worst_come_first_and_are_few() {
        let mut case = Case::new();
        for at in 0..30 {
            case.list.changed(&id(&format!("web-{at:02}")), 0);
        }
        assert_eq!(case.due(100), (30, 0));
        case.list.failed(&id("web-29"), "forbidden", 100);
        for at in 0..29 {
            case.read(&format!("web-{at:02}"), 1, None, 100);
        }
        let summary = case.list.summary();
        assert_eq!((summary.progressing, summary.unknown, summary.worst.len()), (29, 1, 10));
        assert_eq!(summary.worst[0].0, id("web-29"));
        let beneath = case.list.due(100 + BENEATH.0).beneath.len();
        assert_eq!(beneath, MAX_BENEATH);
        let other = Summary { progressing: 3, ..summary.clone() };
        assert!(other.is_as(&summary) && other != summary, "fewer of the same are no other word");
        assert!(!Summary { progressing: 0, ..summary.clone() }.is_as(&summary));
    }
}
