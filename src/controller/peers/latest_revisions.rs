//! Newest revision of each source, shared by the Syncs that have the same source.
//!
//! In: the result of one Sync's poll. Out: the same revision for all other Syncs of the same
//! repository and ref, at once: a commit needs one poll, for any number of Syncs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::clock;
use crate::source::{Address, Reference, Revision};

/// Newest revision of each source.
#[derive(Debug, Default)]
pub struct LatestRevisions(Mutex<HashMap<SourceKey, Arc<RevisionChannel>>>);

/// Key of a source: URL and Secret of the repository, and the ref.
pub(crate) type SourceKey = (Box<str>, Reference);

/// Returns the key of a source that is read with the login of `owner`.
pub(crate) fn source_key((address, reference): (&Address, &Reference), owner: &str) -> SourceKey {
    (format!("{address}\n{owner}").into(), reference.clone())
}

/// Channel with the newest revision of one source.
pub(crate) type RevisionChannel = watch::Sender<Option<TimedRevision>>;

/// A revision, and the time at which it was last known to be the newest.
#[derive(Debug, Clone)]
pub(crate) struct TimedRevision {
    pub(crate) revision: Revision,
    pub(crate) at: Instant,
    /// Time at which the repository was polled for it.
    pub(crate) asked: Instant,
}

impl LatestRevisions {
    /// Returns the channel of a source.
    pub(crate) fn channel(&self, key: SourceKey) -> Arc<RevisionChannel> {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heads.retain(|_, head| Arc::strong_count(head) > 1);
        heads.entry(key).or_insert_with(|| Arc::new(watch::Sender::new(None))).clone()
    }

    /// Drops all revisions without waking their receivers.
    pub(crate) fn lose(&self) {
        let heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for head in heads.values() {
            head.send_if_modified(|known| {
                *known = None;
                false
            });
        }
    }
}

/// Publishes a revision, with the time of the poll; receivers are woken only by a new revision.
pub(crate) fn publish(head: &RevisionChannel, revision: &Revision, asked: Instant) {
    // Each Sync has a chart of its own.
    let seen = TimedRevision { revision: revision.of_repository(), at: clock::now(), asked };
    head.send_if_modified(|known| {
        let new = known.as_ref().is_none_or(|known| known.revision != seen.revision);
        *known = Some(seen);
        new
    });
}
