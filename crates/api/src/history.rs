//! `status.history`: one entry for each of the last revisions of a Sync.
//!
//! In: the result of each reconcile, from `report`.
//! Out: [`HistoryEntry`], a part of the status.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of history entries in a status.
pub const MAX_HISTORY: usize = 10;

/// A revision that a person chose, with moorline.dev/hold-revision.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChosenRevision {
    /// The value of the annotation: a revision, or a commit.
    pub revision: String,
    /// The person, from moorline.dev/hold-by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The reason, from moorline.dev/hold-reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A revision and its outcome.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The revision, as `main@1f0c...`.
    pub revision: String,
    /// The revision with eight digits of its commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub short: String,
    /// The subject of the commit, without control characters, cut after 100 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The author of the commit, without control characters, cut after 100 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Time at which the revision was applied or refused.
    #[schemars(schema_with = "super::status::time")]
    pub time: Time,
    /// Time from the detection of the revision until it was applied, such as 1.2s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The outcome, as the reason of a condition: Applied as soon as every object is applied, independent of health.
    pub result: String,
    /// Details, if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The numbers of objects that were changed for this revision. Repairs are added with the next status that is written.
    #[serde(default, skip_serializing_if = "ChangeCounts::is_empty")]
    pub changes: ChangeCounts,
    /// The renderDigest of the objects that were applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The numbers of objects that were changed.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChangeCounts {
    /// Created objects.
    #[serde(default, skip_serializing_if = "is_none")]
    pub created: i64,
    /// Objects updated, recreated or adopted because of a commit.
    #[serde(default, skip_serializing_if = "is_none")]
    pub changed: i64,
    /// Objects deleted because Git no longer contains them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub pruned: i64,
    /// Objects repaired after others had changed or deleted them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub repaired: i64,
}

impl ChangeCounts {
    /// True if no object was changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for ChangeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created, changed, pruned, repaired } = self;
        let all = [(created, "created"), (changed, "changed"), (pruned, "pruned"), (repaired, "repaired")];
        let words = all.iter().filter(|(count, _)| **count > 0);
        let words: Vec<String> = words.map(|(count, word)| format!("{count} {word}")).collect();
        match words.is_empty() {
            true => f.write_str("nothing changed"),
            false => f.write_str(&words.join(", ")),
        }
    }
}

impl std::ops::AddAssign for ChangeCounts {
    fn add_assign(&mut self, other: Self) {
        self.created += other.created;
        self.changed += other.changed;
        self.pruned += other.pruned;
        self.repaired += other.repaired;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &i64) -> bool {
    *count == 0
}
