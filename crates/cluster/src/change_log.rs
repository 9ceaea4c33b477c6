//! Records every write of an object in the journal.
//!
//! In: the write, the object as the store knew it before, and the answer of the API server.
//! Out: a line for each change. Every write of an object passes through `Cluster::send`, which
//! asks for a [`Target`], so that none is made without one.
//!
//! An apply that changed nothing leaves no line. A write without an answer leaves one that says so,
//! and the next answer about that object leaves a line in any case.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::api_client::ApiResponse;
use crate::api_error::ApiError;
use crate::apply::read;
use moorline_api::{CanonicalForm, SpecHash, SyncName};
use moorline_core::object::{Object, ObjectId};
use moorline_engine::observed::{ManagedEntry, Observed, Verification};
use moorline_journal::{Change, Entry, Journal};

/// Objects with a write that was not answered; beyond this number they are not remembered.
const MAX_UNANSWERED: usize = 10_000;

/// The object that a write changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) id: &'a ObjectId,
    /// The Sync whose objects are watched, if the write is one of its own.
    pub(super) owner: Option<&'a SyncName>,
    pub(super) kind: WriteKind,
}

/// Kind of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// An apply under the manager of the Sync.
    Apply,
    /// Any other change of fields or of their owners.
    Patch,
    /// An empty apply.
    Release,
    /// A deletion.
    Delete,
}

/// The journal, shared by all identities, and the Secret of another cluster that is written.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeLog(Arc<LogState>, Option<Arc<str>>);

#[derive(Debug, Default)]
struct LogState {
    journal: Mutex<Journal>,
    /// The object, and the Secret of its cluster if that is another one.
    unanswered: Mutex<HashSet<(Option<Arc<str>>, ObjectId)>>,
}

/// Knowledge of an object before a write.
#[derive(Debug, Default)]
pub(super) struct Before {
    version: Option<Box<str>>,
    hash: Option<SpecHash>,
    uid: Option<Box<str>>,
    own: Option<Box<Observed>>,
}

impl Before {
    pub(super) fn of(seen: &Observed) -> Self {
        Self {
            version: Some(seen.resource_version.clone()).filter(|version| !version.is_empty()),
            hash: seen.recorded_hash,
            uid: Some(seen.uid.clone()),
            own: Some(Box::new(seen.clone())),
        }
    }
}

impl ChangeLog {
    /// Returns the same journal for writes in the cluster of a Secret, named as namespace/name.
    pub(super) fn of_target(&self, secret: &str) -> Self {
        Self(self.0.clone(), Some(secret.into()))
    }

    /// Returns a key of an object that no object of the same id in another cluster has.
    fn key(&self, id: &ObjectId) -> (Option<Arc<str>>, ObjectId) {
        (self.1.clone(), id.clone())
    }

    pub(super) fn set_journal(&self, journal: Journal) {
        *self.0.journal.lock().unwrap_or_else(PoisonError::into_inner) = journal;
    }

    /// Returns the journal, if changes are written down.
    pub(super) fn journal(&self) -> Option<Journal> {
        let journal = self.0.journal.lock().unwrap_or_else(PoisonError::into_inner);
        Some(journal.clone()).filter(Journal::is_on)
    }

    /// Records the result of a write.
    pub(super) fn record(
        &self,
        journal: &Journal,
        (target, cause): (Target<'_>, Option<&Entry>),
        before: &Before,
        answer: &Result<ApiResponse, ApiError>,
    ) {
        let entry = match answer {
            Ok(reply) => self.of_reply(target, before, reply),
            Err(failure) => self.of_failure(target, failure),
        };
        let Some(entry) = entry else { return };
        let mut cause = cause.cloned().unwrap_or_default();
        if let Some(owner) = target.owner {
            cause.sync = Some(owner.to_string());
        }
        cause.cluster_secret = self.1.as_deref().map(str::to_owned);
        journal.record(Entry {
            object: Some(target.id.as_str().to_owned()),
            before: before.hash.filter(|hash| is_safe(target.id, hash)).map(|hash| hash.to_string()),
            change: entry.change,
            unanswered: entry.unanswered,
            after: entry.after,
            uid: entry.uid.or_else(|| before.uid.as_deref().map(str::to_owned)),
            version: entry.version,
            ..cause
        });
    }

    /// Returns the change of a write that was answered; none if it changed nothing.
    fn of_reply(&self, target: Target<'_>, before: &Before, reply: &ApiResponse) -> Option<Entry> {
        let was_open = self.unanswered(|open| open.remove(&self.key(target.id)));
        let Ok(object) = read(target.id, &reply.body) else { return Some(unanswered(target)) };
        let text = |field| object.metadata(field).and_then(Value::as_str).map(str::to_owned);
        let (version, uid) = (text("resourceVersion"), text("uid"));
        let change = match target.kind {
            WriteKind::Delete if object.metadata("deletionTimestamp").is_some() => Change::Deleting,
            WriteKind::Delete => return Some(Entry { change: Some(Change::Deleted), ..Entry::default() }),
            _ if reply.created => Change::Created,
            _ if !was_open && is_same(target, before, version.as_deref(), &object) => return None,
            WriteKind::Release => Change::Released,
            WriteKind::Apply | WriteKind::Patch => Change::Updated,
        };
        let after = hash_of(&object).filter(|hash| is_safe(target.id, hash)).map(|hash| hash.to_string());
        Some(Entry { change: Some(change), after, uid, version, ..Entry::default() })
    }

    /// Returns a line for a write that may have been carried out, the first time in a row.
    fn of_failure(&self, target: Target<'_>, failure: &ApiError) -> Option<Entry> {
        let is_open = match failure {
            ApiError::Timeout(_) | ApiError::Unreachable(_) | ApiError::InvalidResponse(_) => true,
            ApiError::Refused(refusal) => refusal.code >= 500,
            ApiError::UnknownKind(_) | ApiError::NotLeader | ApiError::Superseded => false,
        };
        if matches!(failure, ApiError::Refused(_)) && !is_open {
            self.unanswered(|open| open.remove(&self.key(target.id)));
        }
        let is_new = is_open
            && self.unanswered(|open| open.len() < MAX_UNANSWERED && open.insert(self.key(target.id)));
        is_new.then(|| unanswered(target))
    }

    fn unanswered<T>(&self, change: impl FnOnce(&mut HashSet<(Option<Arc<str>>, ObjectId)>) -> T) -> T {
        change(&mut self.0.unanswered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns a line for a change that may have been made.
fn unanswered(target: Target<'_>) -> Entry {
    let change = match target.kind {
        WriteKind::Apply | WriteKind::Patch => Change::Updated,
        WriteKind::Release => Change::Released,
        WriteKind::Delete => Change::Deleted,
    };
    Entry { change: Some(change), unanswered: Some(true), ..Entry::default() }
}

/// True if a write left the object as it was known, or only others wrote meanwhile.
fn is_same(target: Target<'_>, before: &Before, version: Option<&str>, object: &Object) -> bool {
    if version.is_some() && version == before.version.as_deref() {
        return true;
    }
    let (Some(known), Some(owner)) = (&before.own, target.owner.filter(|_| target.kind == WriteKind::Apply))
    else {
        return false;
    };
    // The time of an entry has whole seconds, so it does not tell two writes within one apart.
    if before.hash != hash_of(object) || matches!(known.verification, Verification::Drifted(_)) {
        return false;
    }
    let entry = |seen: &Observed| seen.baseline.as_ref().and_then(|it| it.own_entry.clone());
    let now = Observed::from_apply(object, owner);
    let is_unchanged =
        |was: ManagedEntry, now: ManagedEntry| (was.digest, was.time) == (now.digest, now.time);
    match (entry(known), entry(&now)) {
        (Some(was), Some(now)) => is_unchanged(was, now),
        // After a start the time of our entry is not known, but its fields are.
        (None, Some(_)) => {
            let (was, now) = (known.owned_fields(), now.owned_fields());
            was.is_some() && was == now
        }
        _ => false,
    }
}

fn hash_of(object: &Object) -> Option<SpecHash> {
    object.annotation(moorline_api::SPEC_HASH_ANNOTATION).and_then(SpecHash::parse)
}

/// False for a hash of a Secret without a key, as an old version or another program may have left
/// it: its readers could guess values.
fn is_safe(id: &ObjectId, hash: &SpecHash) -> bool {
    !id.is_kind("", "Secret") || matches!(hash.form, CanonicalForm::Keyed(_))
}
