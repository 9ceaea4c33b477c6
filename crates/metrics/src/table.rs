//! Table of all metrics: name, type, labels and meaning.
//!
//! In: nothing.
//! Out: [`TABLE`], which the registry is built from; a test compares it with `docs/metrics.md`.
//! Names and labels are an interface: alerts and dashboards of users depend on them.

use MetricKind::{Counter, Gauge, Histogram};

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises, from 0 at the start of the process.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts observations by size.
    Histogram,
}

impl MetricKind {
    /// Returns the type's name in the text format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Counter => "counter",
            Gauge => "gauge",
            Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricDef {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// Its labels, in the order in which values are passed.
    pub labels: &'static [&'static str],
    /// Description for users.
    pub help: &'static str,
    /// Upper bounds of a histogram's buckets.
    pub(super) bounds: &'static [f64],
}

const fn row(
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
    bounds: &'static [f64],
) -> MetricDef {
    MetricDef { name, kind, labels, help, bounds }
}

/// Label with the Sync as `namespace/name`. Series with it are removed when the Sync is deleted.
pub(super) const SYNC: &str = "sync";
/// Label of [`HELD_OBJECTS`] and others with a reason.
const REASON_LABEL: &str = "reason";

/// Buckets for a request to the API server or a repository, in seconds.
const CALL: &[f64] = &[0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Buckets from a commit to the cluster, in seconds: a Sync may wait for health between waves.
const ROLL_OUT: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0];

macro_rules! table {
    ($($name:ident: $kind:ident $metric:literal $labels:expr, $bounds:expr, $help:literal;)*) => {
        $(pub(super) const $name: MetricDef = row($metric, $kind, $labels, $help, $bounds);)*
        /// Every metric.
        pub const TABLE: &[MetricDef] = &[$($name),*];
    };
}

table! {
    BUILD: Gauge "moorline_build_info" &["version"], &[],
        "Always 1; the label is the version of this program.";
    READY: Gauge "moorline_ready" &[SYNC], &[],
        "1 if the Sync is ready, as its condition `Ready` says, else 0, also while it is suspended or cannot be checked.";
    HEALTHY: Gauge "moorline_healthy" &[SYNC], &[],
        "1 if every object of the Sync is healthy, as its condition `Healthy` says, else 0.";
    REVISION: Gauge "moorline_revision_info" &[SYNC, "revision"], &[],
        "Always 1; the label is the last commit of which every object was applied, as `status.revision.applied`.";
    LAST_SUCCESS: Gauge "moorline_last_success_timestamp_seconds" &[SYNC], &[],
        "When the Sync was last known to be ready and the repository to have nothing newer, in seconds since 1970; updated by every poll that confirms it.";
    COMMIT_TO_APPLIED: Histogram "moorline_commit_to_applied_seconds" &[SYNC], ROLL_OUT,
        "Time from the detection of a commit until all of its objects are applied, once for each commit that was not applied before.";
    OBJECTS: Gauge "moorline_objects" &[SYNC, "state"], &[],
        "Objects of the Sync, by state, as `status.objects`: `desired`, `applied`, `held`, `failed`, `drifted`, and `pruned` by the last reconcile that pruned any. An object may be in several.";
    HELD_OBJECTS: Gauge "moorline_held_objects" &[SYNC, REASON_LABEL], &[],
        "Objects that are held, by reason.";
    APPLIED: Counter "moorline_applied_total" &[SYNC, "outcome"], &[],
        "Objects that were acted on, by outcome.";
    DRIFT_REPAIRED: Counter "moorline_drift_repaired_total" &[SYNC, "manager"], &[],
        "Repairs of edits by others, by the field manager that made the edit; `unknown` where none is recorded, as for edits while no daemon was running, and `other` beyond the first 50 managers.";
    PRUNED: Counter "moorline_pruned_total" &[SYNC], &[],
        "Objects deleted because Git no longer contains them.";
    REQUESTS: Counter "moorline_requests_total" &["class", "verb", "code"], &[],
        "Requests to the API server, by the verb of its audit log (an apply is a `patch`). Classes: `object`, `status`, `lease`, `watch`, `verify`; the code is `none` where no answer came. Without changes, `object` and `status` do not rise.";
    OBJECT_SECONDS: Histogram "moorline_object_request_seconds" &["verb"], CALL,
        "Duration of requests of class `object`, until the response or the timeout. The verb is `apply` for applies of objects from Git, and `patch` for other patches, such as transfers of fields.";
    QUEUE: Gauge "moorline_queue_depth" &[], &[],
        "Queued writes.";
    WATCH_RELISTS: Counter "moorline_watch_relists_total" &["group_kind", REASON_LABEL], &[],
        "Watches that did not continue from their bookmark, by kind of object and cause.";
    GIT_SECONDS: Histogram "moorline_git_operation_seconds" &["operation"], CALL,
        "Duration of operations on repositories: `resolve` (the newest commit), `fetch` (its objects) and `read` (its files).";
    GIT_ERRORS: Counter "moorline_git_operation_errors_total" &["operation", REASON_LABEL], &[],
        "Failed operations on repositories, by reason.";
    GIT_WAITING: Gauge "moorline_git_waiting" &[], &[],
        "Requests to repositories and reads that wait for a Git worker; a number that does not fall means that servers do not respond, or that one namespace exceeds its share.";
    JOURNAL: Counter "moorline_journal_lines_total" &["result"], &[],
        "Lines of the journal: `written`; `lost` for changes that are not in it because nothing could be written for too long; `exported` to the OTLP collector, and `dropped` for lines that it did not take.";
    JOURNAL_FAILING: Gauge "moorline_journal_failing" &[], &[],
        "1 while the journal cannot be written, as on a full disk; changes queue meanwhile.";
    NOTIFICATIONS: Counter "moorline_notifications_total" &["result"], &[],
        "Notifications: `sent`; `given_up`, because the service did not take them for an hour or refused them; `dropped`, because too many waited.";
    LEADER: Gauge "moorline_leader" &[], &[],
        "1 in the process that writes to the cluster, 0 in a standby.";
    CPU: Counter "process_cpu_seconds_total" &[], &[],
        "CPU time used, in seconds.";
    MEMORY: Gauge "process_resident_memory_bytes" &[], &[],
        "Memory in use.";
    PEAK_MEMORY: Gauge "process_resident_memory_peak_bytes" &[], &[],
        "The most memory that was ever in use.";
    OPEN_FILES: Gauge "process_open_fds" &[], &[],
        "Open files and connections.";
    THREADS: Gauge "process_threads" &[], &[],
        "Threads.";
    START: Gauge "process_start_time_seconds" &[], &[],
        "When the process started, in seconds since 1970.";
}
