//! What is known of one object whose status has to be read, and when that is done again.
//!
//! In: what was read of it, and the time. Out: its health, with the deadline by which it changes by itself.

use serde_json::{Map, Value};

use super::super::stall::{is_mute_for_good, patience};
use super::super::{Health, Progress, Reports, health, judge};
use super::Judgement;
use moorline_core::object::GroupKind;

/// From a change to the read: controllers answer to a change within a moment.
const SETTLE: i64 = 100;
/// Between two reads of one object.
pub(super) const PAUSE: i64 = 1_000;
/// Between two looks beneath a workload that is not well: the first, and the longest.
pub(super) const BENEATH: (i64, i64) = (2_000, 60_000);

#[derive(Debug)]
pub(super) struct Entry {
    /// When it has to be read.
    pub(super) due: Option<i64>,
    /// When what lies beneath it has to be read with it.
    pub(super) beneath: Option<i64>,
    /// How often that was done since it was well.
    pub(super) looks: u32,
    pub(super) read: i64,
    /// When its Sync wrote it last: a read from before says nothing.
    pub(super) written: i64,
    /// How often it could not be read, one time after the other.
    pub(super) failures: u32,
    /// How often it was not there when it was read, one time after the other.
    pub(super) misses: u32,
    /// It failed for good, and is gone since.
    pub(super) ended: bool,
    pub(super) known: Option<Known>,
}

#[derive(Debug)]
pub(super) struct Known {
    pub(super) shown: Health,
    pub(super) progress: Option<Progress>,
    /// What it comes to if nothing changes until then.
    pub(super) late: Option<(i64, Health)>,
    /// What lies beneath it.
    pub(super) cause: Option<String>,
    /// It has come to its end without success, as its own status says.
    pub(super) failed: bool,
}

/// Long before anything.
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

    /// When what lies beneath is read: with it the object is, which was read a moment ago perhaps.
    pub(super) fn looks_beneath(&self) -> Option<i64> {
        self.beneath.map(|at| at.max(self.read + PAUSE))
    }

    /// It is gone, and what is known of it will not change.
    pub(super) fn end(&mut self) {
        (self.due, self.beneath, self.ended) = (None, None, true);
        self.known.iter_mut().for_each(|known| known.late = None);
    }

    pub(super) fn is_due(&mut self, now: i64) {
        let due = (now + SETTLE).max(self.read + PAUSE);
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    /// Notes when to look beneath a workload that is not well.
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
            // It was too long before, and still is.
            Some((ends, late)) if ends <= now => Self { shown: late, progress, late: None, cause, failed },
            late => Self { shown: found, progress, late, cause, failed },
        }
    }

    /// The health with what lies beneath it.
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

/// The kinds whose Pods tell more than they do.
fn has_beneath(kind: &GroupKind) -> bool {
    let workloads = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];
    &*kind.group == "apps" && workloads.contains(&&*kind.kind)
        || &*kind.group == "batch" && &*kind.kind == "Job"
}

/// True for a Job or Pod whose status says that it has failed. One that takes too long, or that somebody's rule does not
/// like, may still come to a good end.
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
