//! `spec` of a `Sync`, with the validation and the defaults of the API server.
//!
//! In: YAML.
//! Out: [`SyncSpec`], which the controller validates again and converts. `kubectl explain` shows
//! the comments on fields. Every rule has a message that says which value to write instead, and
//! every text and list has a bound, so that the rules stay within the server's cost limit for CEL.
//! CEL rules are used even where a pattern would do, because a pattern's error message explains
//! nothing.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ApprovalPolicy, ClusterTarget, DecryptionSpec, DurationText, HealthSpec, RenderSpec, Source, SyncStatus,
    yes,
};

/// A folder of a Git repository that is synced to a cluster.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "moorline.dev",
    version = "v1alpha1",
    kind = "Sync",
    plural = "syncs",
    namespaced,
    shortname = "sy",
    category = "moorline",
    status = "SyncStatus",
    derive = "PartialEq",
    doc = "A Sync keeps the objects of a cluster in sync with a folder of a Git repository.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "True if the newest revision is applied completely"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Reason of the Ready condition"
    ),
    printcolumn(
        name = "Revision",
        type_ = "string",
        json_path = ".status.revision.short",
        description = "Last revision that was applied completely"
    ),
    printcolumn(
        name = "Objects",
        type_ = "integer",
        json_path = ".status.objects.applied",
        description = "Number of objects applied as in Git"
    ),
    printcolumn(
        name = "Drift",
        type_ = "integer",
        json_path = ".status.objects.drifted",
        description = "Number of objects that differ from their applied state"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Healthy",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Healthy")].status"#,
        description = "True if every object is healthy",
        priority = 1
    ),
    printcolumn(
        name = "Suspended",
        type_ = "boolean",
        json_path = ".spec.suspend",
        description = "True if the Sync is suspended",
        priority = 1
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.cluster.secretRef.name",
        description = "Secret of the cluster in which the objects live, if it is another one",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        description = "Progress, or the problem and its solution",
        priority = 1
    ),
    validation = Rule::new("size(self.metadata.name) <= 52")
        .message("give the Sync a name of at most 52 characters: it is part of a field manager's name, which has a limit"),
    validation = Rule::new("!has(self.spec.dependsOn) || self.spec.dependsOn.all(on, on.name != self.metadata.name || has(on.namespace))")
        .message("name another Sync in dependsOn: a Sync cannot depend on itself")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!self.createNamespace || has(self.targetNamespace)")
        .message("set targetNamespace to the namespace to create")
        .field_path(".createNamespace"),
    validation = Rule::new("has(self.cluster) == has(oldSelf.cluster) && (!has(self.cluster) || self.cluster == oldSelf.cluster)")
        .message("create another Sync for another cluster: spec.cluster cannot be changed")
)]
pub struct SyncSpec {
    /// Source of the manifests.
    pub source: Source,

    /// The folder (or one file) inside the repository, such as `./clusters/prod`.
    #[serde(default = "root")]
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new(r"!self.startsWith('/') && !self.matches(r'(^|/)[.][.](/|$)')")
        .message("write a path inside the repository such as ./clusters/prod: no / in front, and no .. in it"))]
    pub path: String,

    /// The cluster in which the objects live; defaults to the Sync's own. It cannot be changed. The kubeconfig is the
    /// identity of the Sync there, and serviceAccountName its identity at home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterTarget>,

    /// Decryption of encrypted files before anything is rendered. Without it, they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<DecryptionSpec>,

    /// Options for rendering the files to objects.
    #[serde(default)]
    pub render: RenderSpec,

    /// The namespace of objects without one; defaults to the Sync's own namespace. A namespace in a manifest is
    /// never overridden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("write the name of a namespace: lower-case letters, digits and -, such as shop-prod"))]
    pub target_namespace: Option<String>,

    /// Creates the target namespace if it is missing. It is never pruned.
    #[serde(default)]
    pub create_namespace: bool,

    /// Rules for objects that are no longer in Git.
    #[serde(default)]
    pub prune: PrunePolicy,

    /// Changes that wait for the approval of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalPolicy>,

    /// Rule for the objects when the Sync is deleted: Orphan leaves them, Delete deletes them. If the Sync is suspended
    /// during its deletion, or this becomes Orphan, the deletion stops until a person decides.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Reaction to drift: changes of objects by others.
    #[serde(default)]
    pub drift: DriftPolicy,

    /// Reaction if an object exists already and another manager owns fields that Git sets: Force takes
    /// them over, Yield leaves them, Fail holds the object.
    #[serde(default)]
    pub conflicts: ConflictPolicy,

    /// Interval of polls of the repository. The cluster is watched, not polled.
    #[serde(default = "interval")]
    pub interval: DurationText,

    /// Time limit of one reconcile for fetches, for objects that other objects need, and for deletions.
    #[serde(default = "timeout")]
    pub timeout: DurationText,

    /// The ServiceAccount in the Sync's namespace that is impersonated to read and write all objects; defaults to the
    /// daemon's own, which only Syncs in the daemon's namespace may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ServiceAccount in the Sync's own namespace, such as deployer"))]
    pub service_account_name: Option<String>,

    /// Syncs that must be ready before this one applies a commit: their newest commit is applied, and their objects are
    /// healthy unless health.wait is false. Syncs of the same repository must have applied that same commit. Until then the
    /// applied revision is kept. Syncs that are deleted together are deleted in reverse order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub depends_on: Vec<Dependency>,

    /// Health checks of the objects after they are applied.
    #[serde(default)]
    pub health: HealthSpec,

    /// Reaction if the objects of a new commit do not become healthy.
    #[serde(default)]
    pub rollback: RollbackPolicy,

    /// Fields in Git that are left to other field managers, such as replicas to an autoscaler; their live value is not changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub ignore_fields: Vec<IgnoreFields>,

    /// While this is true, the repository is not polled and nothing is applied.
    #[serde(default)]
    pub suspend: bool,
}

/// Reaction if the objects of a new commit do not become healthy.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RollbackPolicy {
    /// Rolls back a commit if one of its objects or hooks fails, or an object is rejected, before all objects have been
    /// healthy. The last healthy commit is applied again, and kept until there is a newer commit.
    #[serde(default)]
    pub on_failure: bool,
}

/// A Sync that another one depends on.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// The name of that Sync.
    #[schemars(length(min = 1, max = 52))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a Sync, such as infrastructure"))]
    pub name: String,

    /// The namespace of that Sync; defaults to the namespace of the Sync that depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("write the name of a namespace: lower-case letters, digits and -, such as infra"))]
    pub namespace: Option<String>,

    /// Time for which the objects of that Sync have to be healthy without interruption before this Sync applies the commit. It
    /// begins when that Sync has applied the commit, or the last one that changed its objects. Absent: they have to be healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_for: Option<DurationText>,
}

/// Rules for objects that are no longer in Git.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct PrunePolicy {
    /// Delete objects that were removed from Git.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// Limits of one prune without approval. A prune that exceeds every given limit waits for approval. The defaults are
    /// 10 objects and 30 percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<PruneBudget>,

    /// Additional kinds that are pruned only with approval, as Kind or Kind.group. Namespaces, CustomResourceDefinitions,
    /// PersistentVolumes, PersistentVolumeClaims and StorageClasses always are, and so are kinds that hold data: databases,
    /// queues, storage and their snapshots, as docs/systems.md lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)), extend("x-kubernetes-list-type" = "set"))]
    #[x_kube(validation = Rule::new("self.all(kind, kind.matches('^[A-Za-z][A-Za-z0-9-]{0,62}([.][a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$'))")
        .message("write Kind for the core group, else Kind.group, such as Secret or Cluster.postgresql.cnpg.io"))]
    pub protect: Vec<String>,
}

/// Limits of one deletion without approval. A deletion that exceeds every given limit waits for approval.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct PruneBudget {
    /// Maximum number of objects; in a SyncSet, of Syncs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub count: Option<i32>,

    /// Maximum percentage of the objects of the Sync; in a SyncSet, of its Syncs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<i32>,
}

/// Rule for objects when their Sync is deleted.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// They stay as they are.
    #[default]
    Orphan,
    /// They are deleted, except protected kinds.
    Delete,
}

/// Reaction to changes of objects by others.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DriftPolicy {
    /// A field that Git sets: Repair sets it again at once, Report names who changed it, Ignore does not check. An object that
    /// others delete after the revision was applied: Repair creates it again at once, Report and Ignore only report it, and
    /// the next commit creates it. While drift is reported, the Sync is not Ready.
    #[serde(default)]
    pub mode: DriftMode,

    /// A field that Git does not set: Keep leaves it, Report names who added it, Remove removes it.
    #[serde(default)]
    pub extra_fields: ExtraFieldPolicy,
}

/// Reaction to a change of a field that Git sets.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DriftMode {
    /// The field is set as in Git.
    #[default]
    Repair,
    /// Changes and deletions are reported, and nothing is undone.
    Report,
    /// Changes are not checked; deletions are reported.
    Ignore,
}

/// Reaction to an added field that Git does not set.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExtraFieldPolicy {
    /// It stays.
    Keep,
    /// It stays and is reported.
    #[default]
    Report,
    /// It is removed.
    Remove,
}

/// Reaction if an object exists already and another manager owns fields that Git sets.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// They are taken over.
    #[default]
    Force,
    /// They are left to their owner; the rest of the object is applied.
    Yield,
    /// The object is held.
    Fail,
}

/// Fields of some objects that are left to others.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct IgnoreFields {
    /// The objects that this applies to; if it is empty, all objects.
    #[serde(default)]
    pub target: IgnoreTarget,

    /// The fields as JSON pointers, such as /spec/replicas.
    #[schemars(length(min = 1, max = 32), inner(length(min = 2, max = 512)), extend("x-kubernetes-list-type" = "set"))]
    #[x_kube(
        validation = Rule::new("self.all(path, path.matches('^(/([^/~]|~[01])+)+$'))")
            .message("write JSON pointers such as /spec/replicas or /metadata/annotations/example.com~1name: ~1 is a slash in a name, ~0 is ~"),
        validation = Rule::new("!self.exists(path, path in ['/apiVersion', '/kind', '/metadata', '/metadata/name', '/metadata/namespace'])")
            .message("leave out /apiVersion, /kind, /metadata, /metadata/name and /metadata/namespace: they identify the object")
    )]
    pub paths: Vec<String>,
}

/// Selects objects; an absent field matches every object.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct IgnoreTarget {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,

    /// The kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,

    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,

    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
}

impl Default for PrunePolicy {
    fn default() -> Self {
        Self { enabled: yes(), budget: None, protect: Vec::new() }
    }
}

fn root() -> String {
    "./".to_owned()
}

fn interval() -> DurationText {
    DurationText::from_text("30s")
}

fn timeout() -> DurationText {
    DurationText::from_text("5m")
}
