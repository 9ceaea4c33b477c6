//! A Sync that has not rendered the commit of a peer.
//!
//! In: its failed attempts. Out: [`LaggingPeer`].

use std::time::Instant;

use super::render_attempts::FailedAttempt;
use crate::api::SyncName;

/// A Sync that has not rendered a commit.
#[derive(Debug)]
pub(crate) enum LaggingPeer {
    /// It has not tried yet, and is waited for until this time.
    Untried(SyncName, Instant),
    /// It has tried, and failed.
    Failed(SyncName, FailedAttempt),
}

impl LaggingPeer {
    /// Returns the name of the Sync.
    pub(crate) fn sync(&self) -> &SyncName {
        match self {
            Self::Untried(sync, _) | Self::Failed(sync, _) => sync,
        }
    }
}
