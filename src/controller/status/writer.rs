//! Writes the status of a Sync, and the Events that go with it.
//!
//! In: the recorded state, at each change. Out: writes, each after a pause, retried after failures.

use std::sync::Arc;
use std::time::Duration;

use super::change_summary::applied_note;
use super::event_queue::Note;
use super::events::{event, transition};
use super::log_lines::{LogSubject, Tone};
use super::{PATIENCE, StatusRecorder};
use crate::api::{Reason, SyncStatus};
use crate::clock;

/// Pause between two statuses of a Sync.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause before the next attempt to write Events when their namespace has used up its budget.
const CROWDED: Duration = Duration::from_secs(1);
/// First and longest back-off after a status that could not be written.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

impl StatusRecorder {
    /// Writes statuses until the worker of the Sync ends.
    ///
    /// # Guarantees
    ///
    /// A write carries the newest known resourceVersion and the uid of the Sync. The history of the
    /// status counts each change once: counts of a failed write are added to the next one.
    ///
    /// # Cancellation
    ///
    /// A write in progress may or may not reach the API server.
    pub(crate) async fn write(&self) {
        let mut retry = RETRY.0;
        loop {
            match self.pending() {
                // The state may not change for long; then the current one is reported.
                Some(patience) => drop(tokio::time::timeout(patience, self.0.changed.notified()).await),
                None => self.0.changed.notified().await,
            }
            self.0.context.cluster.terms().wait_until_leading().await;
            self.say_news().await;
            let Some((uid, next)) = self.next_status() else {
                self.say_queued().await;
                self.notify_waiters();
                continue;
            };
            let Ok(value) = serde_json::to_value(&*next) else { continue };
            tracing::trace!(sync = %self.0.name, status = %value, "written");
            // Before the write: the watch may report it sooner than the reply does.
            let (applied, event) = self.news(&next, &uid);
            let latest = self.lock().latest;
            match self.0.context.cluster.write_status(&self.0.name, &uid, latest, value).await {
                Ok(version) => {
                    self.on_status_written(version, next);
                    self.notify_waiters();
                    self.0.context.end_condition(&self.0.name, LogSubject::Status);
                    applied.into_iter().for_each(|note| self.lock().queue.add(note));
                    self.write_queued(&uid).await;
                    if let Some(event) = event {
                        self.say(event).await;
                    }
                    retry = RETRY.0;
                    drop(tokio::time::timeout(PAUSE, self.0.urgent.notified()).await);
                }
                Err(failure) => {
                    self.lock().uncounted.unfold();
                    let text = format!("the status could not be written: {failure}");
                    self.0.context.log_condition(
                        &self.0.name,
                        LogSubject::Status,
                        Tone::Warning,
                        "StatusUnwritable",
                        &text,
                    );
                    let pause = crate::cluster::jitter(retry);
                    drop(tokio::time::timeout(pause, self.0.urgent.notified()).await);
                    retry = (retry * 2).min(RETRY.1);
                    self.0.changed.notify_one();
                }
            }
        }
    }

    /// Returns the note about an applied revision, and the Event about a transition of the
    /// condition Ready.
    fn news(&self, next: &SyncStatus, uid: &str) -> (Option<Note>, Option<serde_json::Value>) {
        let state = self.lock();
        let applied = applied_note(&state.persisted_status, next);
        // One Event reports both that the revision is applied and that the Sync is ready.
        let is_told = |reason: &str| applied.is_some() && reason == Reason::Applied.to_string();
        let change = transition(&state.persisted_status, next).filter(|(_, reason, _)| !is_told(reason));
        let event = change.map(|(type_, reason, note)| event(&self.0.name, uid, type_, &reason, &note));
        (applied, event)
    }

    /// Writes queued Events while the status does not change, as after two repairs within one
    /// second.
    async fn say_queued(&self) {
        let uid = {
            let state = self.lock();
            if state.is_settling() {
                return;
            }
            state.uid.clone()
        };
        self.write_queued(&uid).await;
    }

    /// Writes queued Events, as far as the budget of the namespace allows.
    async fn write_queued(&self, uid: &str) {
        loop {
            let note = {
                let mut state = self.lock();
                let is_due = state.queue.due(clock::now()) == Some(Duration::ZERO);
                if !is_due || !self.0.context.events.take(&self.0.name.namespace) {
                    return;
                }
                state.queue.take(clock::now())
            };
            let Some(Note { reason, text }) = note else { return };
            self.send(event(&self.0.name, uid, "Normal", &reason, &text)).await;
        }
    }

    /// Writes the Events that do not depend on the status.
    async fn say_news(&self) {
        let (uid, news) = {
            let mut state = self.lock();
            (state.uid.clone(), std::mem::take(&mut state.news))
        };
        for (type_, reason, note) in news {
            self.say(event(&self.0.name, &uid, type_, &reason.to_string(), &note)).await;
        }
    }

    /// Writes an Event. A failed one is not retried: the status has the same information.
    async fn say(&self, event: serde_json::Value) {
        if self.0.context.events.take(&self.0.name.namespace) {
            self.send(event).await;
        }
    }

    async fn send(&self, event: serde_json::Value) {
        if let Err(failure) = self.0.context.cluster.write_event(event, &self.0.name.namespace).await {
            tracing::debug!(sync = %self.0.name, %failure, "an Event could not be written");
        }
    }

    fn on_status_written(&self, version: u64, status: Arc<SyncStatus>) {
        let mut state = self.lock();
        state.version = state.version.max(version);
        state.latest = state.latest.max(version);
        state.persisted_status = status;
        state.uncounted.stands();
    }

    /// Returns the time to wait for an event that completes the current state.
    fn pending(&self) -> Option<Duration> {
        let state = self.lock();
        let unread = state.unread.map(|until| until.saturating_duration_since(clock::now()));
        let is_pending = state.report.is_none() || state.pending.or(state.asked).is_some();
        let queued = state.queue.due(clock::now()).map(|due| due.max(CROWDED));
        unread.filter(|left| !left.is_zero()).or(is_pending.then_some(PATIENCE)).or(queued)
    }

    /// Completes the tasks that wait for recorded data, once the status has it.
    fn notify_waiters(&self) {
        let mut state = self.lock();
        if state.persisted_status.scope == state.scope
            && state.has_written_held()
            && state.has_written_last_hooks()
        {
            for done in state.waiting.drain(..) {
                let _ = done.send(());
            }
        }
    }
}
