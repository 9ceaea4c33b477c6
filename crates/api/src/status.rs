//! `status` of a `Sync`: its fields.
//!
//! In: the result of each reconcile, from `report`.
//! Out: [`SyncStatus`], as it is written to the API server. The writer bounds every list and text;
//! the schema only names types, because a status that the server rejects helps no user.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::SpecHash;
use super::approval::{ApprovedRevision, PendingApproval};
use super::change_window::{HeldByWindow, OverriddenRevision};
use super::history::{ChosenRevision, HistoryEntry};
use super::notification::{AnnouncedState, NotificationRecord};
use super::revision_text::AppliedChart;
use super::source_mount::AppliedMount;

/// Observed state of the Sync, as the daemon reports it.
// Atomic, because one writer replaces it as a whole: tracking the owner of each field would cost
// the API server work at every write and serve no reader.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SyncStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ready, Reconciling, Stalled, Healthy and Drifted; at rest, Reconciling and Stalled are absent or False.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,

    /// The revisions, from the repository to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revisions>,

    /// The id of the Git tree (or blob) at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_id: Option<String>,

    /// Hash of all rendered objects: equal hashes mean equal objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_digest: Option<String>,

    /// Numbers of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectCounts>,

    /// Kinds and namespaces in which this Sync may own objects; written before the first apply there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,

    /// Uid of the namespace kube-system in the cluster of spec.cluster; written before the first change there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_uid: Option<String>,

    /// The Lease of the daemon that serves this Sync, as namespace/name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,

    /// The last handled value of the annotation moorline.dev/requested-at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_request: Option<String>,

    /// Time of the last change to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub last_applied_time: Option<Time>,

    /// Problems of the Sync and its objects; only the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<StatusProblem>,

    /// Fields that another controller keeps changing back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<ContestedField>,

    /// Jobs, Pods and hooks that have completed and are not created again until they change in Git.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<FinishedObject>,
    /// Hooks that run when the Sync is deleted with its objects; only the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks_at_deletion: Vec<String>,

    /// The last revisions that were applied, refused or rolled back, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,

    /// The approval that a pending deletion needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,

    /// The approvals that are missing: of pending deletions, and of a revision that waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<PendingApproval>,

    /// The revision that a closed window holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by_window: Option<HeldByWindow>,

    /// The last sent notifications, and those that still have to be sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<NotificationRecord>,

    /// The state for which notifications were written last; absent if the Sync has no Notifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<AnnouncedState>,
}

/// The revisions, from the repository to the cluster, each as `main@1f0c...`, or `tag@sha256:1f0c...` of an artifact.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Revisions {
    /// The newest revision in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The tag object, if it is an annotated tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Hash of the URL and the ref of the newest revision. Revisions of another source are not compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The revision that is being applied, or could not be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// The last revision that was applied completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// The applied revision with eight digits of its commit or digest, for a column: main@f3454c66.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// The published chart of the applied revision, if the Sync asks for its version without a digest. The version and the digest are also in
    /// the text of each revision: `main@1f0c...+shop:1.2.3@sha256:...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<AppliedChart>,
    /// The mounts of the applied revision. They are also in the text of each revision: `main@1f0c...+vendor/base/:main@2e1d...`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<AppliedMount>,
    /// The renderDigest of the applied revision. While it is set, a missing object counts as deleted by others. It is removed when
    /// the daemon begins to apply another revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_digest: Option<String>,
    /// The last revision with every object applied and healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<String>,
    /// The tag object of the healthy revision, if it has an annotated tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_tag: Option<String>,
    /// The revision that was rolled back because its objects were rejected or did not become healthy; absent after a newer revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// The newest revision that rendered completely. The cluster is kept at it while a newer one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldRevision>,
    /// The revision at which the annotation moorline.dev/hold-revision holds the Sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ChosenRevision>,
    /// The last revisions that were approved, the newest first, while spec.approval.revisions is Required.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<ApprovedRevision>,
    /// The last revision that a person applied in a closed window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<OverriddenRevision>,
}

impl Revisions {
    /// True if every object was applied as this revision renders it, and no other revision was
    /// begun since.
    pub fn is_applied(&self, revision: &str, is_it: impl FnOnce(&SpecHash) -> bool) -> bool {
        let is_held = self.held.as_ref().is_none_or(|held| held.revision == revision);
        is_held
            && self.applied.as_deref() == Some(revision)
            && self.applied_digest.as_deref().and_then(SpecHash::parse).as_ref().is_some_and(is_it)
    }
}

/// A revision that rendered completely, and what it was rendered from. Written before its first object is applied.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HeldRevision {
    /// The revision, as `main@1f0c...`, or `tag@sha256:1f0c...` of an artifact.
    pub revision: String,
    /// The tag object, if it is an annotated tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A hash of the URL and the ref.
    pub source: String,
    /// A hash of the fields of the spec that change the rendered objects.
    pub spec: String,
    /// The renderDigest of its objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The bytes of memory that its objects take. A daemon that starts reserves them before it renders anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Numbers of objects.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// Objects in Git.
    #[serde(default)]
    pub desired: i64,
    /// Objects applied as in Git.
    #[serde(default)]
    pub applied: i64,
    /// Objects that are held although they differ from Git.
    #[serde(default)]
    pub held: i64,
    /// Objects that could not be applied.
    #[serde(default)]
    pub failed: i64,
    /// Objects deleted by the last reconcile that deleted any.
    #[serde(default)]
    pub pruned: i64,
    /// Objects that differ from their applied state.
    #[serde(default)]
    pub drifted: i64,
}

/// Kinds and namespaces in which a Sync may own objects: each of these kinds in each of these namespaces.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// Kinds, as Kind or Kind.group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Namespaces; cluster-scoped objects need none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// A problem.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StatusProblem {
    /// The object, as Deployment.apps shop/web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The place in the repository, as file:line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Machine-readable reason.
    pub reason: String,
    /// The problem and its solution.
    pub message: String,
}

/// A field that another controller keeps changing back.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ContestedField {
    /// The object, as Deployment.apps shop/web.
    pub object: String,
    /// The field; absent if the whole object is contested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The field manager of the other controller, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
}

/// A Job, Pod or hook that has completed, or one that deletes itself after completion.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FinishedObject {
    /// The id of the object, such as batch/Job|shop/migrate.
    pub object: String,
    /// The hash of the object, from its annotation.
    pub hash: String,
    /// True if the object has started, and its completion was not observed. If it is missing after a restart, it counts as completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// True if the object failed. The Sync is then unhealthy until the object changes in Git, even after the object is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// The approval that a pending deletion needs.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The value for the annotation moorline.dev/approve.
    pub hash: String,
    /// The number of objects that the approval deletes.
    pub objects: i64,
}

/// Schema of the conditions, written by hand because their Rust type has none. A map by type, so
/// that two writers do not overwrite each other's conditions.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {"type": "string", "description": "Type of the condition."},
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Status of the condition.",
                },
                "reason": {"type": "string", "description": "Machine-readable reason for the status."},
                "message": {"type": "string", "description": "Details, and a solution if there is a problem."},
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "Time of the last change of the status.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "Generation of the spec that the condition describes.",
                },
            },
        },
    })
}

pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}
