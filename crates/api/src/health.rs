//! `spec.health`: the conditions under which the objects of a Sync count as healthy.
//!
//! In: YAML.
//! Out: [`HealthSpec`], which the controller validates again.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{DurationText, yes};

/// Health checks of the objects after they are applied.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct HealthSpec {
    /// The Sync is Ready once its objects are applied and healthy. If this is false, being applied is enough, for Syncs
    /// that depend on it as well; the condition Healthy still reports the health.
    #[serde(default = "yes")]
    pub wait: bool,

    /// Time without progress after which an object counts as Degraded; defaults to a value for its kind, such as
    /// 10 minutes for a Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,

    /// Health rules for kinds, in the Common Expression Language over the variable `object`; they take precedence over
    /// built-in rules. An expression that uses a missing field is false.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub rules: Vec<HealthRule>,
}

/// Health rule for a kind: `degraded` is evaluated first, then `progressing`, then `healthy`. If none of them is
/// true, the object is progressing, or healthy if the rule has no `healthy`.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[x_kube(validation = Rule::new("has(self.healthy) || has(self.degraded) || has(self.progressing)")
    .message("write at least one of healthy, degraded and progressing, such as healthy: object.status.phase == 'Running'"))]
pub struct HealthRule {
    /// The API group of the kind; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,

    /// The kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// True if the object is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub healthy: Option<String>,

    /// True if the object has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub degraded: Option<String>,

    /// True if the object is progressing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub progressing: Option<String>,
}

impl Default for HealthSpec {
    fn default() -> Self {
        Self { wait: yes(), timeout: None, rules: Vec::new() }
    }
}
