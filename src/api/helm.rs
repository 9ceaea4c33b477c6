//! What a person writes in `spec.render.helm`: how a chart is rendered.
//!
//! In: YAML. Out: [`HelmSpec`], which `sync/wish/helm.rs` checks again.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a chart is rendered.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HelmSpec {
    /// The name of the release; the Sync's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 53))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')")
        .message("write lower-case letters, digits, - and ., beginning and ending with a letter or digit"))]
    pub release_name: Option<String>,

    /// The namespace of the release, as templates see it; targetNamespace if absent, else the Sync's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("write the name of a namespace: lower-case letters, digits and -"))]
    pub namespace: Option<String>,

    /// Files of values in the repository: relative to the chart, or to the root of the repository with `/` in front. The
    /// last one counts most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024)))]
    #[x_kube(validation = Rule::new("self.all(file, !file.contains('://'))")
        .message("write paths in the repository, such as ../values/prod.yaml: no file of values is fetched"))]
    pub values_files: Vec<String>,

    /// Values that count more than those of files. Never a password: whoever may read the Sync reads them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "anything")]
    pub values: Map<String, Value>,

    /// Leave out the definitions in the chart's folder `crds`.
    #[serde(default)]
    pub skip_crds: bool,

    /// The version of Kubernetes that templates see, such as 1.33; the server's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^v?[0-9]+[.][0-9]+([.][0-9]+)?([-+][-+.0-9A-Za-z]+)?$')")
        .message("write a version of Kubernetes such as 1.33 or v1.33.2"))]
    pub kube_version: Option<String>,
}

/// A mapping of which only the chart knows what is in it.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
