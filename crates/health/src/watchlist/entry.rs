//! State of one watched object: its last known health, and the times of its next reads.
//!
//! In: its body, and the time.
//! Out: its health, with the deadline at which it changes without a new read.

use serde_json::{Map, Value};

use super::super::stall::{is_mute_for_good, patience};
use super::super::{Health, Progress, Reports, health, judge};
use super::Judgement;
use moorline_core::object::GroupKind;

/// Delay between a change and the read: controllers respond to a change within a moment.
const SETTLE: i64 = 100;
/// Minimal interval between two reads of one object.
pub(super) const PAUSE: i64 = 1_000;
/// Interval between two reads of the Pods of an unhealthy workload: the first, and the longest.
pub(super) const BENEATH: (i64, i64) = (2_000, 60_000);

#[derive(Debug)]
pub(super) struct Entry {
    /// Time of the next read.
    pub(super) due: Option<i64>,
    /// Time of the next read together with its Pods.
    pub(super) beneath: Option<i64>,
    /// Number of such reads since the workload was last healthy.
    pub(super) looks: u32,
    pub(super) read: i64,
    /// Time of the last write by its Sync: an earlier read does not count.
    pub(super) written: i64,
    /// Number of failed reads in a row.
    pub(super) failures: u32,
    /// Number of reads in a row that found no object.
    pub(super) misses: u32,
    /// True if the object failed for good and was deleted.
    pub(super) ended: bool,
    pub(super) known: Option<Known>,
}

#[derive(Debug)]
pub(super) struct Known {
    pub(super) shown: Health,
    pub(super) progress: Option<Progress>,
    /// Health at the deadline, if nothing changes until then.
    pub(super) late: Option<(i64, Health)>,
    /// Sentence about its Pods.
    pub(super) cause: Option<String>,
    /// True if it has ended in failure, by its own status.
    pub(super) failed: bool,
}

/// Earlier than any real time.
const NEVER: i64 = i64::MIN / 2;

impl Entry {
    pub(super) const NEW: Self = Self {
        due: None,
        beneath: None,
        looks: 0,
        read: NEVER,
        written: NEVER - 1,
        failures: 0,
        misses: 0,
        ended: false,
        known: None,
    };

    pub(super) fn next(&self) -> Option<i64> {
        let late = self.known.as_ref().and_then(|known| known.late.as_ref()).map(|(at, _)| *at);
        [self.due, self.looks_beneath(), late].into_iter().flatten().min()
    }

    /// Time at which the Pods are read. The object is read with them, and may have been read a
    /// moment ago.
    pub(super) fn looks_beneath(&self) -> Option<i64> {
        self.beneath.map(|at| at.max(self.read + PAUSE))
    }

    /// Marks the object as deleted: its known health no longer changes.
    pub(super) fn end(&mut self) {
        (self.due, self.beneath, self.ended) = (None, None, true);
        self.known.iter_mut().for_each(|known| known.late = None);
    }

    pub(super) fn is_due(&mut self, now: i64) {
        let due = (now + SETTLE).max(self.read + PAUSE);
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    /// Schedules a read of the Pods of an unhealthy workload.
    pub(super) fn look_beneath(&mut self, kind: &GroupKind, free: bool, now: i64) {
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
    pub(super) fn of(
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
        let failed = has_failed(kind, body) || of.runs && matches!(found, Health::Degraded { .. });
        match late {
            // The deadline was over before this read, and still is.
            Some((ends, late)) if ends <= now => Self { shown: late, progress, late: None, cause, failed },
            late => Self { shown: found, progress, late, cause, failed },
        }
    }

    /// Health with the sentence about its Pods.
    pub(super) fn told(&self) -> Health {
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
    pub(super) fn is_wanting(&self) -> bool {
        matches!(self, Self::Progressing { .. } | Self::Degraded { .. })
    }
}

/// True for kinds whose Pods explain more than their own status.
fn has_beneath(kind: &GroupKind) -> bool {
    let workloads = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];
    &*kind.group == "apps" && workloads.contains(&&*kind.kind)
        || &*kind.group == "batch" && &*kind.kind == "Job"
}

/// True for a Job or a Pod whose own status says that it failed. One that exceeds a deadline, or is
/// degraded by a custom rule, may still succeed.
fn has_failed(kind: &GroupKind, body: &Map<String, Value>) -> bool {
    let status = body.get("status");
    let is = |value: Option<&Value>, text: &str| value.and_then(Value::as_str) == Some(text);
    match (&*kind.group, &*kind.kind) {
        ("", "Pod") => is(status.and_then(|status| status.get("phase")), "Failed"),
        ("batch", "Job") => {
            let conditions = status.and_then(|status| status.get("conditions")?.as_array());
            let fails = |condition: &Value| {
                let type_ = condition.get("type");
                (is(type_, "Failed") || is(type_, "FailureTarget")) && is(condition.get("status"), "True")
            };
            conditions.into_iter().flatten().any(fails)
        }
        _ => false,
    }
}
