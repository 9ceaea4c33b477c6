//! Event loop of one Sync: turns the schedule's commands into futures, and their results into
//! events.
//!
//! In: the newest [`ReconcileRequest`] of the Sync. Out: [`WorkerEvent`]s for the status. At most
//! one poll and one reconcile of a Sync run at a time, side by side; while neither runs, objects
//! that were not verified since the start are verified one by one.

mod chart_poll;
mod chosen_revision;
mod depends_on;
mod health;
mod healthy_time;
mod held_revision;
mod mount_poll;
mod optional_future;
mod path_lag;
mod periodic_verification;
mod poll;
mod reconcile_run;
mod reconcile_task;
mod rollback;
mod server_lags;
mod signature_check;
mod yielding_attempt;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};

use super::memory::SyncMemory;
use super::memory::health_monitor::HealthMonitor;
use super::peers::latest_revisions::{RevisionChannel, TimedRevision};
use super::reconcile::remote_bases::TrackedBases;
use super::reconcile::request::{ReconcileRequest, are_other};
use super::schedule::{Schedule, ScheduleCommand, ScheduleEvent};
use super::spec::identity::login_owner;
use super::status::StatusRecorder;
use super::status::board_entry::set_source;
use super::status::overrides::labels;
use super::status::reconcile_result::UnhealthySnapshot;
use super::status::revision_change::RevisionChange;
use super::status::source_summary::source_of_spec;
use super::status::worker_event::WorkerEvent;
use super::{Context, chance};
use crate::api::SyncName;
use crate::clock;
use crate::cluster::remote::is_same_cluster;
use crate::cluster::{CancelFlag, Cluster};
use crate::object::ObjectId;
use crate::plan::{DriftMode, Outcome};
use crate::source::Revision;
use depends_on::{DependencyState, publish_applied};
use health::{
    ReportedHealth, backends_came, begin_reading, gate_has_moved, have_read, health_has_moved, next_read,
    reset_health,
};
use held_revision::{HeldState, reset_hold, retry_held};
use optional_future::{running, sleep_until};
use path_lag::PathLag;
use periodic_verification::{begin_verifying, distrusts_unproven, end_verifying, look_over, verified};
use poll::{FinishedPoll, on_peer_revision, on_polled, related, start_poll};
use reconcile_task::{FinishedReconcile, on_reconciled, start_reconcile};
use rollback::{RollbackState, forget_trials, should_roll_back};
use server_lags::Lags;
use yielding_attempt::RenderAttempts;

/// Interval of the check for objects that were not verified for long.
const LOOK_OVER: Duration = Duration::from_secs(60);

struct Reconciler {
    context: Arc<Context>,
    owner: SyncName,
    order: Arc<ReconcileRequest>,
    /// Handle to the status of the Sync, if it has a resource.
    resource_recorder: Option<StatusRecorder>,
    /// Recorder of all events, whether the Sync has a status or not.
    recorder: StatusRecorder,
    schedule: Schedule,
    revision: Option<Revision>,
    /// The revision that was accepted last, also while its signature has to be checked again.
    last_accepted: Option<Revision>,
    /// Time at which the revision was first observed, until it is applied; none if it was applied
    /// before.
    seen_at: Option<Instant>,
    /// State of the waits for dependencies.
    dependencies: DependencyState,
    /// No revision was observed since the start.
    is_first: bool,
    /// The previous revision, until its relation to this one is known.
    previous: Option<Revision>,
    /// Channel on which the Syncs of one source share its newest revision.
    head: Arc<RevisionChannel>,
    peer_revision: watch::Receiver<Option<TimedRevision>>,
    /// Remote bases that the revision names by URL.
    followed: TrackedBases,
    /// The next poll must ask the repository itself.
    force_poll: bool,
    /// The request that the last poll answered.
    answered: Option<String>,
    memory: Option<Box<SyncMemory>>,
    /// Counter of dropped caches at the last use of the memory.
    losses: u64,
    /// Notified when an object of the Sync changes in the cluster.
    changed_notify: Arc<Notify>,
    /// The cluster with previous identities, which work in progress may still use.
    retired_clusters: Vec<Cluster>,
    stop: CancelFlag,
    running_poll: Option<BoxFuture<'static, FinishedPoll>>,
    running_reconcile: Option<BoxFuture<'static, FinishedReconcile>>,
    /// The attempt to render a new commit, which yields to repairs.
    render_attempts: RenderAttempts,
    verifying: Option<BoxFuture<'static, (ObjectId, Option<Outcome>)>>,
    verify_stop: CancelFlag,
    history_request: Option<BoxFuture<'static, RevisionChange>>,
    /// Health of the objects.
    health_monitor: Arc<HealthMonitor>,
    /// Notified when the status of an object of the Sync may have changed.
    written_notify: Arc<Notify>,
    health_read: Option<BoxFuture<'static, ()>>,
    reported_health: ReportedHealth,
    /// Unhealthy and failed objects at the last reconcile, if something waited for them.
    unhealthy_gate: Option<UnhealthySnapshot>,
    /// The health may have changed since it was last compared.
    health_moved: bool,
    /// A person has requested that failed hooks run again.
    rerun_failed_hooks: bool,
    /// The healthy revisions, and the ones that were rolled back.
    rollback: RollbackState,
    /// The revision that was last applied completely.
    last_applied: Option<Revision>,
    /// The revision that is held while nothing newer can be applied.
    held: HeldState,
    /// The newer commit or spec that cannot be applied.
    refused: Option<Box<str>>,
    /// The next reconcile tries a refused commit again.
    retry_refused: bool,
    /// The next reconcile tries objects again that could not be applied.
    retry_failed: bool,
    /// The path may have been pushed after the newest revision was polled.
    path_lag: PathLag,
    /// Time limits for kinds that the API server does not serve yet.
    lags: Lags,
}

/// Serves a Sync until the daemon ends or the sender of requests is dropped.
pub(crate) async fn run_reconciler(
    context: Arc<Context>,
    owner: SyncName,
    mut orders: watch::Receiver<Arc<ReconcileRequest>>,
    resource_recorder: Option<StatusRecorder>,
) {
    let order = orders.borrow_and_update().clone();
    let schedule = Schedule::new(context.pauses().cluster);
    let head = context.sources.heads.channel(order.head());
    let changed_notify = order.cluster.changed_notify(&owner);
    let written_notify = order.cluster.written_notify(&owner);
    let of = (context.clone(), order.cluster.clone(), owner.clone(), order.valid_spec.health.clone());
    let health_monitor = Arc::new(HealthMonitor::new(of.0, of.1, of.2, of.3));
    let recorder = resource_recorder.clone().unwrap_or_else(|| {
        let resource_recorder = StatusRecorder::new(context.reporting.clone(), owner.clone());
        set_source(&resource_recorder, source_of_spec(&order.valid_spec));
        resource_recorder
    });
    let mut reconciler = Reconciler {
        context,
        owner,
        order,
        resource_recorder,
        recorder,
        schedule,
        revision: None,
        last_accepted: None,
        seen_at: None,
        dependencies: DependencyState::default(),
        is_first: true,
        previous: None,
        peer_revision: head.subscribe(),
        head,
        followed: TrackedBases::default(),
        force_poll: false,
        answered: None,
        memory: Some(Box::default()),
        losses: 0,
        changed_notify,
        retired_clusters: Vec::new(),
        stop: CancelFlag::default(),
        running_poll: None,
        running_reconcile: None,
        render_attempts: RenderAttempts::default(),
        verifying: None,
        verify_stop: CancelFlag::default(),
        history_request: None,
        health_monitor,
        written_notify,
        health_read: None,
        reported_health: ReportedHealth::default(),
        unhealthy_gate: None,
        health_moved: false,
        rerun_failed_hooks: false,
        rollback: RollbackState::default(),
        last_applied: None,
        held: HeldState::default(),
        refused: None,
        retry_refused: false,
        retry_failed: false,
        path_lag: PathLag::default(),
        lags: Lags::default(),
    };
    reconciler.run(&mut orders).await;
}

impl Reconciler {
    async fn run(&mut self, orders: &mut watch::Receiver<Arc<ReconcileRequest>>) {
        let context = self.context.clone();
        let mut ending = context.process.ending.clone();
        let wakeups = context.peers.wakeups(&self.owner);
        let dependency_notify = context.peers.dependency_notify(&self.owner);
        let event = self.spec_event();
        self.step(event);
        let mut checks = tokio::time::interval(LOOK_OVER);
        let (mut term, mut windows) = (context.cluster.terms().subscribe(), context.windows.subscribe());
        loop {
            begin_verifying(self);
            begin_reading(self);
            if health_has_moved(self)
                && (backends_came(self) || should_roll_back(self) || gate_has_moved(self))
            {
                self.step(ScheduleEvent::ObjectsChanged);
            }
            let hurries = self.render_attempts.next();
            let next = self.schedule.next().into_iter().chain(next_read(self)).chain(hurries).min();
            let next = next.map(|due| context.process.instant(due));
            let event = tokio::select! {
                changed = orders.changed() => match changed {
                    Ok(()) => self.on_request(orders.borrow_and_update().clone()),
                    Err(_) => break,
                },
                _ = ending.wait_for(|ending| *ending) => break,
                polled = running(&mut self.running_poll) => on_polled(self, polled),
                done = running(&mut self.running_reconcile) => on_reconciled(self, done),
                (id, outcome) = running(&mut self.verifying) => match verified(self, id, outcome) {
                    Some(event) => event,
                    None => continue,
                },
                change = running(&mut self.history_request) => {
                    related(self, change);
                    continue;
                }
                () = running(&mut self.health_read) => {
                    have_read(self);
                    continue;
                }
                () = self.written_notify.notified() => {
                    self.health_monitor.process_written();
                    self.health_moved = true;
                    continue;
                }
                () = self.changed_notify.notified() => ScheduleEvent::ObjectsChanged,
                () = wakeups.again.notified() => ScheduleEvent::ObjectsChanged,
                () = self.dependencies.called(&dependency_notify) => ScheduleEvent::ObjectsChanged,
                () = wakeups.look.notified() => ScheduleEvent::PollRequested,
                () = wakeups.called.notified() => {
                    self.force_poll = true;
                    ScheduleEvent::PollRequested
                }
                _ = self.peer_revision.changed() => match on_peer_revision(self) {
                    Some(event) => event,
                    None => continue,
                },
                _ = checks.tick() => match look_over(self) {
                    Some(event) => event,
                    None => continue,
                },
                () = windows.called(&self.owner, || labels(&self.recorder)), if self.held.by_window => retry_held(self),
                Ok(()) = term.changed() => {
                    self.verify_stop.cancel();
                    ScheduleEvent::TermBegan
                }
                () = sleep_until(next) => ScheduleEvent::TimerFired,
            };
            self.step(event);
        }
        Box::pin(self.end()).await;
    }

    /// Waits for work in progress; nothing new begins.
    async fn end(&mut self) {
        self.stop.cancel();
        end_verifying(self).await;
        if let Some(passing) = self.running_reconcile.take() {
            // Longer work is dropped, as when the process is killed; every write survives that.
            let _ = tokio::time::timeout(self.context.process.grace, passing).await;
        }
        self.drop_old_identities();
        self.order.cluster.release_watches(&self.owner);
    }

    fn spec_event(&mut self) -> ScheduleEvent {
        reset_hold(self);
        let valid_spec = &self.order.valid_spec;
        let known = self.revision.is_some() || self.order.refused.is_some();
        self.context.peers.invalidate(&self.owner);
        self.context.peers.set_dependencies(&self.owner, &valid_spec.depends_on);
        ScheduleEvent::SpecChanged { suspended: valid_spec.suspend, interval: valid_spec.interval, known }
    }

    fn on_request(&mut self, order: Arc<ReconcileRequest>) -> ScheduleEvent {
        let changed = order.spec_revision != self.order.spec_revision;
        let (old, new) = (&self.order.valid_spec.clone(), &order.valid_spec);
        let elsewhere = (&old.address, &old.reference, login_owner(old, &self.owner.namespace))
            != (&new.address, &new.reference, login_owner(new, &self.owner.namespace));
        if elsewhere {
            self.last_applied = None;
            publish_applied(self);
        }
        let other_ref = (&old.address, &old.reference) != (&new.address, &new.reference);
        let other_source = other_ref || old.path != new.path;
        // The commit with the new path may have been pushed after the last poll.
        if old.path != new.path {
            self.path_lag.begin(clock::now());
        }
        if other_ref {
            self.last_accepted = None;
        }
        let other_chart = chart_poll::forget_other(&mut self.last_accepted, old, new);
        let other_mounts = are_other(&self.order.mounts, &order.mounts);
        mount_poll::forget_other(&mut self.last_accepted, old, new);
        let others_sign = (&old.verify, &self.order.keys) != (&new.verify, &order.keys)
            || (&old.chart_verify, &self.order.chart_keys) != (&new.chart_verify, &order.chart_keys);
        let lost = elsewhere || other_chart || other_mounts || others_sign;
        if lost {
            (self.revision, self.previous, self.history_request) = (None, None, None);
            self.dependencies.past = None;
            self.running_poll = None;
        }
        // Health that changed while no status was read is unknown.
        let judges_anew = old.health != new.health || old.suspend && !new.suspend;
        let other_eyes = old.service_account != new.service_account
            || !is_same_cluster(&self.order.cluster, &order.cluster);
        let repairs_anew = old.drift != new.drift && new.drift == DriftMode::Repair;
        let last = std::mem::replace(&mut self.order, order).cluster.clone();
        if other_source || other_chart || other_mounts {
            forget_trials(self);
        }
        self.retired_clusters.extend(other_eyes.then_some(last));
        if judges_anew {
            reset_health(self);
        }
        if repairs_anew {
            distrusts_unproven(self);
        }
        if self.running_reconcile.is_none() {
            self.drop_old_identities();
        }
        self.force_poll = true;
        self.head = self.context.sources.heads.channel(self.order.head());
        self.peer_revision = self.head.subscribe();
        if !changed && !lost {
            return ScheduleEvent::PollRequested;
        }
        self.stop.cancel();
        self.spec_event()
    }

    /// After a change of the ServiceAccount: drops the watches of the previous identity once no
    /// reconcile uses them.
    fn drop_old_identities(&mut self) {
        if self.retired_clusters.is_empty() {
            return;
        }
        self.retired_clusters.drain(..).for_each(|cluster| cluster.release_watches(&self.owner));
        self.changed_notify = self.order.cluster.changed_notify(&self.owner);
        self.memory = Some(Box::default());
        reset_health(self);
    }

    fn step(&mut self, event: ScheduleEvent) {
        self.schedule.set_backoff(self.context.pauses().cluster);
        let now = self.context.now();
        match event {
            ScheduleEvent::ObjectsChanged => self.render_attempts.call(now),
            _ => self.render_attempts.look(now),
        }
        for command in self.schedule.step(event, now, chance()) {
            match command {
                ScheduleCommand::Poll => start_poll(self),
                ScheduleCommand::Reconcile => start_reconcile(self),
                ScheduleCommand::Stop => self.stop.cancel(),
            }
        }
    }

    fn record_event(&self, event: WorkerEvent) {
        self.recorder.record_event(event);
    }
}
