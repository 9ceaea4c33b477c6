//! The custom resource `Notifier`: a service that gets notifications about transitions of Syncs.
//!
//! In: YAML.
//! Out: [`NotifierSpec`], which `moorline-notify` compiles, and [`NotifierStatus`]. The API server
//! evaluates the rules here. A URL is always in the spec, so that admission policies can judge it;
//! the Secret may only add what is below it.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]
#![expect(clippy::duplicated_attributes, reason = "columns of one type each name it")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DurationText, SecretRef, Transition};

/// A service, and the notifications that are sent to it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "moorline.dev",
    version = "v1alpha1",
    kind = "Notifier",
    plural = "notifiers",
    namespaced,
    shortname = "sn",
    category = "moorline",
    status = "NotifierStatus",
    derive = "PartialEq",
    doc = "A Notifier sends notifications about transitions of Syncs to a service.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "True if the service accepted the last notification"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Reason of the Ready condition"
    ),
    printcolumn(
        name = "Transitions",
        type_ = "string",
        json_path = ".spec.transitions",
        description = "Transitions that are sent"
    ),
    printcolumn(
        name = "Suspended",
        type_ = "boolean",
        json_path = ".spec.suspend",
        description = "True if nothing is sent",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        description = "The problem and its solution",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.github), has(self.gitlab), has(self.gitea), has(self.slack), has(self.teams), has(self.alertmanager), has(self.webhook), has(self.cloudEvents)].filter(one, one).size() == 1")
    .message("write exactly one of github, gitlab, gitea, slack, teams, alertmanager, webhook and cloudEvents: a Notifier has one service"),
    validation = Rule::new("[has(self.github) && has(self.github.secretRef), has(self.gitlab) && has(self.gitlab.secretRef), has(self.gitea) && has(self.gitea.secretRef), !has(self.github) && !has(self.gitlab) && !has(self.gitea)].exists(one, one)")
    .message("write secretRef, too: a commit status needs the key token of a Secret"),
    validation = Rule::new("!has(self.webhook) || has(self.webhook.secretRef)")
    .message("write webhook.secretRef, too: its key hmac signs each request"),
    validation = Rule::new("!has(self.pullRequests) || has(self.github) || has(self.gitlab) || has(self.gitea)")
    .message("write pullRequests beside github, gitlab or gitea only: a plan is a comment on the host of the repository"))]
pub struct NotifierSpec {
    /// Commit statuses on GitHub; the url is that of the API, such as `https://api.github.com` or `https://host/api/v3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<NotifierTarget>,
    /// Commit statuses on GitLab; the url is that of the API, such as `https://gitlab.com/api/v4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitlab: Option<NotifierTarget>,
    /// Commit statuses on Gitea or Forgejo; the url is that of the API, such as `https://host/api/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitea: Option<NotifierTarget>,
    /// Messages to an incoming webhook of Slack, or of a chat with compatible webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slack: Option<NotifierTarget>,
    /// Cards to a Workflows webhook of Microsoft Teams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teams: Option<NotifierTarget>,
    /// Alerts to an Alertmanager, such as `http://alertmanager.monitoring.svc:9093`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alertmanager: Option<NotifierTarget>,
    /// JSON by POST, signed with the key hmac of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<NotifierTarget>,
    /// CloudEvents over HTTP in binary mode, with types of CDEvents for applied and rolled back revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_events: Option<NotifierTarget>,

    /// The Syncs; all Syncs of the Notifier's namespace if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syncs: Option<SyncSelector>,

    /// The transitions that are sent.
    #[schemars(length(min = 1, max = 9))]
    pub transitions: Vec<Transition>,

    /// An expression in CEL that is true for the transitions to send, such as `sync.labels.tier == 'prod'`. Its variables are sync,
    /// transition, revision, previousRevision, counts, reason and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub filter: Option<String>,

    /// An expression in CEL with the text of a notification, over the same variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub message: Option<String>,

    /// Plans of the open pull requests of the repositories, with the token of the Secret. If absent, no pull request is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_requests: Option<PullRequestOptions>,

    /// Time after a notification in which the same transition of the same Sync is not sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<DurationText>,

    /// While this is true, nothing is sent. Transitions of that time are not sent later.
    #[serde(default)]
    pub suspend: bool,
}

/// A service.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(r"!self.url.startsWith('http://') || !has(self.secretRef) || self.url.matches(r'^http://(127[.]0[.]0[.]1|\[::1\])([:/]|$)')")
    .message("use https:// in the URL: with plain http, the Secret of secretRef would be sent unencrypted")
    .field_path(".url"))]
pub struct NotifierTarget {
    /// `https://host/path`, without user and password. If the path is a secret, such as that of a chat's webhook, put the whole
    /// address into the key `url` of the Secret. That address must be below this URL.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(
        validation = Rule::new(r"self.matches(r'^https?://[^/]')")
            .message("write https://host/path")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'^https?://[^/]*@') && !self.matches(r'[?#\s]')")
            .message("leave user, password, query and fragment out of the URL; the key url of a Secret may have a query")
            .reason(Reason::FieldValueForbidden),
        validation = Rule::new(r"!self.matches(r'/[.][.](/|$)') && !self.matches(r'(?i)%(2e|2f|5c|25)|[\\]')")
            .message("write the path without .. in it, and without codes for dots, slashes and percent signs")
            .reason(Reason::FieldValueForbidden)
    )]
    pub url: String,

    /// The Secret in the Notifier's namespace: token (commit status, or a bearer token), url (the whole address), hmac (the key
    /// that signs a webhook), ca.crt (certificate authorities).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// Plans of pull requests: the changes that each would make in the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestOptions {
    /// The label by which a maintainer allows the plan of a commit of a fork. If absent, pull requests of forks have no plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub label: Option<String>,
    /// True, also if absent, writes the plan as a comment. The comment is edited when the plan changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<bool>,
    /// True, also if absent, sets a status on the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<bool>,
}

/// Selection of Syncs. It selects what matches every field that is set.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SyncSelector {
    /// Names of Syncs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub names: Vec<String>,
    /// Labels that a Sync must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Namespaces of the Syncs, or `*` for all. Only a Notifier in the namespace of the daemon may name others than its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub namespaces: Vec<String>,
}

/// Observed state of the Notifier, as the daemon reports it.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NotifierStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready: True while the spec is valid and the service accepts notifications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::status::conditions")]
    pub conditions: Vec<Condition>,
}
