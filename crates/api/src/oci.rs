//! `spec.source.oci`: an artifact of a registry, its revision, its layer and its Secret.
//!
//! In: YAML.
//! Out: [`OciSource`], a part of the spec. A wrong URL is rejected with `FieldValueForbidden`, so
//! that the API server does not quote it: it may hold a password.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArtifactVerification, CloudProvider, SecretRef};

/// An artifact of an OCI registry that holds manifests, such as one that `moorline push`, `flux push artifact` or `oras push`
/// made.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.provider) || !has(self.secretRef)")
    .message("write either provider or secretRef: the provider gives a login without a Secret")
    .field_path(".provider"),
    validation = Rule::new("!has(self.serviceAccountName) || has(self.provider)")
    .message("write provider, too: it exchanges the tokens of this ServiceAccount")
    .field_path(".serviceAccountName"))]
pub struct OciSource {
    /// `oci://host/path` of the repository in the registry, without a tag.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(
        validation = Rule::new("self.startsWith('oci://')")
            .message("write oci://host/path; an artifact is read over https only")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new("!self.contains('@')")
            .message("leave user, password and digest out of the URL; a login belongs into a Secret that secretRef names, a digest into ref.digest")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'^oci://.*/[^/]*:')")
            .message("leave the tag out of the URL; write it into ref.tag")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"self.matches(r'^oci://([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$') || self.contains('@') || self.matches(r'^oci://.*/[^/]*:')")
            .message("write the repository as registries name it: oci://host/path, the path in lower-case letters, digits, dots, dashes and underscores")
            .reason(Reason::FieldValueForbidden)
    )]
    pub url: String,

    /// The revision; defaults to the tag `latest`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<OciRef>,

    /// The Secret in the Sync's namespace with the credentials for the registry: of the type kubernetes.io/dockerconfigjson, or
    /// with username and password; also ca.crt, tls.crt and tls.key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,

    /// Only artifacts with a trusted cosign signature are applied. If a revision is refused, the status reports it, and the last
    /// accepted revision is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<ArtifactVerification>,

    /// The cloud that gives the login, in exchange for a token of a ServiceAccount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<CloudProvider>,

    /// The ServiceAccount in the Sync's namespace whose tokens the provider accepts; defaults to spec.serviceAccountName.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ServiceAccount in the Sync's own namespace, such as puller"))]
    pub service_account_name: Option<String>,

    /// The layer with the files; defaults to the only layer of the artifact, or to all if each has a title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<OciLayer>,
}

/// A revision of an artifact, named in one of three ways.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[x_kube(validation = Rule::new("[has(self.tag), has(self.semver), has(self.digest)].exists_one(given, given)")
    .message("write exactly one of tag, semver and digest; without ref, the tag latest is used"),
    validation = Rule::new("!has(self.filter) || has(self.semver)")
    .message("use filter with semver only: it selects the tags that are compared")
    .field_path(".filter"))]
pub struct OciRef {
    /// The newest artifact of this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9_][A-Za-z0-9._-]*$')")
        .message("write a tag as registries have it, such as v1.2.0: letters, digits, dots, dashes and underscores"))]
    pub tag: Option<String>,

    /// The tag with the highest version in this range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[0-9A-Za-z.*+<>=!~^|, -]+$') && self.matches(r'[0-9xX*]')")
        .message("write a range of versions such as '>=1.2.0 <2.0.0', '~1.4' or '1.x'"))]
    pub semver: Option<String>,

    /// Exactly the artifact with this digest of its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 71))]
    #[x_kube(validation = Rule::new("self.matches('^sha256:[0-9a-f]{64}$')")
        .message("write the digest of the manifest: sha256: and 64 hex digits"))]
    pub digest: Option<String>,

    /// Only tags that this regular expression matches are compared by `semver`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub filter: Option<String>,
}

/// The layer of an artifact that holds the files.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OciLayer {
    /// The media type of the layer; needed only if the artifact has several layers that do not all have titles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*$')")
        .message("write a media type such as application/vnd.cncf.flux.content.v1.tar+gzip"))]
    pub media_type: Option<String>,

    /// Extract unpacks an archive, Copy takes the layer as one file; defaults to Extract, which also takes a layer that is no
    /// archive as one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<LayerOperation>,
}

/// Use of the layer: Extract, the default, unpacks an archive; Copy takes the layer as one file.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerOperation {
    /// The files of the archive are the files of the source.
    Extract,
    /// The layer is the only file of the source.
    Copy,
}
