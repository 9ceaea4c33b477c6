//! State of one watched object: its last known health, and the times of its next reads.
//!
//! In: its body, and the time.
//! Out: its health, with the deadline at which it changes without a new read.

use serde_json::{Map, Value};

use super::super::{Health, Progress, Reports, apply_deadline, health};
use super::JudgementInputs;
use crate::progress_deadline::{has_stayed_without_report, progress_timeout};
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
    pub(super) read_at: Option<i64>,
    /// Time of the next read together with its Pods.
    pub(super) pods_read_at: Option<i64>,
    /// Number of such reads since the workload was last healthy.
    pub(super) pod_reads: u32,
    pub(super) last_read: i64,
    /// Time of the last write by its Sync: an earlier read does not count.
    pub(super) last_written: i64,
    /// Number of failed reads in a row.
    pub(super) failures: u32,
    /// Number of reads in a row that found no object.
    pub(super) misses: u32,
    /// True if the object failed for good and was deleted.
    pub(super) ended: bool,
    pub(super) last_health: Option<LastHealth>,
}

#[derive(Debug)]
pub(super) struct LastHealth {
    pub(super) health: Health,
    pub(super) progress: Option<Progress>,
    /// Health at the deadline, if nothing changes until then.
    pub(super) at_deadline: Option<(i64, Health)>,
    /// Sentence about its Pods.
    pub(super) cause: Option<String>,
    /// True if it has ended in failure, by its own status.
    pub(super) failed: bool,
}

/// Earlier than any real time.
const NEVER: i64 = i64::MIN / 2;

impl Entry {
    pub(super) const NEW: Self = Self {
        read_at: None,
        pods_read_at: None,
        pod_reads: 0,
        last_read: NEVER,
        last_written: NEVER - 1,
        failures: 0,
        misses: 0,
        ended: false,
        last_health: None,
    };

    pub(super) fn next_due_at(&self) -> Option<i64> {
        let late = self.last_health.as_ref().and_then(|known| known.at_deadline.as_ref()).map(|(at, _)| *at);
        [self.read_at, self.pods_due_at(), late].into_iter().flatten().min()
    }

    /// Time at which the Pods are read. The object is read with them, and may have been read a
    /// moment ago.
    pub(super) fn pods_due_at(&self) -> Option<i64> {
        self.pods_read_at.map(|at| at.max(self.last_read + PAUSE))
    }

    /// Marks the object as deleted: its known health no longer changes.
    pub(super) fn mark_ended(&mut self) {
        (self.read_at, self.pods_read_at, self.ended) = (None, None, true);
        self.last_health.iter_mut().for_each(|known| known.at_deadline = None);
    }

    pub(super) fn schedule_read(&mut self, now: i64) {
        let due = (now + SETTLE).max(self.last_read + PAUSE);
        self.read_at = Some(self.read_at.map_or(due, |known| known.min(due)));
    }

    /// Schedules a read of the Pods of an unhealthy workload.
    pub(super) fn schedule_pods_read(&mut self, kind: &GroupKind, free: bool, now: i64) {
        let is_well = !self.last_health.as_ref().is_some_and(|known| known.health.is_unhealthy());
        if is_well || !has_pods(kind) {
            (self.pods_read_at, self.pod_reads) = (None, 0);
        } else if self.pods_read_at.is_none() && free {
            let pause = BENEATH.0.saturating_mul(1 << self.pod_reads.min(10)).min(BENEATH.1);
            self.pods_read_at = Some(now + pause);
        }
    }
}

impl LastHealth {
    pub(super) fn from_body(
        kind: &GroupKind,
        body: &Map<String, Value>,
        before: Option<Self>,
        of: &JudgementInputs<'_>,
        now: i64,
    ) -> Self {
        let mut context = of.context;
        if has_stayed_without_report(kind, body, &context, of.unix_millis) {
            context.reports = Reports::No;
        }
        let found = of.rules.evaluate(kind, body).unwrap_or_else(|| health(kind, body, &context));
        let (progress, cause) = before.map_or((None, None), |before| (before.progress, before.cause));
        let progress = Progress::update(progress, &found, now);
        let deadline = progress_timeout(kind, body, &context, of.timeout);
        let late = progress.as_ref().map(|progress| {
            let ends = progress.deadline_at(deadline);
            (ends, apply_deadline(kind, body, &context, found.clone(), Some(progress), ends, deadline))
        });
        let cause = cause.filter(|_| found.is_unhealthy());
        let failed =
            has_failed(kind, body) || of.runs_to_completion && matches!(found, Health::Degraded { .. });
        match late {
            // The deadline was over before this read, and still is.
            Some((ends, late)) if ends <= now => {
                Self { health: late, progress, at_deadline: None, cause, failed }
            }
            late => Self { health: found, progress, at_deadline: late, cause, failed },
        }
    }

    /// Health with the sentence about its Pods.
    pub(super) fn with_cause(&self) -> Health {
        let with = |why: &str| match &self.cause {
            Some(cause) => format!("{why}; {cause}"),
            None => why.to_owned(),
        };
        match &self.health {
            Health::Progressing { why } => Health::progressing(with(why)),
            Health::Degraded { why } => Health::degraded(with(why)),
            other => other.clone(),
        }
    }
}

impl Health {
    pub(super) fn is_unhealthy(&self) -> bool {
        matches!(self, Self::Progressing { .. } | Self::Degraded { .. })
    }
}

/// True for kinds whose Pods explain more than their own status.
fn has_pods(kind: &GroupKind) -> bool {
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
