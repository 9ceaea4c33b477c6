//! `status.notifications` of a `Sync`: the last sent notifications, and those that still have to be
//! sent.
//!
//! In: transitions of a Sync, from `moorline-notify`.
//! Out: [`NotificationRecord`], [`AnnouncedState`], parts of the status. A record is written
//! together with the transition, so that a daemon that starts knows what is left to be sent.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::ChangeCounts;

/// A transition of a Sync.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transition {
    /// A revision that changed objects is applied completely.
    Applied,
    /// Every object of that revision is healthy.
    Healthy,
    /// An object failed, or made no progress before its deadline.
    Degraded,
    /// A revision, or some of its objects, cannot be applied.
    Failed,
    /// Changes by others were repaired.
    DriftRepaired,
    /// A deletion waits for approval.
    PruneHeld,
    /// A revision waits for approval.
    ApprovalRequired,
    /// An older revision is applied again.
    RolledBack,
    /// The Sync is well after it was Degraded or Failed.
    Recovered,
}

impl Transition {
    /// Every transition.
    pub const ALL: [Self; 9] = [
        Self::Applied,
        Self::Healthy,
        Self::Degraded,
        Self::Failed,
        Self::DriftRepaired,
        Self::PruneHeld,
        Self::ApprovalRequired,
        Self::RolledBack,
        Self::Recovered,
    ];
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// State of a notification.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationState {
    /// It has to be sent.
    Waiting,
    /// It was sent.
    Sent,
    /// It could not be sent, and is not tried any more.
    GivenUp,
}

/// A notification about a transition.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct NotificationRecord {
    /// The Notifier, as namespace/name.
    pub notifier: String,
    /// The id of the notification: a repeated one has the same.
    pub id: String,
    /// The transition.
    pub transition: Transition,
    /// Time of the transition.
    #[schemars(schema_with = "super::status::time")]
    pub time: Time,
    /// State of the notification.
    pub state: NotificationState,
    /// Details of the transition; absent once the notification is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<TransitionDetails>,
}

/// Details of a transition.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TransitionDetails {
    /// The revision of the transition, as `main@1f0c...`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The revision before it; for a rollback, the revision that is applied again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub previous_revision: String,
    /// The renderDigest of the revision, or the hash that an approval needs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Machine-readable reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Details, cut after 500 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The numbers of objects that were changed for the revision.
    #[serde(default, skip_serializing_if = "ChangeCounts::is_empty")]
    pub changes: ChangeCounts,
    /// The number of objects in Git.
    #[serde(default)]
    pub objects: i64,
}

/// The state of a Sync for which notifications were written last.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedState {
    /// The last applied revision that changed objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The renderDigest of the applied objects. A revision with the same digest changed nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// True if every object of `revision` has been healthy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub healthy: bool,
    /// Reason and revision of the current failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
    /// The revision with a degraded object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub degraded: String,
    /// The applied revision, also if it changed nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied: String,
    /// Hash of the deletion that waits for approval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prune: String,
    /// Hash of the revision that waits for approval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub approval: String,
    /// The revision that a person chose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub chosen: String,
    /// The revision that was rolled back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rejected: String,
    /// The last repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<AnnouncedRepairs>,
}

/// The repairs for which a notification was written last.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnouncedRepairs {
    /// The revision.
    pub revision: String,
    /// The number of objects that were repaired at this revision.
    pub objects: i64,
}
