//! Metrics: what the daemon counts, and the text that Prometheus reads.
//!
//! In: calls from the stations, in their own words. Out: [`Metrics::render`]. There is no global registry: whoever
//! counts was handed a [`Metrics`], so that two daemons in one process (in tests) count apart. The names are in
//! `table.rs`; the number of series is bounded by the Syncs of the cluster and by `distinct.rs`.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod distinct;
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

use distinct::Distinct;
pub use table::{Kind, Row, TABLE};
use table::{REASON_LABEL, SYNC};

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The most field managers that are told apart.
const MAX_MANAGERS: usize = 50;
/// The most kinds of objects that are told apart.
const MAX_KINDS: usize = 200;

/// What a request to the API server is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Reads and writes of managed objects. None at rest.
    Object,
    /// Writes of a Sync's status. None at rest.
    Status,
    /// The lease of the daemon.
    Lease,
    /// Watches and lists.
    Watch,
    /// Applies in the background that make sure of what was applied.
    Verify,
}

impl Class {
    /// Its name in the metrics.
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

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The table of metrics contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the metric {metric} cannot be registered: {cause}")]
pub struct Error {
    metric: &'static str,
    cause: Box<str>,
}

/// A handle on the metrics of one daemon; clones count together.
///
/// `sync` is `namespace/name` throughout. Reasons, states, outcomes and verbs are words of the program; names that
/// others choose are bounded.
#[derive(Clone)]
pub struct Metrics(Arc<Counters>);

struct Counters {
    registry: Registry,
    ready: IntGaugeVec,
    healthy: IntGaugeVec,
    revision: IntGaugeVec,
    /// The revision that is shown of each Sync.
    shown: Mutex<HashMap<Box<str>, Box<str>>>,
    last_success: IntGaugeVec,
    commit_to_applied: HistogramVec,
    objects: IntGaugeVec,
    holds: IntGaugeVec,
    applied: IntCounterVec,
    drift_repaired: IntCounterVec,
    pruned: IntCounterVec,
    requests: IntCounterVec,
    object_seconds: HistogramVec,
    queue: IntGaugeVec,
    watch_restarted: IntCounterVec,
    git_seconds: HistogramVec,
    git_errors: IntCounterVec,
    git_waiting: IntGaugeVec,
    leader: IntGaugeVec,
    managers: Distinct,
    kinds: Distinct,
}

impl Metrics {
    /// Metrics that have counted nothing yet.
    pub fn new() -> Result<Self, Error> {
        let new = Registering(Registry::new());
        new.gauge(&table::BUILD)?.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        new.register(&table::CPU, process::Process::new())?;
        let counters = Counters {
            ready: new.gauge(&table::READY)?,
            healthy: new.gauge(&table::HEALTHY)?,
            revision: new.gauge(&table::REVISION)?,
            shown: Mutex::default(),
            last_success: new.gauge(&table::LAST_SUCCESS)?,
            commit_to_applied: new.histogram(&table::COMMIT_TO_APPLIED)?,
            objects: new.gauge(&table::OBJECTS)?,
            holds: new.gauge(&table::HOLDS)?,
            applied: new.counter(&table::APPLIED)?,
            drift_repaired: new.counter(&table::DRIFT_REPAIRED)?,
            pruned: new.counter(&table::PRUNED)?,
            requests: new.counter(&table::REQUESTS)?,
            object_seconds: new.histogram(&table::OBJECT_SECONDS)?,
            queue: new.gauge(&table::QUEUE)?,
            watch_restarted: new.counter(&table::WATCH_RESTARTED)?,
            git_seconds: new.histogram(&table::GIT_SECONDS)?,
            git_errors: new.counter(&table::GIT_ERRORS)?,
            git_waiting: new.gauge(&table::GIT_WAITING)?,
            leader: new.gauge(&table::LEADER)?,
            managers: Distinct::new(MAX_MANAGERS),
            kinds: Distinct::new(MAX_KINDS),
            registry: new.0,
        };
        let metrics = Self(Arc::new(counters));
        metrics.leader(false);
        metrics.git_waiting(0);
        drop(metrics.queued());
        Ok(metrics)
    }

    /// A request was answered with `code`, or with nothing (0). The verb is the one of the API server's audit log.
    pub fn request(&self, class: Class, verb: &str, code: u16) {
        let text = if code == 0 { "none".to_owned() } else { code.to_string() };
        self.0.requests.with_label_values(&[class.as_str(), verb, &text]).inc();
    }

    /// A request of the class [`Class::Object`] took so long. The verb is `apply` where an object was applied as Git
    /// has it, and else the one of the audit log.
    pub fn object_request(&self, verb: &str, took: Duration) {
        self.0.object_seconds.with_label_values(&[verb]).observe(took.as_secs_f64());
    }

    /// An object was acted on.
    pub fn applied(&self, sync: &str, outcome: &str) {
        self.0.applied.with_label_values(&[sync, outcome]).inc();
    }

    /// An edit by `manager` was repaired; an empty name is one that nobody recorded.
    pub fn drift_repaired(&self, sync: &str, manager: &str) {
        self.0.drift_repaired.with_label_values(&[sync, self.0.managers.label(manager)]).inc();
    }

    /// An object was deleted because Git has it no more.
    pub fn pruned(&self, sync: &str) {
        self.0.pruned.with_label_values(&[sync]).inc();
    }

    /// How many objects of a Sync are in a state now.
    pub fn objects(&self, sync: &str, state: &str, count: i64) {
        self.0.objects.with_label_values(&[sync, state]).set(count);
    }

    /// How many objects of a Sync are held for a reason now; the series of a reason goes with its last object.
    pub fn holds(&self, sync: &str, reason: &str, count: usize) {
        if count == 0 {
            // It is gone, or never was there.
            let _ = self.0.holds.remove_label_values(&[sync, reason]);
        } else {
            self.0.holds.with_label_values(&[sync, reason]).set(whole(count));
        }
    }

    /// All that a Sync holds now, by reason; what was held for other reasons is so no more.
    pub fn all_holds<'a>(&self, sync: &str, counts: impl IntoIterator<Item = (&'a str, usize)>) {
        let counts: HashMap<&str, usize> = counts.into_iter().collect();
        remove(&self.0.holds, |labels| {
            labels.get(SYNC) == Some(&sync)
                && labels.get(REASON_LABEL).is_some_and(|reason| !counts.contains_key(reason))
        });
        for (reason, count) in counts {
            self.holds(sync, reason, count);
        }
    }

    /// The last commit of which all is applied; the series of the one before goes.
    pub fn revision(&self, sync: &str, revision: &str) {
        let mut shown = self.shown();
        match shown.get(sync) {
            // It is said with every look at the repository.
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

    /// How long a commit took from being seen until all of its objects were applied.
    pub fn commit_to_applied(&self, sync: &str, took: Duration) {
        self.0.commit_to_applied.with_label_values(&[sync]).observe(took.as_secs_f64());
    }

    /// A repository was asked: `what` is `look`, `fetch` or `read`, `error` the reason why it failed.
    pub fn git(&self, what: &str, took: Duration, error: Option<&str>) {
        self.0.git_seconds.with_label_values(&[what]).observe(took.as_secs_f64());
        if let Some(reason) = error {
            self.0.git_errors.with_label_values(&[what, reason]).inc();
        }
    }

    /// How many wait for a worker that asks a repository or reads it.
    pub fn git_waiting(&self, count: usize) {
        self.0.git_waiting.with_label_values(NONE).set(whole(count));
    }

    /// One more write waits to be sent, until this is dropped.
    pub fn queued(&self) -> Queued {
        let depth = self.0.queue.with_label_values(NONE);
        depth.inc();
        Queued(depth)
    }

    /// A watch did not continue from its bookmark.
    pub fn watch_restarted(&self, group_kind: &str, why: &str) {
        self.0.watch_restarted.with_label_values(&[self.0.kinds.label(group_kind), why]).inc();
    }

    /// When a Sync was last known to be ready, and the repository to have nothing newer.
    pub fn last_success(&self, sync: &str, unix_seconds: i64) {
        self.0.last_success.with_label_values(&[sync]).set(unix_seconds);
    }

    /// Whether a Sync is ready.
    pub fn ready(&self, sync: &str, ready: bool) {
        self.0.ready.with_label_values(&[sync]).set(i64::from(ready));
    }

    /// Whether the objects of a Sync are healthy.
    pub fn healthy(&self, sync: &str, healthy: bool) {
        self.0.healthy.with_label_values(&[sync]).set(i64::from(healthy));
    }

    /// Whether this process writes to the cluster.
    pub fn leader(&self, leader: bool) {
        self.0.leader.with_label_values(NONE).set(i64::from(leader));
    }

    /// Removes every series of a Sync that is gone. What is counted for it afterwards begins anew, so this is
    /// the last call for a Sync.
    pub fn forget(&self, sync: &str) {
        let of_it = |labels: &HashMap<&str, &str>| labels.get(SYNC) == Some(&sync);
        if let Some(revision) = self.shown().remove(sync) {
            let _ = self.0.revision.remove_label_values(&[sync, &revision]);
        }
        for gauges in [&self.0.ready, &self.0.healthy, &self.0.last_success, &self.0.objects, &self.0.holds] {
            remove(gauges, of_it);
        }
        for counters in [&self.0.applied, &self.0.drift_repaired, &self.0.pruned] {
            remove(counters, of_it);
        }
        remove(&self.0.commit_to_applied, of_it);
    }

    /// All metrics in the text format of Prometheus, with figures of the process as they are now.
    pub fn render(&self) -> String {
        // The encoder fails for metrics without a name or a value, of which the registry gives out none.
        let text = TextEncoder::new().encode_to_string(&self.0.registry.gather());
        text.unwrap_or_else(|error| format!("# {error}\n"))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// A write that waits to be sent.
#[derive(Debug)]
#[must_use]
pub struct Queued(IntGauge);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The values of no labels.
const NONE: &[&str] = &[];

/// A registry that is being filled.
struct Registering(Registry);

impl Registering {
    fn counter(&self, row: &'static Row) -> Result<IntCounterVec, Error> {
        self.register(row, IntCounterVec::new(Opts::new(row.name, row.help), row.labels))
    }

    fn gauge(&self, row: &'static Row) -> Result<IntGaugeVec, Error> {
        self.register(row, IntGaugeVec::new(Opts::new(row.name, row.help), row.labels))
    }

    fn histogram(&self, row: &'static Row) -> Result<HistogramVec, Error> {
        let options = HistogramOpts::new(row.name, row.help).buckets(row.bounds.to_vec());
        self.register(row, HistogramVec::new(options, row.labels))
    }

    fn register<C: Collector + Clone + 'static>(
        &self,
        row: &'static Row,
        made: prometheus::Result<C>,
    ) -> Result<C, Error> {
        let registered = made.and_then(|made| self.0.register(Box::new(made.clone())).map(|()| made));
        registered.map_err(|error| Error { metric: row.name, cause: error.to_string().into() })
    }
}

/// Removes the series whose labels say so.
fn remove<B: MetricVecBuilder>(series: &MetricVec<B>, goes: impl Fn(&HashMap<&str, &str>) -> bool) {
    for family in series.collect() {
        for metric in family.get_metric() {
            let labels: HashMap<&str, &str> =
                metric.get_label().iter().map(|label| (label.name(), label.value())).collect();
            if goes(&labels) {
                // Another call may have removed it meanwhile.
                let _ = series.remove(&labels);
            }
        }
    }
}

/// A count as the library has numbers.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
