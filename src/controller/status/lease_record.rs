//! Record of a run without a Sync resource, in annotations of its Lease: the scope and the held
//! revision.
//!
//! In: scopes and revisions. Out: annotations, for the next holder of the Lease. Without the scope,
//! a kind that Git no longer contains would only be found by listing all kinds in all namespaces,
//! which needs permissions that not every daemon has.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{HELD_ANNOTATION, HeldRevision, SCOPE_ANNOTATION, Scope};
use crate::cluster::lease::{AnnotationWriter, Leadership};

/// The annotations on the Lease.
#[derive(Debug)]
pub struct LeaseRecord {
    notes: Mutex<AnnotationWriter>,
    scope: Mutex<Option<Scope>>,
    held: Mutex<Option<HeldRevision>>,
}

impl LeaseRecord {
    /// Reads the record of a predecessor, and prepares writing to it.
    pub fn new(leadership: &Leadership) -> Self {
        let found = leadership.previous_annotations();
        Self {
            notes: Mutex::new(leadership.annotation_writer()),
            scope: Mutex::new(read(found, SCOPE_ANNOTATION)),
            held: Mutex::new(read(found, HELD_ANNOTATION)),
        }
    }

    /// Continues with the Lease of the next term. No other daemon has written to it in between.
    pub fn continue_term(&self, leadership: &Leadership) {
        *lock(&self.notes) = leadership.annotation_writer();
    }

    /// Returns the recorded scope.
    pub(crate) fn scope(&self) -> Option<Scope> {
        lock(&self.scope).clone()
    }

    /// Returns the recorded held revision.
    pub(crate) fn held(&self) -> Option<HeldRevision> {
        lock(&self.held).clone()
    }

    /// Records a scope, and returns once it is written. A process that has lost the Lease writes
    /// nothing.
    pub(crate) async fn record(&self, scope: Scope) {
        self.write(&self.scope, SCOPE_ANNOTATION, scope).await;
    }

    /// Records the held revision, and returns once it is written.
    pub(crate) async fn record_revision(&self, held: HeldRevision) {
        self.write(&self.held, HELD_ANNOTATION, held).await;
    }

    async fn write<T: Serialize + PartialEq>(&self, written: &Mutex<Option<T>>, key: &str, value: T) {
        if lock(written).as_ref() == Some(&value) {
            return;
        }
        let Ok(text) = serde_json::to_string(&value) else { return };
        let notes = lock(&self.notes).clone();
        if notes.write(BTreeMap::from([(key.to_owned(), text)])).await {
            *lock(written) = Some(value);
        }
    }
}

/// Reads an annotation; an invalid one counts as absent.
fn read<T: DeserializeOwned>(found: &BTreeMap<String, String>, key: &str) -> Option<T> {
    found.get(key).and_then(|text| serde_json::from_str(text).ok())
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
