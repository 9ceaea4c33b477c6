//! The custom resource `SyncSet`: many Syncs from one template.
//!
//! In: YAML.
//! Out: [`SyncSetSpec`], which `moorline-sync-set` turns into Syncs, and [`SyncSetStatus`]. The API
//! server evaluates the rules here. Hosts, Secrets and ServiceAccounts are literals: only admission
//! policies and people decide on them, never a generated value. A cluster may be one that a
//! generator of clusters found.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::sync_set_rollout::{RolloutStatus, SetRollout};
use super::{
    AllowedFork, ClusterGenerator, DeletionPolicy, DurationText, GitGenerator, PruneBudget,
    PullRequestGenerator, SyncSpec, TagGenerator,
};

/// Many Syncs from one template.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "moorline.dev",
    version = "v1alpha1",
    kind = "SyncSet",
    plural = "syncsets",
    namespaced,
    shortname = "sys",
    category = "moorline",
    status = "SyncSetStatus",
    derive = "PartialEq",
    doc = "A SyncSet creates a Sync for each set of parameters that its generators give.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "True if every Sync of the set is as desired and ready"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Reason of the Ready condition"
    ),
    printcolumn(
        name = "Syncs",
        type_ = "integer",
        json_path = ".status.children.desired",
        description = "Number of Syncs that the generators give"
    ),
    printcolumn(
        name = "SyncsReady",
        type_ = "integer",
        json_path = ".status.children.ready",
        description = "Number of these Syncs that are ready"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        description = "The problem and its solution",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 30")
        .message("give the SyncSet a name of at most 30 characters: the names of its Syncs begin with it, and have a limit")
)]
#[serde(rename_all = "camelCase")]
pub struct SyncSetSpec {
    /// Sources of parameters. Each set of parameters becomes one Sync.
    #[schemars(length(min = 1, max = 4))]
    pub generators: Vec<Generator>,

    /// The last part of a Sync's name, as an expression in CEL over `params`, such as `params.folder.name`. The name of a Sync is the
    /// name of the SyncSet, a dash, and this text. Upper case letters become lower case, and other characters become dashes. A hash
    /// follows if the text was changed or shortened.
    #[schemars(length(min = 1, max = 1024))]
    pub name: String,

    /// The Sync that each set of parameters becomes.
    pub template: SyncTemplate,

    /// Fields of the template whose value differs between the Syncs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub set: Vec<FieldValue>,

    /// The ServiceAccount in the SyncSet's namespace that is impersonated to write the Syncs; defaults to the daemon's own, which
    /// only SyncSets in the daemon's namespace may use. It needs permission to create, patch and delete Syncs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ServiceAccount in the SyncSet's own namespace, such as deployer"))]
    pub service_account_name: Option<String>,

    /// Interval of polls of the repositories, and of lists of the clusters' Secrets; 1m if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<DurationText>,

    /// Rules for the removal of Syncs that the generators no longer give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<SyncRemoval>,

    /// Stages in which new specs of the Syncs go out; absent: all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<SetRollout>,

    /// Rule for the Syncs when the SyncSet is deleted: Orphan, the default, leaves them; Delete deletes them, each by its own
    /// deletionPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "deletion_policy")]
    pub on_delete: Option<DeletionPolicy>,

    /// While this is true, nothing is polled and no Sync is written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// A source of parameters.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.list), has(self.git), has(self.clusters), has(self.ociTags), has(self.pullRequests), has(self.matrix), has(self.merge)].exists_one(one, one)")
    .message("write exactly one of list, git, clusters, ociTags, pullRequests, matrix and merge in each generator"))]
pub struct Generator {
    /// Parameters that are written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<ListGenerator>,

    /// Folders or files of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitGenerator>,

    /// Secrets with the kubeconfigs of clusters: a set of parameters for each, with `cluster.name`, `cluster.labels` and
    /// `cluster.annotations`. Its content is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterGenerator>,

    /// Tags of a repository in a registry: a set of parameters for each, with `tag.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_tags: Option<TagGenerator>,

    /// Open pull requests of a repository: a set of parameters for each, with `pull.number`, `pull.commit` and
    /// `pull.targetBranch`. Their Syncs need a ServiceAccount of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_requests: Option<PullRequestGenerator>,

    /// Every combination of the parameters of two generators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 2))]
    pub matrix: Option<Vec<NestedGenerator>>,

    /// The parameters of one generator, changed by those of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeGenerator>,
}

/// A generator inside another generator.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.list), has(self.git), has(self.clusters), has(self.ociTags), has(self.pullRequests)].exists_one(one, one)")
    .message("write exactly one of list, git, clusters, ociTags and pullRequests in each inner generator"))]
pub struct NestedGenerator {
    /// Parameters that are written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<ListGenerator>,

    /// Folders or files of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitGenerator>,

    /// Secrets with the kubeconfigs of clusters: a set of parameters for each, with `cluster.name`, `cluster.labels` and
    /// `cluster.annotations`. Its content is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterGenerator>,

    /// Tags of a repository in a registry: a set of parameters for each, with `tag.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_tags: Option<TagGenerator>,

    /// Open pull requests of a repository: a set of parameters for each, with `pull.number`, `pull.commit` and
    /// `pull.targetBranch`. Their Syncs need a ServiceAccount of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_requests: Option<PullRequestGenerator>,
}

/// Parameters that are written in the SyncSet.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct ListGenerator {
    /// Sets of parameters, each a mapping of any names and values.
    #[schemars(schema_with = "elements")]
    pub elements: Vec<Map<String, Value>>,
}

/// The parameters of one generator, changed by those of others.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct MergeGenerator {
    /// Names of parameters, such as `name` or `folder.name`. Sets with equal values of these belong together.
    #[schemars(length(min = 1, max = 8), inner(length(min = 1, max = 128)))]
    pub keys: Vec<String>,

    /// The first generator gives the sets. Each later one changes the sets with the same keys, and adds none.
    #[schemars(length(min = 2, max = 4))]
    pub generators: Vec<NestedGenerator>,
}

/// The Sync that each set of parameters becomes.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct SyncTemplate {
    /// Labels and annotations of each Sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,

    /// The spec of each Sync. It is valid without the fields of `set`.
    pub spec: SyncSpec,
}

/// Labels and annotations of each Sync.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
pub struct TemplateMetadata {
    /// Labels of each Sync.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = Rule::new("self.all(key, !key.startsWith('moorline.dev/'))")
        .message("leave out labels of moorline.dev: a Sync has the instance of its SyncSet"))]
    #[schemars(extend("maxProperties" = 32))]
    pub labels: BTreeMap<String, String>,

    /// Annotations of each Sync.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = Rule::new("self.all(key, !key.startsWith('moorline.dev/'))")
        .message("leave out annotations of moorline.dev: approvals and holds are for people"))]
    #[schemars(extend("maxProperties" = 32))]
    pub annotations: BTreeMap<String, String>,
}

/// A field with a value of its own in each Sync.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[x_kube(validation = Rule::new("self.field != '/spec/cluster/secretRef/name' || self.value == 'params.cluster.name'")
    .message("write params.cluster.name: the cluster of a Sync is a literal of the template, or the Secret that a clusters generator found")
    .field_path(".value"))]
pub struct FieldValue {
    /// The field as a JSON pointer, such as /spec/path or /spec/targetNamespace. URLs, Secrets and ServiceAccounts cannot be set, but
    /// /spec/cluster/secretRef/name to params.cluster.name, the Secret that a clusters generator found.
    #[schemars(length(min = 2, max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^/(spec|metadata/labels|metadata/annotations)(/([^/~]|~[01])+)+$')")
        .message("write a JSON pointer such as /spec/targetNamespace, /spec/path or /metadata/labels/team"))]
    pub field: String,

    /// An expression in CEL over `params`, such as `params.folder.path`. Its value must have the type of the field.
    #[schemars(length(min = 1, max = 2048))]
    pub value: String,
}

/// Rules for the removal of Syncs that the generators no longer give.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct SyncRemoval {
    /// False keeps these Syncs; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Limits of one removal without approval. A removal that exceeds every given limit waits for approval. The defaults are one Sync
    /// and 10 percent. A removal of all Syncs always waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<PruneBudget>,
}

/// Observed state of the SyncSet, as the daemon reports it.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SyncSetStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ready: True while every Sync of the set is as desired and ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::status::conditions")]
    pub conditions: Vec<Condition>,

    /// Numbers of Syncs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<SetCounts>,

    /// The revisions of the repositories that give the parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<SetRevision>,

    /// Pull requests of forks that count, each with the commit to which a maintainer gave the label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_forks: Vec<AllowedFork>,

    /// A removal that waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<HeldRemoval>,

    /// The stage of the roll-out that is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
}

/// Numbers of Syncs of a set.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetCounts {
    /// Number of Syncs that the generators give.
    pub desired: i32,
    /// Number of these Syncs that are ready.
    pub ready: i32,
    /// Number of Syncs that the generators no longer give, and that are not removed yet.
    #[serde(default)]
    pub held: i32,
}

/// The revision of a repository that parameters come from.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
pub struct SetRevision {
    /// The URL of the repository.
    pub url: String,
    /// The revision.
    pub revision: String,
}

/// A removal that waits for approval.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
pub struct HeldRemoval {
    /// The value of the annotation moorline.dev/approve that approves it.
    pub hash: String,
    /// The Syncs that it removes; only the first ones.
    pub syncs: Vec<String>,
}

/// Schema of `onDelete`. A reference to the enum would have the description of the enum.
fn deletion_policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["Orphan", "Delete"]})
}

fn elements(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "minItems": 1, "maxItems": 500,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}
