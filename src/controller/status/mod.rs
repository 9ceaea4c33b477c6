//! Status of one Sync: collects the events of its worker and writes them as `SyncStatus`.
//!
//! In: [`WorkerEvent`]s. Out: a status, written when it differs from the last one, and only once
//! there is something to report: events within a moment of each other are written together.

pub(crate) mod approvals;
pub(crate) mod board;
pub(crate) mod board_entry;
pub(crate) mod change_summary;
pub(crate) mod event_queue;
pub(crate) mod events;
pub(crate) mod lease_record;
pub(crate) mod log_lines;
pub(crate) mod metrics_and_logs;
pub(crate) mod notifications;
pub(crate) mod overrides;
pub(in crate::controller) mod ready_status;
pub(crate) mod reconcile_result;
mod recorded_state;
pub(crate) mod revision_change;
pub(crate) mod source_summary;
mod uncounted_changes;
pub(crate) mod worker_event;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::{Notify, oneshot};

use crate::api::{
    ApprovedRevision, EventReason, FinishedObject, HeldRevision, OverriddenRevision, Scope, SyncName,
    SyncStatus,
};
use crate::clock;
use crate::health::HealthSummary;
use crate::object::ObjectId;
use crate::plan::Outcome;
use crate::report::{
    CommitDescription, ReconcileError, ReconcileInputs, RolledBackRevision, SeenRevision, StatusInputs,
    status,
};
use crate::source::Revision;
use board_entry::{BoardEntry, post};
use event_queue::EventQueue;
use metrics_and_logs::Reporting;
use notifications::{Notifications, announce};
use reconcile_result::ReconcileResult;
use recorded_state::{Wrong, merge_changes, merge_result, merge_verified};
use uncounted_changes::Uncounted;
use worker_event::WorkerEvent;

/// Longest time for which a reconcile delays the status; a longer one is reported before it ends.
const MAX_DELAY: Duration = Duration::from_secs(3);

/// Handle to the status of one Sync; cheap to clone.
#[derive(Clone)]
pub(crate) struct StatusRecorder(Arc<Inner>);

struct Inner {
    name: SyncName,
    reporting: Arc<Reporting>,
    state: Mutex<StatusState>,
    changed: Notify,
    /// Notified when a task waits for a status before it writes to the cluster.
    urgent: Notify,
}

#[derive(Default)]
struct StatusState {
    uid: Box<str>,
    /// Time at which the Sync was first observed.
    since: Option<Instant>,
    generation: Option<i64>,
    suspended: bool,
    /// Reason why the newest spec is refused.
    refused: Option<ReconcileError>,
    /// A request is being reconciled, also if a newer spec is refused.
    is_followed: bool,
    /// Error of the last poll.
    source: Option<ReconcileError>,
    /// Reason why the newest revision is not accepted yet.
    waits: Option<ReconcileError>,
    seen: Option<SeenRevision>,
    request: Option<String>,
    report: Option<Box<ReconcileResult>>,
    /// The newest revision was rolled back, and another one is applied.
    rejected: Option<RolledBackRevision>,
    /// Health of the objects.
    health: Option<Box<HealthSummary>>,
    /// The Sync is ready only when they are healthy.
    waits_for_health: bool,
    /// Until then the status waits for the health of objects that were just written.
    unread: Option<Instant>,
    /// Since then a newer revision is being applied.
    pending: Option<Instant>,
    /// Since then the Sync differs from the one of the last reconcile.
    asked: Option<Instant>,
    /// Number of the current request; none while it is being determined.
    order: Option<u64>,
    /// The newest request, with the state of its Sync.
    ordered: Option<Ordered>,
    /// Time of the last change or repair. A reconcile that changes nothing may follow before the
    /// status is written.
    done: Option<Time>,
    /// Time at which the repository last had no newer revision than the one of the result.
    current: Option<Time>,
    /// Scope of the Sync, as far as this daemon knows it.
    scope: Option<Scope>,
    /// Id of the other cluster with the objects, once known.
    target_uid: Option<String>,
    /// The revision that last rendered completely.
    held: Option<HeldRevision>,
    /// The revisions that were approved, once one was.
    approved: Option<Vec<ApprovedRevision>>,
    /// The override of a closed window that was given last.
    overridden: Option<OverriddenRevision>,
    /// Hooks that have run for the deletion of the Sync.
    ran: Vec<FinishedObject>,
    waiting: Vec<oneshot::Sender<()>>,
    /// Events about revisions, repairs and prunes that are not written yet.
    queue: EventQueue,
    notifications: Notifications,
    /// Changes that no entry of the history counts yet.
    uncounted: Uncounted,
    /// The last commits with known author and subject.
    commits: Vec<CommitDescription>,
    /// Time that it took to apply a revision.
    took: Option<(Revision, Duration)>,
    /// Notes that appear in Events only: type, reason and note.
    news: Vec<(&'static str, EventReason, String)>,
    persisted_status: Arc<SyncStatus>,
    /// Data for the status page.
    posting: BoardEntry,
    /// The resourceVersion after our last write.
    version: u64,
    /// The newest resourceVersion that is known.
    latest: u64,
    /// The history of the server to which these versions belong.
    history: u64,
}

/// A request, with the state of the Sync that it was made for.
#[derive(Debug, PartialEq, Eq)]
struct Ordered {
    /// Number of the request.
    order: u64,
    /// Generation of the Sync, and the Sync to which it moves its objects: both decide on
    /// deletions.
    generation: Option<i64>,
    moves_to: Option<Box<str>>,
}

/// Usual time until the health of objects that were just written is known.
const MOMENT: Duration = Duration::from_millis(400);
/// Most Events that wait to be written.
const MAX_NEWS: usize = 5;

impl StatusRecorder {
    pub(crate) fn new(reporting: Arc<Reporting>, name: SyncName) -> Self {
        let posting = BoardEntry::new(reporting.board.is_read());
        let state = Mutex::new(StatusState { posting, ..StatusState::default() });
        Self(Arc::new(Inner { name, reporting, state, changed: Notify::new(), urgent: Notify::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, StatusState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the history of the server to which further versions belong. Our own writes may be lost
    /// in another history.
    pub(crate) fn in_history(&self, history: u64) {
        let mut state = self.lock();
        if state.history != history {
            (state.history, state.version, state.latest) = (history, 0, 0);
        }
    }

    /// Records the Sync as the API server has it now: its identity and its current status.
    pub(crate) fn observe_resource(
        &self,
        uid: &str,
        generation: Option<i64>,
        suspended: bool,
        version: u64,
        persisted: SyncStatus,
    ) {
        let mut state = self.lock();
        if *state.uid != *uid {
            let (since, history) = (Some(clock::now()), state.history);
            let posting = BoardEntry::new(self.0.reporting.board.is_read());
            let notifications = state.notifications.renewed();
            *state = StatusState {
                uid: uid.into(),
                since,
                history,
                posting,
                notifications,
                ..StatusState::default()
            };
            state.scope = persisted.scope.clone();
            state.target_uid = persisted.target_uid.clone();
        }
        let changed = state.generation != generation || state.suspended != suspended;
        if changed && !suspended && state.report.is_some() {
            // The last result may not be for the changed Sync.
            (state.asked, state.order) = (Some(clock::now()), None);
        }
        (state.generation, state.suspended) = (generation, suspended);
        // Our own write returns as a watch event; an older event must not make us write again.
        state.latest = state.latest.max(version);
        let foreign = version > state.version && *state.persisted_status != persisted;
        if foreign {
            state.persisted_status = Arc::new(persisted);
        }
        drop(state);
        if changed || foreign {
            self.0.changed.notify_one();
        }
    }

    /// Records the number of the newest request, and the Sync to which this one moves its objects.
    pub(crate) fn set_request(&self, order: u64, moves_to: Option<Box<str>>) {
        let mut state = self.lock();
        state.is_followed = true;
        state.order = Some(order);
        state.ordered = Some(Ordered { order, generation: state.generation, moves_to });
        // Nothing that the objects depend on has changed.
        let answered = state.report.as_ref().is_some_and(|report| report.spec_revision == order);
        let is_settled = answered && state.asked.take().is_some();
        drop(state);
        if is_settled {
            self.0.changed.notify_one();
        }
    }

    /// Records the reason why the spec is refused; none if it is accepted.
    pub(crate) fn refuse(&self, refused: Option<ReconcileError>) {
        let mut state = self.lock();
        let changed = state.refused != refused || refused.is_some() && state.asked.is_some();
        if refused.is_some() {
            state.asked = None;
        }
        state.refused = refused;
        drop(state);
        if changed {
            self.0.changed.notify_one();
        }
    }

    /// Records that no request is reconciled any more, so that the state of the objects is unknown.
    pub(crate) fn stop_reconciling(&self) {
        self.lock().is_followed = false;
    }

    /// True if this is the applied commit.
    pub(crate) fn has_applied(&self, revision: &Revision) -> bool {
        let state = self.lock();
        let applied = state.persisted_status.revision.as_ref().and_then(|revision| revision.applied.as_ref());
        applied == Some(&revision.to_string())
    }

    /// Records an event.
    pub(crate) fn record_event(&self, event: WorkerEvent) {
        self.0.reporting.count(&self.0.name, &event);
        match event {
            WorkerEvent::Polled { found: Ok(revision), source, request } => {
                let mut state = self.lock();
                state.source = None;
                let tag = revision.tag.map(|tag| tag.to_string());
                state.seen = Some(SeenRevision { revision: revision.to_string(), tag, source });
                if state.has_passed(&revision) {
                    state.current = Some(now());
                    state.request = request.or(state.request.take());
                } else {
                    // The reconcile that follows reports more in a moment.
                    state.pending = Some(clock::now());
                }
            }
            WorkerEvent::Polled { found: Err(reconcile_error), request, .. } => {
                let mut state = self.lock();
                state.source = Some(reconcile_error);
                state.request = request.or(state.request.take());
            }
            WorkerEvent::Reconciled(report) if report.stopped => {
                return merge_changes(&mut self.lock(), &report);
            }
            WorkerEvent::Reconciled(report) => merge_result(&mut self.lock(), report),
            WorkerEvent::HealthChanged(health, healths, waits) => {
                let mut state = self.lock();
                state.posting.healths(healths);
                let until = || clock::now() + MOMENT;
                state.unread = (health.unread > 0).then(|| state.unread.unwrap_or_else(until));
                (state.health, state.waits_for_health) = (Some(health), waits);
            }
            WorkerEvent::Waiting(waits) => {
                let mut state = self.lock();
                if state.waits == waits {
                    return;
                }
                // A reconcile that has nothing to wait for reports more in a moment; one that waits
                // does not.
                state.pending = waits.is_none().then(clock::now);
                state.waits = waits;
            }
            WorkerEvent::RolledBack(rejected) => {
                if !self.lock().reject(rejected) {
                    return;
                }
            }
            WorkerEvent::RevisionChanged(lineage) => {
                let mut state = self.lock();
                if !state.uid.is_empty() && state.news.len() < MAX_NEWS {
                    state.news.extend(lineage.news());
                }
            }
            WorkerEvent::Verified(id, outcome) => {
                if !merge_verified(&mut self.lock(), id, outcome) {
                    return;
                }
            }
        }
        self.changed();
    }

    fn changed(&self) {
        if self.lock().uid.is_empty() {
            // A run without a Sync resource: there is no status to write, and nothing to wait for.
            self.next_status();
        }
        self.0.changed.notify_one();
    }

    /// Returns the status to write, if it differs from the one that was written last.
    fn next_status(&self) -> Option<(Box<str>, Arc<SyncStatus>)> {
        let mut state = self.lock();
        // The new request may take long to determine or to reconcile.
        state.asked = state.asked.filter(|since| clock::since(*since) < MAX_DELAY);
        let report = state.report.as_deref();
        let Wrong { reconcile_error, of_revision, refused } = state.reconcile_error();
        let keeps = state.is_followed && report.is_some_and(|report| report.reconcile_error.is_none());
        let empty = BTreeMap::new();
        let outcomes: &BTreeMap<ObjectId, Outcome> = report.map_or(&empty, |report| &report.outcomes);
        let files = |id: &ObjectId| Some(report?.set.as_ref()?.get(id)?.origin.to_string());
        let grant = state.grant(&self.0.name);
        let pass = report.and_then(|report| {
            let revision = report.revision.as_ref()?;
            Some(ReconcileInputs {
                revision: revision.to_string(),
                tag: revision.tag.map(|tag| tag.to_string()),
                tree: report.tree.clone(),
                digest: report.digest.as_ref(),
                outcomes,
                files: &files,
                desired: report.desired,
                scope: state.scope.clone(),
                approval: report.approval.as_deref(),
                approved: report.approved.as_deref(),
                pending: report.pending,
                extra_fields: &report.added,
                finished: &report.finished,
                delete_hooks: &report.last_hooks,
                remarks: &report.remarks,
                isolation_warning: report.caution.as_deref(),
                retries: &report.tries,
                missing_permissions: &report.rights,
                grant_command: &grant,
                duration: state.took.as_ref().filter(|(of, _)| of == revision).map(|(_, took)| *took),
                changed_at: state.done.clone(),
            })
        });
        let speechless = pass.is_none() && reconcile_error.is_none() && !state.suspended;
        let says_more_soon = state.is_settling() || speechless && state.waits_for_words();
        if says_more_soon && !state.uid.is_empty() {
            return state.first_lines();
        }
        let facts = StatusInputs {
            outdated: state.is_behind(),
            generation: state.generation,
            suspended: state.suspended,
            error: reconcile_error.as_deref(),
            about_revision: of_revision,
            refused,
            keeps_objects: keeps,
            seen: state.seen.clone(),
            reconcile: pass,
            rejected: state.rejected.as_ref(),
            hold: report.and_then(|report| report.hold.as_ref()),
            health: state.health.as_deref(),
            waits_for_health: state.waits_for_health,
            commits: &state.commits,
            request: state.request.clone(),
            held_by: self.0.reporting.held_by.clone(),
            request_of_approval: report.and_then(|report| report.request_of_approval.as_deref()),
            held_by_window: report.and_then(|report| report.held_by_window.as_deref()),
            now: now(),
        };
        let next = status(&state.persisted_status, &facts);
        let mut next = state.completed(next);
        announce(self, &mut state, &mut next);
        // The page and the writer share one copy.
        let is_same = *state.persisted_status == next;
        let next = if is_same { state.persisted_status.clone() } else { Arc::new(next) };
        post(self, &mut state, &next);
        self.0.reporting.show(&self.0.name, &next, state.current.as_ref());
        state.differing(next)
    }
}

impl StatusState {
    /// Returns the status for the API server, if it differs from the last one. Without a Sync
    /// resource it counts as written at once.
    fn differing(&mut self, next: Arc<SyncStatus>) -> Option<(Box<str>, Arc<SyncStatus>)> {
        if self.uid.is_empty() {
            self.persisted_status = next;
            self.uncounted.on_written();
            return None;
        }
        (next != self.persisted_status).then(|| (self.uid.clone(), next))
    }

    /// True if more will be known in a moment.
    fn is_settling(&self) -> bool {
        let pending = self.pending.is_some_and(|since| clock::since(since) < MAX_DELAY);
        let unread = self.unread.is_some_and(|until| clock::now() < until);
        pending || self.asked.is_some() || unread
    }

    /// True if the last result is for an older commit or spec than the newest one.
    fn is_behind(&self) -> bool {
        let is_older =
            |report: &ReconcileResult| self.order != Some(report.spec_revision) || self.pending.is_some();
        !self.uid.is_empty() && self.report.as_deref().is_some_and(is_older)
    }
}

/// Returns the time in whole seconds, as Kubernetes writes it.
pub(super) fn now() -> Time {
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    Time(jiff::Timestamp::from_second(now.as_second()).unwrap_or(now))
}
