//! The status board, as this daemon writes it.
//!
//! In: what is known of each Sync, whenever that is something else than before. Out: a channel with the newest
//! [`StatusBoard`], for the page. Where nobody can read it, nothing is made for it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::api::SyncName;
use crate::report::board::{Card, Stance, StatusBoard};

/// The status board; cheap to clone.
#[derive(Debug, Clone)]
pub struct Board {
    newest: watch::Sender<Arc<StatusBoard>>,
    is_read: bool,
}

impl Board {
    /// A board on which nothing stands. Without readers nothing ever will.
    pub fn new(is_read: bool) -> Self {
        Self { newest: watch::Sender::default(), is_read }
    }

    /// What stands there, as it changes.
    pub fn watch(&self) -> watch::Receiver<Arc<StatusBoard>> {
        self.newest.subscribe()
    }

    /// This is what the daemon does from now on.
    pub fn stand(&self, stance: Stance) {
        self.change(|board| board.stand(stance));
    }

    /// True if somebody may read it.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) fn put(&self, card: Card) {
        self.change(|board| board.put(card));
    }

    /// A Sync is gone, or somebody else's.
    pub(crate) fn remove(&self, name: &SyncName) {
        self.change(|board| board.remove(name));
    }

    fn change(&self, change: impl FnOnce(&mut StatusBoard)) {
        if !self.is_read {
            return;
        }
        // It is copied only while somebody reads the last one.
        self.newest.send_if_modified(|board| {
            let before = board.version;
            change(Arc::make_mut(board));
            board.version != before
        });
    }
}
