//! Live updates of a page: the version of its content, as it changes.
//!
//! In: the board, and the rights of the viewer. Out: one event for each version, no more often than
//! [`MIN_EVENT_INTERVAL`]. The stream ends with the daemon, with the session, and once there is no
//! decision about the rights.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use crate::report::board::StatusBoard;
use crate::serve::login::SessionEnd;
use crate::serve::page::{self, Route};
use crate::serve::rights::{DECISION_AGE, StreamRights};

/// The shortest interval between two events of a stream. A change that waits for it, and the fetch
/// of the page, stay within half a second.
const MIN_EVENT_INTERVAL: Duration = Duration::from_millis(300);
/// Interval of keep-alive comments: proxies close silent connections.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// A client of the event stream.
pub(super) struct EventStream {
    pub(super) board: watch::Receiver<Arc<StatusBoard>>,
    pub(super) ending: watch::Receiver<bool>,
    pub(super) route: Route,
    /// The version that was sent last.
    pub(super) last_sent: Option<u64>,
    /// The end of the session.
    pub(super) until: SessionEnd,
    /// Rights of the person; `None` without a sign-in.
    pub(super) rights: Option<StreamRights>,
    pub(super) _place: OwnedSemaphorePermit,
}

impl EventStream {
    /// The next event; `None` once the daemon or the session ends.
    pub(super) async fn next_in_time(&mut self) -> Option<String> {
        let until = self.until.clone();
        tokio::select! {
            biased;
            () = until.come() => None,
            event = self.next() => event,
        }
    }

    /// The next event; `None` once the daemon ends.
    async fn next(&mut self) -> Option<String> {
        if self.last_sent.is_some() {
            // Changes within this time are sent as one.
            tokio::select! {
                () = sleep(MIN_EVENT_INTERVAL) => {}
                _ = self.ending.wait_for(|ending| *ending) => return None,
            }
        }
        let silence = sleep(KEEP_ALIVE_INTERVAL);
        tokio::pin!(silence);
        let mut has_changed = false;
        loop {
            let board = self.board.borrow_and_update().clone();
            let board = match &mut self.rights {
                Some(rights) => rights.visible(&board).await?,
                None => board,
            };
            let now = page::version(&board, &self.route).unwrap_or_default();
            if self.last_sent != Some(now) {
                self.last_sent = Some(now);
                return Some(format!("event: version\ndata: {now}\n\n"));
            }
            // Other Syncs may change often: compare the version of this page at this interval only.
            if has_changed {
                sleep(MIN_EVENT_INTERVAL).await;
            }
            has_changed = tokio::select! {
                changed = self.board.changed() => changed.map(|()| true).ok()?,
                _ = self.ending.wait_for(|ending| *ending) => return None,
                () = sleep(DECISION_AGE), if self.rights.is_some() => false,
                () = &mut silence => return Some(":\n\n".to_owned()),
            };
        }
    }
}
