//! Reads the statuses of the objects, and reports their health.
//!
//! In: writes that were observed in the cluster. Out: reads, a few at a time; and the health,
//! reported at once when its verdict changes, and at intervals while only its messages change.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt as _;

use super::super::schedule::Uptime;
use super::Reconciler;
use super::depends_on::publish_applied;
use super::rollback::note_health;
use crate::controller::memory::health_monitor::HealthMonitor;
use crate::controller::reconcile::webhook_backends::retry_behind;
use crate::controller::status::events::was_written;
use crate::controller::status::reconcile_result::ReconcileResult;
use crate::controller::status::worker_event::WorkerEvent;
use crate::health::HealthSummary;

/// Delay of reads while a reconcile writes. Writes come first, but not without limit.
const BEHIND: Duration = Duration::from_secs(10);
/// Pause between two reports with the same verdict and other messages: a rollout counts its Pods
/// one by one.
const WORDS: Duration = Duration::from_secs(5);

/// Limit for an object that alternates between healthy and unhealthy: so many reports of a new
/// verdict in this time.
const MANY: (usize, Duration) = (10, Duration::from_secs(60));

/// Health that was last reported.
#[derive(Default)]
pub(super) struct ReportedHealth {
    summary: Option<HealthSummary>,
    at: Uptime,
    /// Times of the last reports with a new verdict.
    words: VecDeque<Uptime>,
    /// Time of the next report, if other messages wait for it.
    again: Option<Uptime>,
}

pub(super) fn new_vitals(worker: &Reconciler) -> Arc<HealthMonitor> {
    let (context, cluster) = (worker.context.clone(), worker.order.cluster.clone());
    Arc::new(HealthMonitor::new(
        context,
        cluster,
        worker.owner.clone(),
        worker.order.valid_spec.health.clone(),
    ))
}

/// Forgets the health: it was read with another identity, or with other health rules.
pub(super) fn reset_health(worker: &mut Reconciler) {
    worker.health_monitor = new_vitals(worker);
    worker.written_notify = worker.order.cluster.written_notify(&worker.owner);
    worker.health_read = None;
    worker.reported_health = ReportedHealth::default();
}

/// Returns the time of the next read or report, if no event comes before it.
pub(super) fn next_read(worker: &Reconciler) -> Option<Uptime> {
    next_due(worker).into_iter().chain(worker.reported_health.again).min()
}

fn next_due(worker: &Reconciler) -> Option<Uptime> {
    let behind = if worker.running_reconcile.is_some() { BEHIND } else { Duration::ZERO };
    let is_idle = worker.health_read.is_none() && !worker.order.valid_spec.suspend;
    let due = if is_idle { worker.health_monitor.next() } else { None };
    due.map(|due| Duration::from_millis(u64::try_from(due).unwrap_or_default()) + behind)
}

/// Reads statuses that are due, and reports health that changes by time alone.
pub(super) fn begin_reading(worker: &mut Reconciler) {
    let now = worker.context.now();
    if next_read(worker).is_none_or(|due| due > now) {
        return;
    }
    if next_due(worker).is_some_and(|due| due <= now) {
        let due = worker.health_monitor.due();
        if due != crate::health::DueReads::default() {
            worker.health_read = Some(worker.health_monitor.clone().read(due).boxed());
            return;
        }
    }
    tell_health(worker);
}

pub(super) fn have_read(worker: &mut Reconciler) {
    worker.health_read = None;
    tell_health(worker);
}

/// Records the writes of a reconcile. Runs before the result is reported, so that the old
/// health is not taken for that of the new revision.
pub(super) fn examine(worker: &mut Reconciler, report: &mut ReconcileResult) {
    if let Some(set) = &report.set {
        let written = report.outcomes.iter().filter(|(_, outcome)| was_written(outcome)).map(|(id, _)| id);
        worker.health_monitor.wants(set, written);
        worker.health_monitor.ends(&mut report.finished);
    }
    worker.health_monitor.process_written();
    tell_health(worker);
}

pub(super) fn tell_health(worker: &mut Reconciler) {
    worker.health_moved = true;
    let was_delayed = worker.reported_health.again.take().is_some();
    let (Some(summary), now) = (worker.health_monitor.summary(), worker.context.now()) else { return };
    let is_reported = worker.reported_health.summary.as_ref() == Some(&summary);
    if !is_reported || was_delayed {
        // Syncs that depend on this one follow its actual health, not the reported one.
        publish_applied(worker);
    }
    if is_reported {
        return;
    }
    note_health(worker);
    if let Some(again) = worker.reported_health.waits(&summary, now) {
        worker.reported_health.again = Some(again);
        return;
    }
    let healths = if worker.context.reporting.board.is_read() {
        worker.health_monitor.healths()
    } else {
        Arc::default()
    };
    worker.record_event(WorkerEvent::HealthChanged(
        Box::new(summary.clone()),
        healths,
        worker.order.valid_spec.health.wait,
    ));
    worker.reported_health.record(summary, now);
}

/// True once after the health may have changed, while no reconcile runs.
pub(super) fn health_has_moved(worker: &mut Reconciler) -> bool {
    worker.running_reconcile.is_none() && std::mem::take(&mut worker.health_moved)
}

/// True if something waits until objects are healthy, and the set of unhealthy ones differs
/// from that at the last reconcile.
pub(super) fn gate_has_moved(worker: &mut Reconciler) -> bool {
    let Some(gate) = &mut worker.unhealthy_gate else { return false };
    let unwell = worker.health_monitor.unwell();
    let moved = *gate != unwell;
    *gate = unwell;
    moved
}

/// True if objects wait for webhooks, and a backend of one has become ready since the last
/// call.
pub(super) fn backends_came(worker: &mut Reconciler) -> bool {
    let ready = worker.health_monitor.ready_now();
    !ready.is_empty() && worker.memory.as_mut().is_some_and(|memory| retry_behind(memory, &ready))
}

/// True if the objects are healthy, or the Sync does not wait for that.
pub(super) fn is_well(worker: &Reconciler, summary: Option<&HealthSummary>) -> bool {
    !worker.order.valid_spec.health.wait || summary.is_some_and(HealthSummary::is_healthy)
}

impl ReportedHealth {
    fn is_as(&self, summary: &HealthSummary) -> bool {
        self.summary.as_ref().is_some_and(|reported| reported.has_same_states(summary))
    }

    /// Returns the time until which this report is delayed, if it is. A worse verdict is never
    /// delayed, nor the first one after a write.
    fn waits(&self, summary: &HealthSummary, now: Uptime) -> Option<Uptime> {
        let reported = self.summary.as_ref()?;
        let again = match self.is_as(summary) {
            true => self.at + WORDS,
            false if !reported.is_known() || !summary.is_known() || rank(summary) > rank(reported) => {
                return None;
            }
            false if self.words.len() < MANY.0 => return None,
            false => *self.words.front()? + MANY.1,
        };
        (now < again).then_some(again)
    }

    fn record(&mut self, summary: HealthSummary, now: Uptime) {
        let is_known = summary.is_known() && self.summary.as_ref().is_some_and(HealthSummary::is_known);
        if is_known && !self.is_as(&summary) {
            self.words.push_back(now);
            self.words.drain(..self.words.len().saturating_sub(MANY.0));
        }
        (self.summary, self.at) = (Some(summary), now);
    }
}

/// Severity of a summary.
fn rank(summary: &HealthSummary) -> u8 {
    match (summary.degraded, summary.unknown, summary.progressing) {
        (1.., _, _) => 3,
        (0, 1.., _) => 2,
        (0, 0, 1..) => 1,
        (0, 0, 0) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the reports in two minutes on an object that changes between healthy and unhealthy
    /// each second.
    #[test]
    fn an_object_whose_health_alternates_is_reported_less_often() {
        let at = |second| Duration::from_secs(second);
        let is = |unwell: bool| HealthSummary {
            objects: 1,
            degraded: usize::from(unwell),
            ..HealthSummary::default()
        };
        let mut reported = ReportedHealth::default();
        let mut times = Vec::new();
        for second in 0..120 {
            let summary = is(second % 2 == 1);
            if reported.summary.as_ref() != Some(&summary) && reported.waits(&summary, at(second)).is_none() {
                reported.record(summary, at(second));
                times.push(second);
            }
        }
        assert_eq!(times[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert!(times.len() < 30, "{times:?}");
        // A worse state is reported at once, a better one some time later.
        let worse = HealthSummary { objects: 1, unknown: 1, ..HealthSummary::default() };
        reported.record(worse, at(119));
        assert_eq!(reported.waits(&is(true), at(119)), None);
        assert!(reported.waits(&is(false), at(119)).is_some_and(|again| again <= at(179)));
        // An object that was just written never counts as healthy.
        let unread = HealthSummary { objects: 1, unread: 1, ..HealthSummary::default() };
        assert_eq!(reported.waits(&unread, at(119)), None);
        reported.record(unread, at(119));
        assert_eq!(reported.waits(&is(false), at(119)), None, "and is reported as soon as it was read");
    }

    #[test]
    fn a_new_message_of_the_same_health_is_reported_from_time_to_time() {
        let at = |second| Duration::from_secs(second);
        let is = |progressing| HealthSummary { objects: 9, progressing, ..HealthSummary::default() };
        let mut reported = ReportedHealth::default();
        reported.record(is(9), at(10));
        assert_eq!(reported.waits(&is(8), at(11)), Some(at(15)));
        assert_eq!(reported.waits(&is(8), at(15)), None);
        assert_eq!(reported.waits(&is(0), at(11)), None, "another state is reported at once");
    }
}
