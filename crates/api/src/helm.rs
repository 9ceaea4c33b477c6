//! `spec.render.helm`: settings for the rendering of a chart.
//!
//! In: YAML.
//! Out: [`HelmSpec`], which the controller validates again.

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
    /// A published chart; if it is absent, the chart is in the repository, at `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<ChartSource>,

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

    /// Values files in the repository: relative to the chart, or to the root of the repository with a leading `/`. The
    /// last one takes precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024)))]
    #[x_kube(validation = Rule::new("self.all(file, !file.contains('://'))")
        .message("write paths in the repository, such as ../values/prod.yaml: values files are not fetched from URLs"))]
    pub values_files: Vec<String>,

    /// Values that override those of valuesFiles. Do not put passwords here: everyone who may read the Sync can read them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "anything")]
    pub values: Map<String, Value>,

    /// Leave out the CustomResourceDefinitions in the chart's folder `crds`.
    #[serde(default)]
    pub skip_crds: bool,

    /// The version of Kubernetes that templates see, such as 1.33; the server's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^v?[0-9]+[.][0-9]+([.][0-9]+)?([-+][-+.0-9A-Za-z]+)?$')")
        .message("write a Kubernetes version such as 1.33 or v1.33.2"))]
    pub kube_version: Option<String>,
}

/// A published chart. It is fetched once, without credentials, and must match the digest.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[x_kube(validation = Rule::new("self.url.startsWith('oci://') != has(self.name)")
    .message("write the name of a chart in a repository; in a registry (oci://) it is the end of the URL"))]
pub struct ChartSource {
    /// A repository of charts, such as `https://charts.example.com`, or a chart in a registry, such as
    /// `oci://registry.example.com/charts/shop`.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^(https?|oci)://[^@?#[:space:]]+$')")
        .message("write https://host/path or oci://host/path, without a user, ? and #")
        .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'/[.][.](/|$)') && !self.matches(r'(?i)%(2e|2f|5c|25)|[\\]')")
        .message("write the URL without .. in it, and without codes for dots, slashes and percent signs")
        .reason(Reason::FieldValueForbidden))]
    pub url: String,

    /// The name of a chart in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9][-_.+A-Za-z0-9]*$')")
        .message("write the name of a chart, such as shop"))]
    pub name: Option<String>,

    /// The exact version of the chart.
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9][-_.+A-Za-z0-9]*$')")
        .message("write one version, such as 1.2.3: ranges are not supported"))]
    pub version: String,

    /// The digest of the chart's archive (`sha256sum shop-1.2.3.tgz`), or of its manifest in a registry: a version may be published
    /// again with other content, which the digest detects.
    #[schemars(length(min = 64, max = 71))]
    #[x_kube(validation = Rule::new("self.matches('^(sha256:)?[0-9a-f]{64}$')")
        .message("write sha256: and 64 digits from 0 to f"))]
    pub digest: String,
}

/// Schema of a mapping whose content only the chart knows.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
