//! `spec.source.mounts`: other sources whose files lie in a folder of the source.
//!
//! In: YAML.
//! Out: [`SourceMount`], a part of the spec.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GitSource, OciSource};

/// Maximum number of mounts of a Sync.
pub const MAX_MOUNTS: usize = 8;

/// Another source, with its own revision, login and signatures. Its files are put into a folder of the main source.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[x_kube(validation = Rule::new("has(self.git) != has(self.oci)")
    .message("write exactly one of git and oci: a mount has one source"))]
pub struct SourceMount {
    /// The folder of the main source for the files, such as `vendor/base`. It must not exist in the main source, nor be inside
    /// the folder of another mount.
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^([.]/)*[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*/?$') && !self.matches(r'(^|/)[.][.](/|$)') && !self.matches(r'^[./]+$')")
        .message("write a folder inside the repository such as vendor/base: no / in front, no .. in it, and only letters, digits, dots, dashes and underscores"))]
    pub path: String,

    /// A Git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,

    /// An artifact of an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
}

/// A mount of the applied revision.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedMount {
    /// Its folder.
    pub path: String,
    /// Its revision, as `main@1f0c...`, or `tag@sha256:1f0c...` of an artifact.
    pub revision: String,
}
