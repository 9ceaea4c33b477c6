//! Metrics of the daemon in the text format of Prometheus.
//!
//! In: method calls from every part of the daemon.
//! Out: [`Metrics::render`]. There is no global registry: callers receive a [`Metrics`] handle, so
//! that two daemons in one process (in tests) count separately. The names are in `table.rs`. The
//! number of series is limited by the Syncs of the cluster and by `label_limit.rs`.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod former_names;
mod journal_lines;
mod label_limit;
mod process;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::label_limit::LabelLimiter;
pub use former_names::{FORMER_NAMES, FormerName};
pub use table::{MetricDef, MetricKind, TABLE};
use table::{REASON_LABEL, SYNC};

/// Media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Maximum number of field managers with a label value of their own.
const MAX_MANAGERS: usize = 50;
/// Maximum number of object kinds with a label value of their own.
const MAX_KINDS: usize = 200;

/// Purpose of a request to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestClass {
    /// Reads and writes of managed objects. None while no Sync changes.
    Object,
    /// Writes of a Sync's status. None while no Sync changes.
    Status,
    /// Requests for the Lease of the daemon.
    Lease,
    /// Watches and lists.
    Watch,
    /// Periodic applies in the background that verify objects.
    Verify,
}

impl RequestClass {
    /// Returns its label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Status => "status",
            Self::Lease => "lease",
            Self::Watch => "watch",
            Self::Verify => "verify",
        }
    }
}

impl fmt::Display for RequestClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Operation on a Git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOperation {
    /// Asks the server for the newest commit.
    Resolve,
    /// Fetches the objects of a commit.
    Fetch,
    /// Reads the files of a commit from the mirror.
    Read,
}

impl GitOperation {
    /// Returns the value of the label `operation`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Fetch => "fetch",
            Self::Read => "read",
        }
    }
}

/// A metric could not be registered: the table contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the metric {metric} cannot be registered: {cause}")]
pub struct MetricsError {
    metric: &'static str,
    cause: Box<str>,
}

/// Handle to the metrics of one daemon; clones share the counters.
///
/// `sync` is always `namespace/name`. Reasons, states, outcomes and verbs are constants of the
/// program; the number of names that others choose is limited.
#[derive(Clone)]
pub struct Metrics(Arc<Counters>);

struct Counters {
    registry: Registry,
    ready: IntGaugeVec,
    healthy: IntGaugeVec,
    revision: IntGaugeVec,
    /// The revision in the series of each Sync.
    shown: Mutex<HashMap<Box<str>, Box<str>>>,
    last_success: IntGaugeVec,
    commit_to_applied: HistogramVec,
    objects: IntGaugeVec,
    held_objects: IntGaugeVec,
    applied: IntCounterVec,
    drift_repaired: IntCounterVec,
    pruned: IntCounterVec,
    requests: IntCounterVec,
    object_seconds: HistogramVec,
    queue: IntGaugeVec,
    watch_relists: IntCounterVec,
    git_seconds: HistogramVec,
    git_errors: IntCounterVec,
    git_waiting: IntGaugeVec,
    journal: IntCounterVec,
    journal_failing: IntGaugeVec,
    notifications: IntCounterVec,
    leader: IntGaugeVec,
    managers: LabelLimiter,
    kinds: LabelLimiter,
}

impl Metrics {
    /// Creates the metrics with all counters at zero.
    pub fn new() -> Result<Self, MetricsError> {
        let new = RegistryBuilder(Registry::new());
        new.gauge(&table::BUILD)?.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        new.register(&table::CPU, process::ProcessCollector::new())?;
        let counters = Counters {
            ready: new.gauge(&table::READY)?,
            healthy: new.gauge(&table::HEALTHY)?,
            revision: new.gauge(&table::REVISION)?,
            shown: Mutex::default(),
            last_success: new.gauge(&table::LAST_SUCCESS)?,
            commit_to_applied: new.histogram(&table::COMMIT_TO_APPLIED)?,
            objects: new.gauge(&table::OBJECTS)?,
            held_objects: new.gauge(&table::HELD_OBJECTS)?,
            applied: new.counter(&table::APPLIED)?,
            drift_repaired: new.counter(&table::DRIFT_REPAIRED)?,
            pruned: new.counter(&table::PRUNED)?,
            requests: new.counter(&table::REQUESTS)?,
            object_seconds: new.histogram(&table::OBJECT_SECONDS)?,
            queue: new.gauge(&table::QUEUE)?,
            watch_relists: new.counter(&table::WATCH_RELISTS)?,
            git_seconds: new.histogram(&table::GIT_SECONDS)?,
            git_errors: new.counter(&table::GIT_ERRORS)?,
            git_waiting: new.gauge(&table::GIT_WAITING)?,
            journal: new.counter(&table::JOURNAL)?,
            journal_failing: new.gauge(&table::JOURNAL_FAILING)?,
            notifications: new.counter(&table::NOTIFICATIONS)?,
            leader: new.gauge(&table::LEADER)?,
            managers: LabelLimiter::new(MAX_MANAGERS),
            kinds: LabelLimiter::new(MAX_KINDS),
            registry: new.0,
        };
        let metrics = Self(Arc::new(counters));
        metrics.leader(false);
        metrics.git_waiting(0);
        metrics.journal_failing(false);
        drop(metrics.queue_write());
        Ok(metrics)
    }

    /// Counts a request that was answered with `code`, or without an answer (0). The verb is that
    /// of the API server's audit log.
    pub fn request(&self, class: RequestClass, verb: &str, code: u16) {
        let text = if code == 0 { "none".to_owned() } else { code.to_string() };
        self.0.requests.with_label_values(&[class.as_str(), verb, &text]).inc();
    }

    /// Records the duration of a request of class [`RequestClass::Object`]. The verb is `apply` for
    /// an apply of the object from Git, otherwise that of the audit log.
    pub fn object_request(&self, verb: &str, took: Duration) {
        self.0.object_seconds.with_label_values(&[verb]).observe(took.as_secs_f64());
    }

    /// Counts an action on an object, by outcome.
    pub fn applied(&self, sync: &str, outcome: &str) {
        self.0.applied.with_label_values(&[sync, outcome]).inc();
    }

    /// Counts a repair of an edit by `manager`; empty if no manager is recorded.
    pub fn drift_repaired(&self, sync: &str, manager: &str) {
        self.0.drift_repaired.with_label_values(&[sync, self.0.managers.label(manager)]).inc();
    }

    /// Counts an object that was deleted because Git no longer contains it.
    pub fn pruned(&self, sync: &str) {
        self.0.pruned.with_label_values(&[sync]).inc();
    }

    /// Sets the number of objects of a Sync that are in a state.
    pub fn objects(&self, sync: &str, state: &str, count: i64) {
        self.0.objects.with_label_values(&[sync, state]).set(count);
    }

    /// Sets the number of objects of a Sync that are held for a reason; at zero the series is
    /// removed.
    pub fn held_objects(&self, sync: &str, reason: &str, count: usize) {
        if count == 0 {
            // The series may be absent already.
            let _ = self.0.held_objects.remove_label_values(&[sync, reason]);
        } else {
            self.0.held_objects.with_label_values(&[sync, reason]).set(whole(count));
        }
    }

    /// Sets all holds of a Sync, by reason, and removes the series of other reasons.
    pub fn all_held_objects<'a>(&self, sync: &str, counts: impl IntoIterator<Item = (&'a str, usize)>) {
        let counts: HashMap<&str, usize> = counts.into_iter().collect();
        remove(&self.0.held_objects, |labels| {
            labels.get(SYNC) == Some(&sync)
                && labels.get(REASON_LABEL).is_some_and(|reason| !counts.contains_key(reason))
        });
        for (reason, count) in counts {
            self.held_objects(sync, reason, count);
        }
    }

    /// Sets the last commit that is applied completely, and removes the series of the previous one.
    pub fn revision(&self, sync: &str, revision: &str) {
        let mut shown = self.shown();
        match shown.get(sync) {
            // Every poll of the repository reports it again.
            Some(known) if **known == *revision => return,
            Some(known) => drop(self.0.revision.remove_label_values(&[sync, known])),
            None => {}
        }
        self.0.revision.with_label_values(&[sync, revision]).set(1);
        shown.insert(sync.into(), revision.into());
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<Box<str>, Box<str>>> {
        self.0.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the time between the poll that found a commit and the apply of its last object.
    pub fn commit_to_applied(&self, sync: &str, took: Duration) {
        self.0.commit_to_applied.with_label_values(&[sync]).observe(took.as_secs_f64());
    }

    /// Records an operation on a repository; `error` is the reason if it failed.
    pub fn git_operation(&self, operation: GitOperation, took: Duration, error: Option<&str>) {
        let operation = operation.as_str();
        self.0.git_seconds.with_label_values(&[operation]).observe(took.as_secs_f64());
        if let Some(reason) = error {
            self.0.git_errors.with_label_values(&[operation, reason]).inc();
        }
    }

    /// Sets the number of requests that wait for a Git worker.
    pub fn git_waiting(&self, count: usize) {
        self.0.git_waiting.with_label_values(NONE).set(whole(count));
    }

    /// Counts a write as queued until the guard is dropped.
    pub fn queue_write(&self) -> QueuedWrite {
        let depth = self.0.queue.with_label_values(NONE);
        depth.inc();
        QueuedWrite(depth)
    }

    /// Counts a watch that did not continue from its bookmark.
    pub fn watch_relisted(&self, group_kind: &str, reason: &str) {
        self.0.watch_relists.with_label_values(&[self.0.kinds.label(group_kind), reason]).inc();
    }

    /// Sets the last time at which a Sync was known to be ready and its repository to have nothing
    /// newer.
    pub fn last_success(&self, sync: &str, unix_seconds: i64) {
        self.0.last_success.with_label_values(&[sync]).set(unix_seconds);
    }

    /// Sets if a Sync is ready.
    pub fn ready(&self, sync: &str, ready: bool) {
        self.0.ready.with_label_values(&[sync]).set(i64::from(ready));
    }

    /// Sets if the objects of a Sync are healthy.
    pub fn healthy(&self, sync: &str, healthy: bool) {
        self.0.healthy.with_label_values(&[sync]).set(i64::from(healthy));
    }

    /// Sets if this process writes to the cluster.
    pub fn leader(&self, leader: bool) {
        self.0.leader.with_label_values(NONE).set(i64::from(leader));
    }

    /// Removes every series of a deleted Sync. Later counts would start new series, so this must be
    /// the last call for a Sync.
    pub fn remove_sync(&self, sync: &str) {
        let of_it = |labels: &HashMap<&str, &str>| labels.get(SYNC) == Some(&sync);
        if let Some(revision) = self.shown().remove(sync) {
            let _ = self.0.revision.remove_label_values(&[sync, &revision]);
        }
        for gauges in
            [&self.0.ready, &self.0.healthy, &self.0.last_success, &self.0.objects, &self.0.held_objects]
        {
            remove(gauges, of_it);
        }
        for counters in [&self.0.applied, &self.0.drift_repaired, &self.0.pruned] {
            remove(counters, of_it);
        }
        remove(&self.0.commit_to_applied, of_it);
    }

    /// Renders all metrics in the text format of Prometheus, with current figures of the process.
    pub fn render(&self) -> String {
        // The encoder fails only for metrics without a name or a value; the registry returns none.
        let mut families = self.0.registry.gather();
        families.extend(former_names::copies(&families));
        let text = TextEncoder::new().encode_to_string(&families);
        text.unwrap_or_else(|error| format!("# {error}\n"))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Counts one write as queued until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct QueuedWrite(IntGauge);

impl Drop for QueuedWrite {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Label values of a metric without labels.
const NONE: &[&str] = &[];

/// A registry while metrics are added.
struct RegistryBuilder(Registry);

impl RegistryBuilder {
    fn counter(&self, row: &'static MetricDef) -> Result<IntCounterVec, MetricsError> {
        self.register(row, IntCounterVec::new(Opts::new(row.name, row.help), row.labels))
    }

    fn gauge(&self, row: &'static MetricDef) -> Result<IntGaugeVec, MetricsError> {
        self.register(row, IntGaugeVec::new(Opts::new(row.name, row.help), row.labels))
    }

    fn histogram(&self, row: &'static MetricDef) -> Result<HistogramVec, MetricsError> {
        let options = HistogramOpts::new(row.name, row.help).buckets(row.bounds.to_vec());
        self.register(row, HistogramVec::new(options, row.labels))
    }

    fn register<C: Collector + Clone + 'static>(
        &self,
        row: &'static MetricDef,
        made: prometheus::Result<C>,
    ) -> Result<C, MetricsError> {
        let registered = made.and_then(|made| self.0.register(Box::new(made.clone())).map(|()| made));
        registered.map_err(|error| MetricsError { metric: row.name, cause: error.to_string().into() })
    }
}

/// Removes the series whose labels match.
fn remove<B: MetricVecBuilder>(series: &MetricVec<B>, goes: impl Fn(&HashMap<&str, &str>) -> bool) {
    for family in series.collect() {
        for metric in family.get_metric() {
            let labels: HashMap<&str, &str> =
                metric.get_label().iter().map(|label| (label.name(), label.value())).collect();
            if goes(&labels) {
                // Another call may have removed it already.
                let _ = series.remove(&labels);
            }
        }
    }
}

/// Converts a count to the library's number type.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
