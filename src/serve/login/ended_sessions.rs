//! Sessions that people have ended before their time, and the end of a session as an event.
//!
//! In: the ids of sessions at a sign-out. Out: a session counts no more, and its open streams end
//! at once. The list is of this process, and so no process counts a session that began before it
//! led: another one may have ended it.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::used_ids::UsedIds;

/// Sessions that were ended.
#[derive(Debug)]
pub(super) struct EndedSessions {
    ids: UsedIds,
    /// Their number, which wakes the streams.
    count: watch::Sender<u64>,
}

impl Default for EndedSessions {
    fn default() -> Self {
        Self { ids: UsedIds::default(), count: watch::channel(0).0 }
    }
}

impl EndedSessions {
    /// Ends a session that would count until `ends`, in seconds since 1970.
    pub(super) fn end(&self, id: &str, ends: i64, now: i64) {
        self.ids.add(id, ends, now);
        self.count.send_modify(|count| *count += 1);
    }

    /// True if the session was ended.
    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.has(id)
    }
}

/// The end of a session: its time, or a sign-out.
#[derive(Debug, Clone, Default)]
pub struct SessionEnd {
    pub(super) at: Option<Instant>,
    /// The sign-outs of this console, and the id of the session.
    pub(super) sign_out: Option<(Arc<EndedSessions>, Box<str>)>,
}

impl SessionEnd {
    /// The end at a time alone; `None` for a session without one.
    pub const fn at(at: Option<Instant>) -> Self {
        Self { at, sign_out: None }
    }

    /// True once the session has ended.
    pub fn has_come(&self) -> bool {
        let is_signed_out = self.sign_out.as_ref().is_some_and(|(ended, id)| ended.has(id));
        is_signed_out || self.at.is_some_and(|at| at <= Instant::now())
    }

    /// Completes when the session ends.
    pub async fn come(&self) {
        tokio::select! {
            () = time(self.at) => {}
            () = self.signed_out() => {}
        }
    }

    async fn signed_out(&self) {
        let Some((ended, id)) = &self.sign_out else { return std::future::pending().await };
        let mut count = ended.count.subscribe();
        // The sender lives as long as this value.
        while !ended.has(id) && count.changed().await.is_ok() {}
    }
}

async fn time(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
