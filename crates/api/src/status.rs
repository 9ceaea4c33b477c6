//! `status` of a `Sync`: its fields, conditions and their reasons.
//!
//! In: the result of each reconcile, from `report`.
//! Out: [`SyncStatus`], as it is written to the API server. The writer bounds every list and text;
//! the schema only names types, because a status that the server rejects helps no user.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::SpecHash;
use super::history::HistoryEntry;

/// What the daemon found and did.
// Atomic, because one writer replaces it as a whole: tracking the owner of each field would cost
// the API server work at every write and serve no reader.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SyncStatus {
    /// The generation of the spec that this status is of.
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

    /// The hash of all objects as they were rendered: where it is the same, nothing differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_digest: Option<String>,

    /// How many objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectCounts>,

    /// Where this Sync may own objects; written before the first apply there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,

    /// The Lease of the daemon that serves this Sync, as namespace/name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,

    /// The value of the annotation moorline.dev/requested-at that was obeyed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_request: Option<String>,

    /// When something was last changed on the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub last_applied_time: Option<Time>,

    /// What is wrong, the first of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<StatusProblem>,

    /// Fields that somebody else keeps changing back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<ContestedField>,

    /// Jobs, Pods and hooks that ended and are not created again until they change in Git.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<FinishedObject>,
    /// The first of the hooks that run when the Sync is deleted with its objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks_at_deletion: Vec<String>,

    /// The last revisions that were applied, refused or given up, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,

    /// What must be approved so that a deletion that waits is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// The revisions, from the repository to the cluster, each as `main@1f0c...`.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Revisions {
    /// The newest one in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The tag object, where that is an annotated tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Where that was seen: a hash of the URL and the ref. What was seen elsewhere is no measure of what is seen now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The one that is being applied, or could not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// The last one of which every object is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// The applied one with eight digits of its commit, for a column: main@f3454c66.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// The renderDigest of that. While it is there, an object that is absent has been deleted by somebody; it goes away when
    /// something else begins to be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_digest: Option<String>,
    /// The last one of which every object was applied and healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<String>,
    /// The tag object of that, where it is an annotated tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_tag: Option<String>,
    /// The one that was given up because its objects were refused or did not become well, until a newer one comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// The newest one that rendered completely. The cluster is kept at it, whatever is wrong with a newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldRevision>,
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
    /// The revision, as `main@1f0c...`.
    pub revision: String,
    /// The tag object, where that is an annotated tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A hash of the URL and the ref.
    pub source: String,
    /// A hash of the fields of the spec that decide what is rendered.
    pub spec: String,
    /// The bytes of memory that its objects take. A daemon that starts reserves them before it renders anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Shortens a revision to eight digits of its commit: `main@f3454c66`.
pub fn short_revision(revision: &str) -> String {
    match revision.rsplit_once('@') {
        Some((name, commit)) => format!("{name}@{}", commit.chars().take(8).collect::<String>()),
        None => revision.chars().take(8).collect(),
    }
}

/// How many objects.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// Are in Git.
    #[serde(default)]
    pub desired: i64,
    /// Are applied as they are in Git.
    #[serde(default)]
    pub applied: i64,
    /// Are left alone although something would be to do.
    #[serde(default)]
    pub held: i64,
    /// Could not be applied.
    #[serde(default)]
    pub failed: i64,
    /// Were deleted by the last pass that deleted any.
    #[serde(default)]
    pub pruned: i64,
    /// Differ from what was applied.
    #[serde(default)]
    pub drifted: i64,
}

/// Where a Sync may own objects: every kind in every namespace of these.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// Kinds, as Kind or Kind.group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Namespaces; what belongs to the whole cluster needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// Something that is wrong.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StatusProblem {
    /// The object, as Deployment.apps shop/web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The place in the repository, as file:line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// One word for it.
    pub reason: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// A field that somebody else keeps changing back.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ContestedField {
    /// The object, as Deployment.apps shop/web.
    pub object: String,
    /// The field; absent where it is about the whole object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The field manager of the other side, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
}

/// A Job, a Pod or a hook that ended, or one that clears itself away when it ends.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FinishedObject {
    /// Its id, as batch/Job|shop/migrate.
    pub object: String,
    /// Its hash as it is annotated.
    pub hash: String,
    /// It has begun, and nobody has seen its end: if it is gone after a restart, it has ended in between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// It ended without success, so that the Sync is not healthy before it changes in Git, also when it is cleared away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// What must be approved so that a deletion that waits is carried out.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The value for the annotation moorline.dev/approve.
    pub hash: String,
    /// How many objects are deleted then.
    pub objects: i64,
}

/// Condition types of a Sync. kstatus and `kubectl wait` read them by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The newest revision is applied completely, and healthy where the spec waits for health.
    Ready,
    /// A reconcile is under way.
    Reconciling,
    /// No progress is possible until a person changes something.
    Stalled,
    /// Every object is healthy by its own status.
    Healthy,
    /// Objects differ from their applied state.
    Drifted,
}

/// Reasons of conditions that the controller decides itself. Rendering, Git and health have their
/// own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// All objects are applied.
    Applied,
    /// The reconcile is in progress.
    Progressing,
    /// The Sync is suspended: no object is written.
    Suspended,
    /// The Sync is being deleted and still owns objects.
    Deleting,
    /// The Sync is being deleted, and a person must decide about its objects.
    DeletionHeld,
    /// The spec names something that does not exist or is impossible.
    SpecInvalid,
    /// The files of the revision have errors, so none of its objects is applied.
    RenderIncomplete,
    /// Some objects could not be applied.
    ApplyFailed,
    /// Some objects are on hold although they differ from Git.
    ObjectsHeld,
    /// A deletion waits for approval.
    PruneHeld,
    /// Another running daemon serves the Sync.
    HeldByOther,
    /// The Sync is in a namespace that may not use the daemon's own permissions.
    ServiceAccountRequired,
    /// A dependency has not applied the required revision yet.
    DependencyNotReady,
    /// The Sync depends on itself through other Syncs.
    DependencyCycle,
    /// The ServiceAccount lacks permissions that the plan needs.
    RightsMissing,
    /// Every object is healthy by its own status.
    Healthy,
    /// An object failed, or made no progress before its deadline.
    Degraded,
    /// The health of an object cannot be determined.
    HealthUnknown,
    /// The objects of the newest commit did not become healthy; the last healthy revision is
    /// applied again.
    RolledBack,
    /// Objects differ from their applied state.
    FieldsDiffer,
    /// Another controller keeps changing fields back.
    Contested,
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Schema of the conditions, written by hand because their Rust type has none. A map by type, so
/// that two writers do not overwrite each other's conditions.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {"type": "string", "description": "Which condition."},
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether it is so.",
                },
                "reason": {"type": "string", "description": "One word for why."},
                "message": {"type": "string", "description": "What is so, and what to do."},
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "Since when it is so.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The generation of the spec that this is said of.",
                },
            },
        },
    })
}

pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}
