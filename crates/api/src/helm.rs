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

use crate::artifact_verification::ArtifactVerification;
use crate::git::SecretRef;
use crate::identity::CloudProvider;
use crate::substitute::ValuesKind;

/// Options for a chart.
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

    /// ConfigMaps and Secrets in the Sync's own namespace with values that override those of valuesFiles; the last one takes
    /// precedence. They are read with the permissions of the Sync, and watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub values_from: Vec<HelmValuesFrom>,

    /// Values that override those of valuesFiles and valuesFrom. Do not put passwords here: everyone who may read the Sync can
    /// read them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "anything")]
    pub values: Map<String, Value>,

    /// Templates see an upgrade (`.Release.IsUpgrade`) instead of an installation, at each commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_upgrade: bool,

    /// Leave out the CustomResourceDefinitions in the chart's folder `crds`.
    #[serde(default)]
    pub skip_crds: bool,

    /// Run the tests of the chart (`helm.sh/hook: test`) after everything else in each sync of a new commit; the sync fails if
    /// one fails. Otherwise they are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test_hooks: bool,

    /// The version of Kubernetes that templates see, such as 1.33; the server's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^v?[0-9]+[.][0-9]+([.][0-9]+)?([-+][-+.0-9A-Za-z]+)?$')")
        .message("write a Kubernetes version such as 1.33 or v1.33.2"))]
    pub kube_version: Option<String>,
}

/// An object with values of a chart.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.literal) || !self.literal || has(self.targetPath)")
    .message("set targetPath: literal says how the value for that path is read"))]
pub struct HelmValuesFrom {
    /// ConfigMap or Secret. While a Secret is used, the content of the chart's objects is not shown, because a template may have
    /// put a value into any of them.
    pub kind: ValuesKind,

    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ConfigMap or Secret in the Sync's own namespace, such as shop-values"))]
    pub name: String,

    /// The key of the object; values.yaml if absent. Its text is a values file, or with targetPath one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[-._a-zA-Z0-9]+$')")
        .message("write a key of the object, such as values.yaml"))]
    pub key: Option<String>,

    /// The value that the text of the key sets, written as for `helm --set`: `db.password`, `hosts[0].name`. Without it, the text is a values file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 250))]
    #[x_kube(validation = Rule::new("self.matches('^[^=,]+$')")
        .message("write the path of one value, such as db.password or hosts[0].name"))]
    pub target_path: Option<String>,

    /// If true, the text for targetPath is taken as it is. Otherwise it is read as `helm --set` reads it: true, numbers, null, {a,b} and
    /// backslashes have a meaning, and text in quotes is a string.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub literal: bool,

    /// If true, a missing object is ignored. Otherwise the Sync reports it and keeps the last values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A published chart. Without a digest, the version is looked up with the interval of the Sync, and its digest is kept in the status.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.url.startsWith('oci://') != has(self.name)")
    .message("write the name of a chart in a repository; in a registry (oci://) it is the end of the URL"),
    validation = Rule::new("!self.url.startsWith('http://') || !has(self.secretRef)")
    .message("use https:// in the URL: with plain http, the Secret of secretRef would be sent unencrypted"),
    validation = Rule::new("!has(self.digest) || self.version.matches('^[A-Za-z0-9][-_.+A-Za-z0-9]*$')")
    .message("write one version, such as 1.2.3, or remove the digest: a digest belongs to one version, not to a range"),
    validation = Rule::new("!has(self.verify) || self.url.startsWith('oci://')")
    .message("remove verify: only charts in registries (oci://) have signatures that can be verified"),
    validation = Rule::new("!has(self.verify) || !has(self.digest)")
    .message("write verify or digest, not both: a digest names one content, so it needs no signature"),
    validation = Rule::new("!has(self.provider) || self.url.startsWith('oci://')")
    .message("use oci:// in the URL: the provider gives a login for registries only")
    .field_path(".url"),
    validation = Rule::new("!has(self.provider) || !has(self.secretRef)")
    .message("write either provider or secretRef: the provider gives a login without a Secret")
    .field_path(".provider"),
    validation = Rule::new("!has(self.serviceAccountName) || has(self.provider)")
    .message("write provider, too: it exchanges the tokens of this ServiceAccount")
    .field_path(".serviceAccountName"))]
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

    /// The version of the chart, or a range of versions such as `1.x`, `~1.4` or `>=1.2.0 <2.0.0`, of which the highest is used. A tag of a
    /// registry that is no version, such as `latest`, is followed.
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[0-9A-Za-z.*+<>=!~^|,_ -]+$') && self.matches(r'[0-9A-Za-z*]')")
        .message("write a version such as 1.2.3, or a range such as 1.x, '~1.4' or '>=1.2.0 <2.0.0'"))]
    pub version: String,

    /// The digest of the chart's archive (`sha256sum shop-1.2.3.tgz`), or of its manifest in a registry. It detects a version that is
    /// published again with other content. Without it, the first digest that the server announces for a version is kept, and other
    /// content under that version is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 71))]
    #[x_kube(validation = Rule::new("self.matches('^(sha256:)?[0-9a-f]{64}$')")
        .message("write sha256: and 64 digits from 0 to f"))]
    pub digest: Option<String>,

    /// The Secret in the Sync's namespace with the credentials for the server: username and password, bearerToken, .dockerconfigjson, tls.crt
    /// and tls.key, ca.crt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,

    /// Only versions with a trusted cosign signature are used. It is for charts of a registry, and not together with `digest`.
    /// Dependencies of the chart are not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<ArtifactVerification>,

    /// The cloud that gives the login for a registry, in exchange for a token of a ServiceAccount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<CloudProvider>,

    /// The ServiceAccount in the Sync's namespace whose tokens the provider accepts; defaults to spec.serviceAccountName.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ServiceAccount in the Sync's own namespace, such as puller"))]
    pub service_account_name: Option<String>,
}

/// Schema of a mapping whose content only the chart knows.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
