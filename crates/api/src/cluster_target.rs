//! `spec.cluster` of a `Sync`: another cluster, in which the objects live.
//!
//! In: YAML.
//! Out: [`ClusterTarget`], a part of the spec.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Another cluster, in which the objects of a Sync live.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTarget {
    /// The Secret with the kubeconfig of that cluster.
    pub secret_ref: ClusterSecretRef,
}

/// A Secret in the Sync's own namespace with the kubeconfig of a cluster.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq, Eq)]
pub struct ClusterSecretRef {
    /// The name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a Secret in the Sync's own namespace, such as east-kubeconfig"))]
    pub name: String,

    /// The key of the kubeconfig in the Secret; defaults to kubeconfig, then value, then the server and config of an
    /// Argo CD cluster Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[-._a-zA-Z0-9]+$')")
        .message("write a key of the Secret, such as kubeconfig"))]
    pub key: Option<String>,
}
