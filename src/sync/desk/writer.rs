//! Writes what a desk has to say: statuses, and the Events beside them.
//!
//! In: what is known, as it changes. Out: writes, each after a pause, and tried again where they fail.

use std::sync::Arc;
use std::time::Duration;

use super::super::event::{event, news};
use super::super::log_lines::{About, Tone};
use super::{Desk, PATIENCE};
use crate::api::SyncStatus;
use crate::clock;

/// Between two statuses of a Sync.
const PAUSE: Duration = Duration::from_millis(100);
/// After a status that could not be written: the first pause, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

impl Desk {
    /// Writes statuses as long as it is polled.
    pub(crate) async fn write(&self) {
        let mut retry = RETRY.0;
        loop {
            match self.pending() {
                // Nothing may happen for long; then that is what is told.
                Some(patience) => drop(tokio::time::timeout(patience, self.0.changed.notified()).await),
                None => self.0.changed.notified().await,
            }
            self.0.context.cluster.terms().held().await;
            self.say_news().await;
            let Some((uid, next)) = self.next() else {
                self.say_repairs().await;
                self.served();
                continue;
            };
            let Ok(value) = serde_json::to_value(&*next) else { continue };
            tracing::trace!(sync = %self.0.name, status = %value, "written");
            // Before it is written: the watch may tell of the write sooner than its reply does.
            let events = self.transition(&next, &uid);
            let latest = self.lock().latest;
            match self.0.context.cluster.write_status(&self.0.name, &uid, latest, value).await {
                Ok(version) => {
                    self.stands(version, next);
                    self.served();
                    self.0.context.is_over(&self.0.name, About::Status);
                    for event in events {
                        self.say(event).await;
                    }
                    retry = RETRY.0;
                    drop(tokio::time::timeout(PAUSE, self.0.urgent.notified()).await);
                }
                Err(failure) => {
                    let text = format!("the status could not be written: {failure}");
                    self.0.context.says(
                        &self.0.name,
                        About::Status,
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

    /// The Kubernetes Events about repairs, and about a change of whether the Sync is ready, or why not.
    fn transition(&self, next: &SyncStatus, uid: &str) -> Vec<serde_json::Value> {
        let mut state = self.lock();
        let repaired = std::mem::take(&mut state.repaired);
        let told = news(&state.written, next, &repaired).into_iter();
        told.map(|(type_, reason, note)| event(&self.0.name, uid, type_, &reason, &note)).collect()
    }

    /// Writes the Event about repairs that change nothing in the status, as when two of them are within one second.
    async fn say_repairs(&self) {
        let (uid, said, repaired) = {
            let mut state = self.lock();
            if state.says_more_soon() {
                return;
            }
            (state.uid.clone(), state.written.clone(), std::mem::take(&mut state.repaired))
        };
        for (type_, reason, note) in news(&said, &said, &repaired) {
            self.say(event(&self.0.name, &uid, type_, &reason, &note)).await;
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

    /// Writes an Event. One that cannot be written is not worth another attempt: the status says the same.
    async fn say(&self, event: serde_json::Value) {
        if !self.0.context.events.take() {
            return;
        }
        if let Err(failure) = self.0.context.cluster.write_event(event, &self.0.name.namespace).await {
            tracing::debug!(sync = %self.0.name, %failure, "an Event could not be written");
        }
    }

    fn stands(&self, version: u64, status: Arc<SyncStatus>) {
        let mut state = self.lock();
        state.version = state.version.max(version);
        state.latest = state.latest.max(version);
        state.written = status;
    }

    /// How long to wait for something that will say more than is known now.
    fn pending(&self) -> Option<Duration> {
        let state = self.lock();
        let unread = state.unread.map(|until| until.saturating_duration_since(clock::now()));
        let is_pending = state.report.is_none() || state.pending.or(state.asked).is_some();
        unread.filter(|left| !left.is_zero()).or(is_pending.then_some(PATIENCE))
    }

    /// Tells those who wait that what they asked for stands.
    fn served(&self) {
        let mut state = self.lock();
        if state.written.scope == state.scope && state.has_written_held() && state.has_written_last_hooks() {
            for done in state.waiting.drain(..) {
                let _ = done.send(());
            }
        }
    }
}
