//! Replays lines: the state of each object after the last line about it.
//!
//! In: lines in order. Out: the spec hash of each object that the journal leaves in the cluster.

use std::collections::BTreeMap;

use crate::entry::{Change, Entry};

/// Returns the spec hash of each object that exists after these changes. An object that was
/// released, deleted, or is being deleted is not in the result. A deletion without an answer that
/// no line follows was made: otherwise the daemon would have tried again.
pub fn replay<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeMap<String, Option<String>> {
    let mut objects = BTreeMap::new();
    for entry in entries {
        let (Some(object), Some(change)) = (&entry.object, entry.change) else { continue };
        // An object of the same id in another cluster is another object.
        let place = entry.cluster_secret.as_ref().map(|secret| format!("{secret}: {object}"));
        let object = place.as_ref().unwrap_or(object);
        match change {
            // The next answer about the object has a line of its own.
            Change::Created | Change::Updated if entry.unanswered == Some(true) => {}
            Change::Created | Change::Updated => {
                objects.insert(object.clone(), entry.after.clone());
            }
            // The receiving Sync has written its own line before.
            Change::Released if entry.other.is_some() => {}
            Change::Released | Change::Deleted | Change::Deleting => {
                objects.remove(object);
            }
        }
    }
    objects
}
