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
mod sync_series;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::label_limit::LabelLimiter;
pub use former_names::{FORMER_NAMES, FormerName};
use sync_series::SyncSeries;
pub use table::{MetricDef, MetricKind, TABLE};

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
    syncs: SyncSeries,
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
            syncs: new.register(&table::READY, SyncSeries::new())?,
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
        self.0.syncs.increment(&table::APPLIED, sync, outcome);
    }

    /// Counts a repair of an edit by `manager`; empty if no manager is recorded.
    pub fn drift_repaired(&self, sync: &str, manager: &str) {
        self.0.syncs.increment(&table::DRIFT_REPAIRED, sync, self.0.managers.label(manager));
    }

    /// Counts an object that was deleted because Git no longer contains it.
    pub fn pruned(&self, sync: &str) {
        self.0.syncs.increment(&table::PRUNED, sync, "");
    }

    /// Sets the number of objects of a Sync that are in a state.
    pub fn objects(&self, sync: &str, state: &str, count: i64) {
        self.0.syncs.set(&table::OBJECTS, sync, state, count);
    }

    /// Sets the number of objects of a Sync that are held for a reason; at zero the series is
    /// removed.
    pub fn held_objects(&self, sync: &str, reason: &str, count: usize) {
        if count == 0 {
            self.0.syncs.remove(&table::HELD_OBJECTS, sync, reason);
        } else {
            self.0.syncs.set(&table::HELD_OBJECTS, sync, reason, whole(count));
        }
    }

    /// Sets all holds of a Sync, by reason, and removes the series of other reasons.
    pub fn all_held_objects<'a>(&self, sync: &str, counts: impl IntoIterator<Item = (&'a str, usize)>) {
        let counts: HashMap<&str, usize> = counts.into_iter().collect();
        self.0.syncs.retain(&table::HELD_OBJECTS, sync, |reason| counts.contains_key(reason));
        for (reason, count) in counts {
            self.held_objects(sync, reason, count);
        }
    }

    /// Sets the last commit that is applied completely, and removes the series of the previous one.
    pub fn revision(&self, sync: &str, revision: &str) {
        self.0.syncs.retain(&table::REVISION, sync, |known| known == revision);
        self.0.syncs.set(&table::REVISION, sync, revision, 1);
    }

    /// Records the time between the poll that found a commit and the apply of its last object.
    pub fn commit_to_applied(&self, sync: &str, took: Duration) {
        self.0.syncs.observe(sync, took.as_secs_f64());
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
        self.0.syncs.set(&table::LAST_SUCCESS, sync, "", unix_seconds);
    }

    /// Sets if a Sync is ready.
    pub fn ready(&self, sync: &str, ready: bool) {
        self.0.syncs.set(&table::READY, sync, "", i64::from(ready));
    }

    /// Sets if the objects of a Sync are healthy.
    pub fn healthy(&self, sync: &str, healthy: bool) {
        self.0.syncs.set(&table::HEALTHY, sync, "", i64::from(healthy));
    }

    /// Sets if this process writes to the cluster.
    pub fn leader(&self, leader: bool) {
        self.0.leader.with_label_values(NONE).set(i64::from(leader));
    }

    /// Removes every series of a deleted Sync. Later counts would start new series, so this must be
    /// the last call for a Sync.
    pub fn remove_sync(&self, sync: &str) {
        self.0.syncs.remove_sync(sync);
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

/// Converts a count to the library's number type.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
