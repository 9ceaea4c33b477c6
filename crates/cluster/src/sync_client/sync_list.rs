//! Follows the Syncs that a caller may read, for the command line.
//!
//! In: a namespace, or all.
//! Out: the list, and then each change. One list and one watch, with the rights of the caller.

use futures::StreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use moorline_api::SyncName;

use super::{OperatorError, SyncResource};
use crate::connect::Connection;

/// Longest duration of one watch request, in seconds.
const WATCH_SECONDS: u32 = 240;

/// A change of the list of Syncs.
#[derive(Debug)]
pub enum SyncListEvent {
    /// All of them.
    Listed(Vec<SyncResource>),
    /// One that is new or was changed.
    Changed(Box<SyncResource>),
    /// One that was deleted.
    Gone(SyncName),
}

impl Connection {
    /// Lists the Syncs of a namespace, or all, and reports changes until the server ends the watch.
    ///
    /// # Errors
    ///
    /// As the API server answers; 403 if the caller may not list or watch Syncs there.
    pub async fn follow_syncs(
        &self,
        namespace: Option<&str>,
        mut tell: impl FnMut(SyncListEvent),
    ) -> Result<(), OperatorError> {
        let api = self.api(namespace);
        let list = api.list(&ListParams::default()).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        tell(SyncListEvent::Listed(list.items.into_iter().map(SyncResource::of).collect()));
        let parameters = WatchParams::default().timeout(WATCH_SECONDS).disable_bookmarks();
        let mut changes = api.watch(&parameters, &version).await?.boxed();
        while let Some(change) = changes.next().await {
            match change? {
                WatchEvent::Added(sync) | WatchEvent::Modified(sync) => {
                    tell(SyncListEvent::Changed(Box::new(SyncResource::of(sync))));
                }
                WatchEvent::Deleted(sync) => tell(SyncListEvent::Gone(SyncResource::of(sync).name)),
                WatchEvent::Bookmark(_) => {}
                // The version is too old: list again.
                WatchEvent::Error(_) => return Ok(()),
            }
        }
        Ok(())
    }
}
