//! `spec.source`: the source of a `Sync`; the Git repository, its revision and its Secrets.
//!
//! In: YAML.
//! Out: [`Source`], a part of the spec. The API server evaluates the rules here, as it does those
//! in `sync.rs`: the Git client would refuse the same values, but only later, in a status that the
//! author may no longer read. A wrong URL is rejected with `FieldValueForbidden`, not
//! `FieldValueInvalid`: the server quotes an invalid value, and so any password in it.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GitProvider, OciSource, SourceMount};

/// Source of the manifests: a Git repository or an artifact.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[x_kube(validation = Rule::new("has(self.git) != has(self.oci)")
    .message("write exactly one of git and oci: a Sync has one source"))]
pub struct Source {
    /// A Git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,

    /// An artifact of an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,

    /// Other sources, each of whose files lie in a folder of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub mounts: Vec<SourceMount>,
}

/// A Git repository.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!self.url.startsWith('http://') || !has(self.secretRef)")
    .message("use https:// in the URL: with plain http, the Secret of secretRef would be sent unencrypted")
    .field_path(".url"),
    validation = Rule::new("!has(self.verify) || self.verify.mode == 'HEAD' || has(self.ref) && (has(self.ref.tag) || has(self.ref.semver))")
    .message("set ref.tag or ref.semver: the mode requires a signed tag")
    .field_path(".verify"),
    validation = Rule::new("!has(self.verify) || self.verify.mode != 'HEAD' || !has(self.ref) || !has(self.ref.semver)")
    .message("use mode Tag or TagAndHEAD with ref.semver: with HEAD, everyone who may push could tag an old signed commit with any version")
    .field_path(".verify"),
    validation = Rule::new("!has(self.provider) || self.url.startsWith('https://')")
    .message("use https:// in the URL: the provider gives a login for https only")
    .field_path(".url"),
    validation = Rule::new("!has(self.provider) || !has(self.secretRef)")
    .message("write either provider or secretRef: the provider gives a login without a Secret")
    .field_path(".provider"),
    validation = Rule::new("!has(self.serviceAccountName) || has(self.provider)")
    .message("write provider, too: it exchanges the tokens of this ServiceAccount")
    .field_path(".serviceAccountName"))]
pub struct GitSource {
    /// `https://host/path`, `ssh://user@host/path` or `user@host:path`, without user and password for https, which
    /// belong in a Secret.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(
        validation = Rule::new(r"self.matches(r'^(https?|ssh)://') || self.matches(r'^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*:([^/]|/[^/])')")
            .message("write https://host/path, ssh://user@host/path or user@host:path; other URLs and local paths are not supported")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'^https?://[^/]*@')")
            .message("leave user, password and token out of the URL; put them into a Secret (username, password) and name it in secretRef")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'^ssh://[^/]*:[^/]*@')")
            .message("leave the password out of the URL; put a key into a Secret (ssh-privatekey, known_hosts) and name it in secretRef")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'[?#\s]')")
            .message("remove spaces, the query (?) and the fragment (#) from the URL")
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

    /// The Secret in the Sync's namespace with the credentials for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,

    /// A cloud that gives the login, in exchange for a token of a ServiceAccount: Azure for Azure DevOps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<GitProvider>,

    /// The ServiceAccount in the Sync's namespace whose tokens the provider accepts; defaults to spec.serviceAccountName.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ServiceAccount in the Sync's own namespace, such as puller"))]
    pub service_account_name: Option<String>,

    /// Only revisions with a trusted signature are applied. Of a branch, only descendants of the applied commit are applied. If a
    /// revision is refused, the status reports it, and the last accepted revision is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<SignatureVerification>,

    /// If true, submodules on the same server are read as well. They are fetched with the same Secret.
    #[serde(default)]
    pub submodules: bool,
}

/// Required signatures and trusted keys.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SignatureVerification {
    /// The objects that must be signed: HEAD is the commit, Tag is the annotated tag that points to it, TagAndHEAD is both.
    #[serde(default)]
    pub mode: VerifyMode,

    /// The Secret in the Sync's namespace with the trusted public keys as values: ssh public keys or lines of an
    /// allowed_signers file, or armoured OpenPGP keys.
    pub secret_ref: SecretRef,
}

/// The objects that must be signed: HEAD is the commit, Tag is the annotated tag that points to it, TagAndHEAD is both.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VerifyMode {
    /// The commit.
    #[default]
    #[serde(rename = "HEAD")]
    Head,
    /// The annotated tag that points to it.
    Tag,
    /// Both of them.
    #[serde(rename = "TagAndHEAD")]
    TagAndHead,
}

/// A revision of a repository, named in one of four ways.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[x_kube(validation = Rule::new("[has(self.branch), has(self.tag), has(self.semver), has(self.commit)].exists_one(given, given)")
    .message("write exactly one of branch, tag, semver and commit; without ref, the default branch of the repository is used"))]
pub struct GitRef {
    /// The newest commit of this branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 244))]
    #[x_kube(validation = Rule::new(r"self != '@' && !self.matches(r'[\x00-\x20\x7f~^:?*\[\\]|[.][.]|@[{]|^[-/]|/$|//|[.]$|[.]lock(/|$)|(^|/)[.]')")
        .message("write the name of a branch as Git has it, such as main or release/1.2"))]
    pub branch: Option<String>,

    /// The commit of this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 244))]
    #[x_kube(validation = Rule::new(r"self != '@' && !self.matches(r'[\x00-\x20\x7f~^:?*\[\\]|[.][.]|@[{]|^[-/]|/$|//|[.]$|[.]lock(/|$)|(^|/)[.]')")
        .message("write the name of a tag as Git has it, such as v1.2.0"))]
    pub tag: Option<String>,

    /// The tag with the highest version in this range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[0-9A-Za-z.*+<>=!~^|, -]+$') && self.matches(r'[0-9xX*]')")
        .message("write a range of versions such as '>=1.2.0 <2.0.0', '~1.4' or '1.x'"))]
    pub semver: Option<String>,

    /// Exactly this commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-fA-F]{40}$')")
        .message("write all 40 hex digits of the commit; git rev-parse prints them"))]
    pub commit: Option<String>,
}

/// A Secret in the Sync's own namespace.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct SecretRef {
    /// The name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a Secret in the Sync's own namespace, such as repository-login"))]
    pub name: String,
}
