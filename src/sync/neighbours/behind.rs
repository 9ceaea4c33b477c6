//! A Sync that is behind the others of its repository.
//!
//! In: what is known of its tries. Out: [`Behind`].

use std::time::Instant;

use super::super::tries::Tried;
use crate::api::SyncName;

/// A Sync that has not rendered a commit.
#[derive(Debug)]
pub(crate) enum Behind {
    /// It has not tried yet, and is waited for until this time.
    Untried(SyncName, Instant),
    /// It has tried, and failed.
    Failed(SyncName, Tried),
}

impl Behind {
    /// The Sync that is behind.
    pub(crate) fn sync(&self) -> &SyncName {
        match self {
            Self::Untried(sync, _) | Self::Failed(sync, _) => sync,
        }
    }
}
