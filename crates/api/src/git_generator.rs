//! `git`, a generator of a `SyncSet`: folders or files of a repository.
//!
//! In: YAML.
//! Out: [`GitGenerator`], a part of the spec.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{GitRef, SecretRef};

/// Folders or files of a Git repository.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.folders) != has(self.files)")
    .message("write exactly one of folders and files"),
    validation = Rule::new("!self.url.startsWith('http://') || !has(self.secretRef)")
    .message("use https:// in the URL: with plain http, the Secret of secretRef would be sent unencrypted")
    .field_path(".url"))]
pub struct GitGenerator {
    /// `https://host/path`, `ssh://user@host/path` or `user@host:path`, without user and password for https, which
    /// belong in a Secret.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(
        validation = Rule::new(r"self.matches(r'^(https?|ssh)://') || self.matches(r'^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*:([^/]|/[^/])')")
            .message("write https://host/path, ssh://user@host/path or user@host:path; other URLs and local paths are not supported")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'^https?://[^/]*@') && !self.matches(r'^ssh://[^/]*:[^/]*@') && !self.matches(r'[?#\s]')")
            .message("leave user, password, spaces, query and fragment out of the URL; put a login into a Secret and name it in secretRef")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.contains('://') || self.matches(r'^[a-z]+://[^/]+/[^/]')")
            .message("write the path of a repository behind the host, such as https://host/group/repository.git")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'[/:][.][.](/|$)') && !self.matches(r'(?i)%(2e|2f|5c|25)|[\\]')")
            .message("write the path of the repository without .. in it, and without codes for dots, slashes and percent signs")
            .reason(Reason::FieldValueForbidden)
    )]
    pub url: String,

    /// The revision; defaults to the default branch of the repository.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,

    /// The Secret in the SyncSet's namespace with the credentials for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,

    /// A set of parameters for each folder: `folder.path`, `folder.name` and `folder.parts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folders: Option<PathPatterns>,

    /// A set of parameters for each file: its content, which is a mapping in YAML or JSON, and `file.path`, `file.folder` and
    /// `file.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<PathPatterns>,
}

/// Selects paths of a repository.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct PathPatterns {
    /// Globs such as `apps/*`; `**` crosses folders.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 512)))]
    #[x_kube(validation = Rule::new("self.all(glob, !glob.startsWith('/') && !glob.contains('..'))")
        .message("write globs such as apps/*: no / in front, and no .. in them"))]
    pub include: Vec<String>,

    /// Globs of paths that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 512)))]
    pub exclude: Vec<String>,
}
