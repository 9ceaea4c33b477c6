//! `ociTags`, a generator of a `SyncSet`: the tags of a repository in a registry.
//!
//! In: YAML.
//! Out: [`TagGenerator`], a part of the spec. Only the names of the tags become parameters.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::SecretRef;

/// Tags of a repository in a registry.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.semver) || has(self.filter)")
    .message("write semver, filter or both: without them, every tag would become a Sync"),
    validation = Rule::new("!has(self.newest) || has(self.semver)")
    .message("write semver, too: newest counts versions")
    .field_path(".newest"))]
pub struct TagGenerator {
    /// `oci://host/path` of the repository in the registry, without a tag.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^oci://([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$')")
        .message("write the repository as registries name it, without a login and a tag: oci://host/path, the path in lower-case letters, digits, dots, dashes and underscores")
        .reason(Reason::FieldValueForbidden))]
    pub url: String,

    /// Only tags whose version is in this range, such as `>=1.2.0 <2.0.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub semver: Option<String>,

    /// Only tags that this regular expression matches, such as `^pr-[0-9]+$`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub filter: Option<String>,

    /// Only this number of tags, those with the highest versions. A Sync of an older tag is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub newest: Option<u32>,

    /// The Secret in the SyncSet's namespace with the credentials for the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}
