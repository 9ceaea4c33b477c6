//! Writes the status of a Sync, and the Events that go with it.
//!
//! In: the recorded state, at each change. Out: writes, each after a pause, retried after failures.

use std::sync::Arc;
use std::time::Duration;

use super::change_summary::applied_note;
use super::event_queue::Note;
use super::events::{event, transition};
use super::log_lines::{LogSubject, Tone};
use super::notifications::{forget_written, late_list, offer_waiting, offered_again, owed_after};
use super::{MAX_DELAY, StatusRecorder};
use crate::api::{Reason, SyncStatus};
use crate::clock;

/// Pause between two statuses of a Sync.
const PAUSE: Duration = Duration::from_millis(100);
/// Shortest pause before Events that wait for their turn.
const CROWDED: Duration = Duration::from_secs(1);
/// First and longest back-off after a status that could not be written.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

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
pub(crate) async fn write_statuses(recorder: &StatusRecorder) {
    let mut retry = RETRY.0;
    loop {
        match pending(recorder) {
            // The state may not change for long; then the current one is reported.
            Some(wait) => drop(tokio::time::timeout(wait, changed(recorder)).await),
            None => changed(recorder).await,
        }
        recorder.0.reporting.cluster.terms().wait_until_leading().await;
        // Boxed: an idle Sync keeps no memory of a write.
        match Box::pin(write_next(recorder)).await {
            NextWrite::Nothing => {}
            NextWrite::Written => {
                retry = RETRY.0;
                drop(tokio::time::timeout(PAUSE, recorder.0.urgent.notified()).await);
            }
            NextWrite::Failed => {
                let pause = crate::cluster::jitter(retry);
                drop(tokio::time::timeout(pause, recorder.0.urgent.notified()).await);
                retry = (retry * 2).min(RETRY.1);
                recorder.0.changed.notify_one();
            }
        }
    }
}

/// End of an attempt to write the current status.
enum NextWrite {
    /// The API server has it already.
    Nothing,
    Written,
    Failed,
}

/// Writes the current status, and the Events that go with it.
async fn write_next(recorder: &StatusRecorder) -> NextWrite {
    say_news(recorder).await;
    let Some((uid, next)) = recorder.next_status() else {
        offer_waiting(recorder);
        say_queued(recorder).await;
        notify_waiters(recorder);
        return NextWrite::Nothing;
    };
    let Ok(value) = serde_json::to_value(&*next) else { return NextWrite::Nothing };
    tracing::debug!(target: "moorline_trace", sync = %recorder.0.name, status = %value, "written");
    // Before the write: the watch may report it sooner than the reply does.
    let (applied, event) = news(recorder, &next, &uid);
    let latest = recorder.lock().latest;
    match recorder.0.reporting.cluster.syncs().write_status(&recorder.0.name, &uid, latest, value).await {
        Ok(version) => {
            on_status_written(recorder, version, next);
            notify_waiters(recorder);
            offer_waiting(recorder);
            recorder.0.reporting.lines.end_condition(&recorder.0.name, LogSubject::Status);
            applied.into_iter().for_each(|note| recorder.lock().queue.add(note));
            write_queued(recorder, &uid).await;
            if let Some(event) = event {
                say(recorder, event).await;
            }
            NextWrite::Written
        }
        Err(failure) => {
            recorder.lock().uncounted.unfold();
            let text = format!("the status could not be written: {failure}");
            recorder.0.reporting.lines.log_condition(
                &recorder.0.name,
                LogSubject::Status,
                Tone::Warning,
                "StatusUnwritable",
                &text,
            );
            NextWrite::Failed
        }
    }
}

/// Waits for a change of the state, or for the first list of Notifiers.
async fn changed(recorder: &StatusRecorder) {
    tokio::select! {
        biased;
        () = recorder.0.changed.notified() => {}
        () = late_list(recorder) => {}
    }
}

/// Returns the note about an applied revision, and the Event about a transition of the
/// condition Ready.
fn news(
    recorder: &StatusRecorder,
    next: &SyncStatus,
    uid: &str,
) -> (Option<Note>, Option<serde_json::Value>) {
    let state = recorder.lock();
    let applied = applied_note(&state.persisted_status, next);
    // One Event reports both that the revision is applied and that the Sync is ready.
    let is_told = |reason: &str| applied.is_some() && Reason::parse(reason) == Some(Reason::Applied);
    let change = transition(&state.persisted_status, next).filter(|(_, reason, _)| !is_told(reason));
    let event = change.map(|(type_, reason, note)| event(&recorder.0.name, uid, type_, &reason, &note));
    (applied, event)
}

/// Writes queued Events while the status does not change, as after two repairs within one
/// second.
async fn say_queued(recorder: &StatusRecorder) {
    let uid = {
        let state = recorder.lock();
        if state.is_settling() {
            return;
        }
        state.uid.clone()
    };
    write_queued(recorder, &uid).await;
}

/// Writes queued Events, as far as the budget of the namespace allows.
async fn write_queued(recorder: &StatusRecorder, uid: &str) {
    loop {
        let note = {
            let (mut state, now) = (recorder.lock(), clock::now());
            let turn = || recorder.0.reporting.events.turn(&recorder.0.name.namespace);
            if state.queue.due(now) != Some(Duration::ZERO) || !state.queue.has_turn(now, turn) {
                return;
            }
            state.queue.take(now)
        };
        let Some(Note { reason, text }) = note else { return };
        send(recorder, event(&recorder.0.name, uid, "Normal", &reason, &text)).await;
    }
}

/// Writes the Events that do not depend on the status.
async fn say_news(recorder: &StatusRecorder) {
    let (uid, news) = {
        let mut state = recorder.lock();
        (state.uid.clone(), std::mem::take(&mut state.news))
    };
    for (type_, reason, note) in news {
        say(recorder, event(&recorder.0.name, &uid, type_, &reason.to_string(), &note)).await;
    }
}

/// Writes an Event. A failed one is not retried: the status has the same information.
async fn say(recorder: &StatusRecorder, event: serde_json::Value) {
    if recorder.0.reporting.events.take(&recorder.0.name.namespace) {
        send(recorder, event).await;
    }
}

async fn send(recorder: &StatusRecorder, event: serde_json::Value) {
    if let Err(failure) =
        recorder.0.reporting.cluster.syncs().write_event(event, &recorder.0.name.namespace).await
    {
        tracing::debug!(sync = %recorder.0.name, %failure, "an Event could not be written");
    }
}

fn on_status_written(recorder: &StatusRecorder, version: u64, status: Arc<SyncStatus>) {
    let mut state = recorder.lock();
    state.version = state.version.max(version);
    state.latest = state.latest.max(version);
    state.persisted_status = status;
    state.uncounted.on_written();
    forget_written(&mut state);
}

/// Returns the time to wait for an event that completes the current state.
fn pending(recorder: &StatusRecorder) -> Option<Duration> {
    let state = recorder.lock();
    let unread = state.unread.map(|until| until.saturating_duration_since(clock::now()));
    let is_pending = state.report.is_none() || state.pending.or(state.asked).is_some();
    let queued = state.queue.due(clock::now()).map(|due| due.max(CROWDED));
    unread.filter(|left| !left.is_zero()).or(is_pending.then_some(MAX_DELAY)).or([
        queued,
        offered_again(&state),
        owed_after(recorder, &state),
    ]
    .into_iter()
    .flatten()
    .min())
}

/// Completes the tasks that wait for recorded data, once the status has it.
fn notify_waiters(recorder: &StatusRecorder) {
    let mut state = recorder.lock();
    let has_target = state.target_uid.is_none() || state.persisted_status.target_uid == state.target_uid;
    if state.persisted_status.scope == state.scope
        && has_target
        && state.has_written_held()
        && state.has_written_last_hooks()
    {
        for done in state.waiting.drain(..) {
            let _ = done.send(());
        }
    }
}
