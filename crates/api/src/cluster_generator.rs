//! `clusters`, a generator of a `SyncSet`: the Secrets with the kubeconfigs of clusters.
//!
//! In: YAML.
//! Out: [`ClusterGenerator`], a part of the spec. Only names, labels and annotations of the Secrets
//! become parameters.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LabelOperator;

/// Secrets with kubeconfigs, which labels select.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq, Eq)]
pub struct ClusterGenerator {
    /// Labels of the Secrets, which are in the SyncSet's own namespace. A Secret has to fit everything that is written.
    pub selector: ClusterSelector,

    /// The key of the kubeconfig in each of these Secrets; absent leaves the one of the template, or the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[-._a-zA-Z0-9]+$')")
        .message("write a key of the Secrets, such as kubeconfig"))]
    pub key: Option<String>,
}

/// Labels that select Secrets.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.matchLabels) || has(self.matchExpressions)")
    .message("write matchLabels or matchExpressions: without labels, every Secret would be taken for a cluster"))]
pub struct ClusterSelector {
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("minProperties" = 1, "maxProperties" = 16))]
    pub match_labels: BTreeMap<String, String>,

    /// Conditions on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub match_expressions: Vec<LabelCondition>,
}

/// A condition on a label.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
pub struct LabelCondition {
    /// The key of the label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,

    /// In and NotIn compare the value with `values`; Exists and DoesNotExist have none.
    pub operator: LabelOperator,

    /// Values for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    pub values: Vec<String>,
}
