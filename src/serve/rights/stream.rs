//! Rights of the viewer of an event stream, which may end while it is open.
//!
//! In: the board, as it changes. Out: what the viewer may see of it, decided again when the last
//! decision is too old; `None` once there is no decision, which ends the stream.

use std::sync::Arc;

use tokio::time::Instant;

use super::{ConsoleAccess, DECISION_AGE, ReadableNamespaces, SharedBoards};
use crate::report::board::StatusBoard;
use crate::serve::viewer::Viewer;

/// Rights of one viewer.
#[derive(Debug)]
pub(in crate::serve) struct StreamRights {
    access: ConsoleAccess,
    viewer: Viewer,
    shared: Arc<SharedBoards>,
    known: Option<(Instant, usize, ReadableNamespaces)>,
}

impl StreamRights {
    /// Creates it without a decision.
    pub(in crate::serve) const fn new(
        access: ConsoleAccess,
        viewer: Viewer,
        shared: Arc<SharedBoards>,
    ) -> Self {
        Self { access, viewer, shared, known: None }
    }

    /// The part of a board that may be seen.
    pub(in crate::serve) async fn visible(&mut self, board: &Arc<StatusBoard>) -> Option<Arc<StatusBoard>> {
        let now = Instant::now();
        // A Sync in a new namespace is asked for at once.
        let is_fresh = |(at, count, _): &&(Instant, usize, ReadableNamespaces)| {
            now.duration_since(*at) < DECISION_AGE && *count == board.cards.len()
        };
        if self.known.as_ref().filter(is_fresh).is_none() {
            let readable = self.access.readable(&self.viewer, board).await.ok()?;
            self.known = Some((now, board.cards.len(), readable));
        }
        self.known.as_ref().map(|(_, _, readable)| self.shared.visible(board, readable))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;
    use crate::api::{SyncName, SyncStatus};
    use crate::report::board::SyncCard;
    use crate::serve::viewer::{AccessRequest, AccessReviews, Person};

    fn board() -> Arc<StatusBoard> {
        let mut board = StatusBoard::default();
        for namespace in ["pay", "shop"] {
            board.update_card(SyncCard::of_resource(
                SyncName::new(namespace, "web"),
                Arc::default(),
                SyncStatus::default(),
            ));
        }
        Arc::new(board)
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_that_ends_ends_the_view_of_an_open_stream() {
        let (ask, mut questions) = mpsc::channel::<AccessRequest>(8);
        let right = Arc::new(AtomicU8::new(1));
        let answer = right.clone();
        tokio::spawn(async move {
            while let Some(request) = questions.recv().await {
                let is_shop = request.question.namespace.as_deref() == Some("shop");
                let decision = match answer.load(Ordering::Relaxed) {
                    0 => Ok(false),
                    1 => Ok(is_shop),
                    _ => Err("no answer".to_owned()),
                };
                let _ = request.answer.send(decision);
            }
        });
        let (actions, _) = mpsc::channel(1);
        let access = ConsoleAccess { reviews: AccessReviews::new(ask), actions };
        let (user, groups, extra) = ("ada".to_owned(), Vec::new(), BTreeMap::new());
        let viewer = Viewer::Person(Arc::new(Person { user, uid: None, groups, extra }));
        let (mut rights, board) = (StreamRights::new(access, viewer, Arc::default()), board());
        let mut seen = async || rights.visible(&board).await.map(|board| board.cards.len());
        assert_eq!(seen().await, Some(1));
        right.store(0, Ordering::Relaxed);
        tokio::time::advance(DECISION_AGE - Duration::from_millis(1)).await;
        assert_eq!(seen().await, Some(1));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(seen().await, Some(0), "the right has ended");
        right.store(2, Ordering::Relaxed);
        tokio::time::advance(DECISION_AGE).await;
        assert_eq!(seen().await, None, "without an answer the stream ends");
    }
}
