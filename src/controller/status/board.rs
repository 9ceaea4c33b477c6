//! Data of the status page, as this daemon publishes it.
//!
//! In: the card of each Sync, whenever it changes. Out: a channel with the newest [`StatusBoard`],
//! for the page. Without a page nothing is collected.

use std::sync::Arc;

use tokio::sync::watch;

use crate::api::SyncName;
use crate::report::board::{DaemonRole, StatusBoard, SyncCard};

/// Handle to the data of the status page; cheap to clone.
#[derive(Debug, Clone)]
pub struct Board {
    newest: watch::Sender<Arc<StatusBoard>>,
    is_read: bool,
}

impl Board {
    /// Creates an empty board. If it is not read, it stays empty.
    pub fn new(is_read: bool) -> Self {
        Self { newest: watch::Sender::default(), is_read }
    }

    /// Returns a receiver of the board.
    pub fn watch(&self) -> watch::Receiver<Arc<StatusBoard>> {
        self.newest.subscribe()
    }

    /// Sets the role of the daemon.
    pub fn stand(&self, stance: DaemonRole) {
        self.change(|board| board.set_role(stance));
    }

    /// True if there is a page that reads it.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) fn put(&self, card: SyncCard) {
        self.change(|board| board.update_card(card));
    }

    /// Removes a Sync that is gone, or that another daemon serves.
    pub(crate) fn remove(&self, name: &SyncName) {
        self.change(|board| board.remove(name));
    }

    fn change(&self, change: impl FnOnce(&mut StatusBoard)) {
        if !self.is_read {
            return;
        }
        // Copied only while a reader has the previous board.
        self.newest.send_if_modified(|board| {
            let before = board.version;
            change(Arc::make_mut(board));
            board.version != before
        });
    }
}
