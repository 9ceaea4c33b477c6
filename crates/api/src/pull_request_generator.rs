//! `pullRequests`, a generator of a `SyncSet`: the open pull requests of a repository.
//!
//! In: YAML.
//! Out: [`PullRequestGenerator`], a part of the spec. Numbers, commits and target branches become
//! parameters. Titles, names of branches and other texts of the authors do not.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretRef;

/// Open pull requests of a repository.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.github), has(self.gitlab), has(self.gitea)].exists_one(one, one)")
    .message("write exactly one of github, gitlab and gitea"))]
pub struct PullRequestGenerator {
    /// GitHub; the url is that of the API, such as `https://api.github.com` or `https://host/api/v3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<RepositoryHost>,
    /// GitLab; the url is that of the API, such as `https://gitlab.com/api/v4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitlab: Option<RepositoryHost>,
    /// Gitea or Forgejo; the url is that of the API, such as `https://host/api/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitea: Option<RepositoryHost>,

    /// The repository on that host, such as `team/shop`.
    #[schemars(length(min = 3, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$') && !self.matches('(^|/)[.][.]?(/|$)')")
        .message("write the repository as its host names it, such as team/shop"))]
    pub repository: String,

    /// Only pull requests with this label. For a pull request of a fork, the label counts for the commit to which a maintainer gave
    /// it. If absent, pull requests of forks do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub label: Option<String>,

    /// Only pull requests that are to be merged into this branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub target_branch: Option<String>,

    /// Only pull requests that were changed within so many days. The Sync of an older one is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 365))]
    pub changed_within_days: Option<u32>,
}

/// The API of a host of repositories.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryHost {
    /// The URL of the API, without user, password, query and fragment.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^(https://[^/@?#\s]+|http://(127[.]0[.]0[.]1|\[::1\])(:[0-9]+)?)(/[^@?#\s\\%]*)?$') && !self.matches(r'/[.][.](/|$)')")
        .message("write https://host/path of the API, without user, password, query and fragment")
        .reason(Reason::FieldValueForbidden))]
    pub url: String,

    /// The Secret in the SyncSet's namespace with the key token, which may read pull requests, and ca.crt if the host needs it.
    pub secret_ref: SecretRef,
}

/// A pull request of a fork that a maintainer has allowed.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
pub struct AllowedFork {
    /// The repository that it is to be merged into.
    pub repository: String,
    /// Its number.
    pub number: u64,
    /// The commit that got the label.
    pub commit: String,
}
