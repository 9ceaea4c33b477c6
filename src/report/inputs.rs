//! Inputs of a status.
//!
//! In: results of the controller. Out: plain data types, without logic.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::ErrorCause;
use crate::api::{FinishedObject, HeldByWindow, RevisionHold, Scope};
use crate::desired::SetDigest;
use crate::health::HealthSummary;
use crate::object::{GroupKind, ObjectId};
use crate::plan::{Outcome, RevisionRequest};

/// An error that keeps a reconcile from starting or ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileError {
    /// The cause, which code decides on.
    pub cause: ErrorCause,
    /// A sentence for people.
    pub message: String,
    /// The individual problems, if there are several.
    pub problems: Vec<String>,
    /// True if a retry cannot help before there is new input.
    pub permanent: bool,
}

impl ReconcileError {
    /// Returns the reason for conditions, Events and metrics.
    pub fn reason(&self) -> &'static str {
        self.cause.reason()
    }

    /// Adds the place of the error in front of the message.
    #[must_use]
    pub fn with_place(mut self, place: &impl std::fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

/// Everything that is known about a Sync now.
#[derive(Clone)]
pub struct StatusInputs<'a> {
    /// The generation of the spec that this is about.
    pub generation: Option<i64>,
    /// True if the Sync is suspended.
    pub suspended: bool,
    /// The error that keeps the daemon from starting a reconcile, or from polling the repository.
    pub error: Option<&'a ReconcileError>,
    /// True if the error is about the revision of the reconcile.
    pub about_revision: bool,
    /// The refused commit, while the reconcile keeps an older one.
    pub refused: Option<String>,
    /// True if the objects are kept as the last reconcile left them, in spite of the error.
    pub keeps_objects: bool,
    /// The newest revision in the repository.
    pub seen: Option<SeenRevision>,
    /// The last reconcile, if there was one.
    pub reconcile: Option<ReconcileInputs<'a>>,
    /// True if the last reconcile was for an older commit or spec than the current one.
    pub outdated: bool,
    /// The newest revision, if it was rolled back; the reconcile is then about the held one.
    pub rejected: Option<&'a RolledBackRevision>,
    /// The revision that a person holds the Sync at.
    pub hold: Option<&'a RevisionHold>,
    /// Health of the objects, once it is known.
    pub health: Option<&'a HealthSummary>,
    /// True if the Sync is ready only after its objects are healthy.
    pub waits_for_health: bool,
    /// The commits whose author and subject are known.
    pub commits: &'a [CommitDescription],
    /// The value of the request annotation that was handled last.
    pub request: Option<String>,
    /// The Lease of this daemon.
    pub held_by: Option<String>,
    /// The revision that waits for approval.
    pub request_of_approval: Option<&'a RevisionRequest>,
    /// The revision that a closed window holds.
    pub held_by_window: Option<&'a HeldByWindow>,
    /// The time.
    pub now: Time,
}

/// Subject and author of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitDescription {
    /// The revision, as `main@1f0c...`.
    pub revision: String,
    /// The subject of the commit.
    pub subject: String,
    /// The name of its author.
    pub author: String,
}

/// A revision that was rolled back because its objects did not become healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBackRevision {
    /// The revision.
    pub revision: String,
    /// The revision that is held instead.
    pub held: String,
    /// The error, as a sentence.
    pub why: String,
}

/// A revision, and the source that it was seen in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRevision {
    /// The revision.
    pub revision: String,
    /// The tag object, if it is an annotated tag.
    pub tag: Option<String>,
    /// The repository and the ref as one text.
    pub source: Box<str>,
}

/// Result of a reconcile.
#[derive(Clone)]
pub struct ReconcileInputs<'a> {
    /// The revision that was applied.
    pub revision: String,
    /// Its tag object, if it is an annotated tag.
    pub tag: Option<String>,
    /// Digest of the files that were read for it.
    pub tree: Option<String>,
    /// Digest of the desired set.
    pub digest: Option<&'a SetDigest>,
    /// The outcomes that have something to report.
    pub outcomes: &'a BTreeMap<ObjectId, Outcome>,
    /// Returns the file of an object that is in Git.
    pub files: &'a dyn Fn(&ObjectId) -> Option<String>,
    /// The number of desired objects.
    pub desired: usize,
    /// Kinds and namespaces of its inventory.
    pub scope: Option<Scope>,
    /// The value that approves the pending prunes.
    pub approval: Option<&'a str>,
    /// The approval annotation of the Sync, valid or not.
    pub approved: Option<&'a str>,
    /// True while some objects are still compared: earlier drift is kept until then.
    pub pending: bool,
    /// Extra fields of objects, as text.
    pub extra_fields: &'a [(ObjectId, Box<str>)],
    /// Jobs and Pods that are completed.
    pub finished: &'a [FinishedObject],
    /// Hooks that run when the Sync is deleted.
    pub delete_hooks: &'a [String],
    /// Remarks about objects that are applied.
    pub remarks: &'a [ObjectRemark],
    /// The warning about helm's isolation, if a chart was rendered.
    pub isolation_warning: Option<&'a str>,
    /// Pending retries.
    pub retries: &'a PendingRetries,
    /// Missing permissions, one per line.
    pub missing_permissions: &'a [String],
    /// The command that grants all permissions that the Sync needs; empty if they are in another
    /// cluster.
    pub grant_command: &'a str,
    /// Time since the revision was seen, if it is known.
    pub duration: Option<Duration>,
    /// Time of the last change by this or an earlier reconcile; a later report of the same
    /// reconcile keeps it.
    pub changed_at: Option<Time>,
}

impl ReconcileInputs<'_> {
    /// True if the object is in Git.
    pub(super) fn is_desired(&self, id: &ObjectId) -> bool {
        (self.files)(id).is_some()
    }

    /// True if every desired object was forbidden.
    pub(super) fn is_all_forbidden(&self) -> bool {
        let is_forbidden = |outcome: &Outcome| matches!(outcome, Outcome::Failed(why) if why.is_forbidden());
        let all = self.outcomes.iter().filter(|(id, outcome)| self.is_desired(id) && is_forbidden(outcome));
        self.desired > 0 && all.count() == self.desired
    }
}

/// Pending retries and their times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingRetries {
    /// Next attempts of refused objects.
    pub next_attempts: BTreeMap<ObjectId, Timestamp>,
    /// Kinds that the server does not serve yet, but is expected to.
    pub unserved_kinds: BTreeSet<GroupKind>,
}

/// A remark about an object that is applied as far as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRemark {
    /// The object.
    pub id: ObjectId,
    /// Reason for the problem list.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}
