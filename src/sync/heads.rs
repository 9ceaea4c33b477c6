//! The newest revision of each repository that is followed, shared by the Syncs that follow it.
//!
//! In: what one Sync's look has found. Out: the same for all others of the same repository and reference, at once:
//! a commit needs one look, however many Syncs are waiting for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::clock;
use crate::source::{Reference, Revision};

/// The newest revisions.
#[derive(Debug, Default)]
pub struct Heads(Mutex<HashMap<Key, Arc<Head>>>);

/// A repository as those share it who name the same Secret, and what it is asked for.
pub(crate) type Key = (Box<str>, Reference);

/// The newest revision of one repository and reference.
pub(crate) type Head = watch::Sender<Option<Seen>>;

/// A revision, and when it was the newest for certain.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) revision: Revision,
    pub(crate) at: Instant,
    /// When the repository was asked for it.
    pub(crate) asked: Instant,
}

impl Heads {
    /// The place where the revisions of this repository are told.
    pub(crate) fn of(&self, key: Key) -> Arc<Head> {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heads.retain(|_, head| Arc::strong_count(head) > 1);
        heads.entry(key).or_insert_with(|| Arc::new(watch::Sender::new(None))).clone()
    }

    /// Forgets what was seen; nobody is woken by that.
    pub(super) fn lose(&self) {
        let heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for head in heads.values() {
            head.send_if_modified(|known| {
                *known = None;
                false
            });
        }
    }
}

/// Tells a revision to all who follow, for which the repository was asked then; nobody is woken by one that was known.
pub(crate) fn tell(head: &Head, revision: &Revision, asked: Instant) {
    let seen = Seen { revision: revision.clone(), at: clock::now(), asked };
    head.send_if_modified(|known| {
        let new = known.as_ref().is_none_or(|known| known.revision != seen.revision);
        *known = Some(seen);
        new
    });
}
