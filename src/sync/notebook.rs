//! Where a run without a Sync writes down where it may own objects: the Lease that it holds.
//!
//! In: scopes. Out: an annotation, for whoever holds the Lease next. Without it, a kind of which Git holds nothing any
//! more is only found by listing all kinds in all namespaces, which takes rights that not everybody has.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::{SCOPE_ANNOTATION, Scope};
use crate::cluster::lease::{Leadership, Notes};

/// The annotation on the Lease.
#[derive(Debug)]
pub struct Notebook {
    notes: Mutex<Notes>,
    written: Mutex<Option<Scope>>,
}

impl Notebook {
    /// What a predecessor has written, and the way to write more.
    pub fn new(leadership: &Leadership) -> Self {
        // What cannot be read counts as absent: then it is found out by listing.
        let found = leadership.found().get(SCOPE_ANNOTATION);
        let written = found.and_then(|text| serde_json::from_str(text).ok());
        Self { notes: Mutex::new(leadership.notes()), written: Mutex::new(written) }
    }

    /// Writes onto the Lease of the next term from now on. Nobody else wrote there in between.
    pub fn goes_on(&self, leadership: &Leadership) {
        *self.notes.lock().unwrap_or_else(PoisonError::into_inner) = leadership.notes();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Scope>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands there.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.lock().clone()
    }

    /// Writes another scope, and returns when it stands. Who has lost the Lease writes nothing, here or elsewhere.
    pub(crate) async fn record(&self, scope: Scope) {
        if self.lock().as_ref() == Some(&scope) {
            return;
        }
        let Ok(text) = serde_json::to_string(&scope) else { return };
        let entry = BTreeMap::from([(SCOPE_ANNOTATION.to_owned(), text)]);
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if notes.write(entry).await {
            *self.lock() = Some(scope);
        }
    }
}
