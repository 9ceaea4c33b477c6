//! `spec.approval` of a Sync, and what its status says about approvals: those that are missing, and
//! the revisions that were approved.
//!
//! In: the resource, as the API server has it.
//! Out: [`ApprovalPolicy`], [`PendingApproval`] and [`ApprovedRevision`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most approved revisions that a status keeps: as many as its history.
pub const MAX_APPROVED: usize = super::MAX_HISTORY;

/// Changes that wait for the approval of a person.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPolicy {
    /// A new revision: Automatic, the default, applies it; Required holds it as a plan until its hash is approved. Prunes
    /// have their own approval, in prune.budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<RevisionApproval>,
}

/// Reaction to a new revision: Automatic, the default, applies it; Required holds it as a plan until its hash is approved.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RevisionApproval {
    /// It is applied.
    #[default]
    Automatic,
    /// It is applied after a person has approved it.
    Required,
}

/// Subject of an approval.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// Deletions.
    #[default]
    Prune,
    /// A revision.
    Revision,
}

/// An approval that is missing.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PendingApproval {
    /// The subject: Prune or Revision.
    pub of: ApprovalSubject,
    /// The value for the annotation moorline.dev/approve.
    pub hash: String,
    /// The revision that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The number of objects that are created.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub created: i64,
    /// The number of objects that are changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed: i64,
    /// The number of objects that are deleted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pruned: i64,
    /// The plan of a revision, such as `update Deployment.apps shop/web`; only the first lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<String>,
}

/// A revision that a person approved.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedRevision {
    /// The revision, as `main@1f0c...`.
    pub revision: String,
    /// A hash of the URL and the ref.
    pub source: String,
    /// A hash of the fields of the spec that change the rendered objects.
    pub spec: String,
    /// Hash of all rendered objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The approval; absent for a revision that was applied before approvals were required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}
