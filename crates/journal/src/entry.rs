//! One line of the journal.
//!
//! In: an [`Entry`], or the bytes of a line.
//! Out: the entry with its place in the chain.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chain::Hash;

/// Reason of a change, or of a line about the journal itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub enum Reason {
    /// Git or the Sync asks for it.
    Commit,
    /// Others had changed or deleted the object.
    DriftRepaired,
    /// Git no longer contains the object.
    Pruned,
    /// An older commit is held, because a newer one was rolled back or refused.
    Rollback,
    /// The Sync is being deleted.
    Deleted,
    /// The object goes over to another Sync.
    HandOver,
    /// The target namespace was missing.
    NamespaceCreated,
    /// A person acted on the console.
    Console,
    /// None of the others.
    #[default]
    Other,
    /// About the journal: a daemon begins to write.
    Started,
    /// About the journal: changes were made and not written down.
    Gap,
}

impl Reason {
    /// True for a line about the journal itself.
    pub const fn is_about_journal(self) -> bool {
        matches!(self, Self::Started | Self::Gap)
    }
}

/// Result of a write for the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// It was created.
    Created,
    /// Fields or their owners changed.
    Updated,
    /// This Sync owns no field of it any more.
    Released,
    /// It is gone.
    Deleted,
    /// Its deletion has begun; finalizers keep it.
    Deleting,
}

/// Drift that a change repairs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct DriftNote {
    /// The field manager that had changed the fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// The first of the changed fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

macro_rules! entry {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// Content of a line. Values of objects are never in it, and hashes of Secrets are keyed.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        pub struct Entry {
            /// Reason of the change.
            pub reason: Reason,
            $($(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $name: Option<$type>,)*
        }
    };
}

entry! {
    /// Time of the answer of the API server, in RFC 3339.
    time: String,
    /// The cluster, by the address of its API server.
    cluster: String,
    /// The Secret of another cluster with the object, as namespace/name; none for the own one.
    cluster_secret: String,
    /// The Sync, as namespace/name.
    sync: String,
    /// The commit, or the digest of an artifact.
    commit: String,
    /// The revision, with its branch, tag or version.
    revision: String,
    /// Git id of the tree at the path.
    tree: String,
    /// Signatures that the revision had to have.
    verified: String,
    /// Version and digest of the chart.
    chart: String,
    /// Digest of all objects of the revision; keyed if Secrets are among them.
    render: String,
    /// The object, as group/Kind|namespace/name.
    object: String,
    /// Result for the object.
    change: Change,
    /// True if no answer came: the change may have been made.
    unanswered: bool,
    /// Spec hash on the object before, as its annotation.
    before: String,
    /// Spec hash on the object after the change, as its annotation.
    after: String,
    /// The object's uid.
    uid: String,
    /// resourceVersion after the change.
    version: String,
    /// User that the API server saw; none for the daemon itself.
    actor: String,
    /// The approval that a person gave for it.
    approval: String,
    /// The person who gave it, where the console recorded that.
    approver: String,
    /// The person who acted on the console, who holds the Sync at the revision, or who overrode a
    /// closed window for it.
    person: String,
    /// The reason of that person for an override of a closed window.
    window_override: String,
    /// The action of a person on the console, as a text.
    action: String,
    /// The other Sync of a hand-over.
    other: String,
    /// Drift that it repairs.
    drift: DriftNote,
    /// Of a line `Gap`: number of changes that are not in the journal.
    lost: u64,
    /// Of a line `Started`: SHA-256 of the incomplete line before it.
    torn: String,
    /// Of a line `Started`: the process that writes.
    daemon: String,
    /// Of a line `Started`: the version of the program.
    program: String,
}

/// A line that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the chain, from 1.
    pub seq: u64,
    /// Hash of the line before it.
    pub prev: Hash,
    /// Hash of this line.
    pub hash: Hash,
    /// Its content.
    pub entry: Entry,
}

impl Line {
    /// Returns the line as JSON, with its own hash.
    pub fn to_json(&self) -> Value {
        let mut value = serde_json::to_value(&self.entry).unwrap_or_default();
        value["seq"] = self.seq.into();
        value["prev"] = self.prev.to_string().into();
        value["hash"] = self.hash.to_string().into();
        value
    }
}

/// The bytes are no line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is not JSON, or not an object.
    #[error("it is not a line of JSON: {0}")]
    NotJson(String),
    /// It is not written as the daemon writes it: compact, with sorted keys.
    #[error("it is not in the canonical form, so it was edited")]
    NotCanonical,
    /// Number or hash of the line before are missing.
    #[error("it has no `seq` and `prev`")]
    NoLink,
    /// A field has another type than the journal writes.
    #[error("a field has another type: {0}")]
    Field(String),
}

/// Reads a line without its line break.
pub fn parse(bytes: &[u8]) -> Result<Line, LineError> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| LineError::NotJson(error.to_string()))?;
    let link = || {
        let prev = value.get("prev")?.as_str()?.parse().ok()?;
        Some((value.get("seq")?.as_u64()?, prev))
    };
    let (seq, prev) = link().ok_or(LineError::NoLink)?;
    if value.to_string().as_bytes() != bytes {
        return Err(LineError::NotCanonical);
    }
    let entry = serde_json::from_value(value).map_err(|error| LineError::Field(error.to_string()))?;
    Ok(Line { seq, prev, hash: Hash::of(bytes), entry })
}
