//! `spec.rollout` of a `SyncSet`: the stages in which a change of the template goes out.
//!
//! In: YAML.
//! Out: [`SetRollout`], which `moorline-sync-set` decides with, and [`RolloutStatus`].

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{DurationText, WindowRequirement};

/// The stages in which new specs of Syncs go out.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SetRollout {
    /// The stages in their order. A Sync belongs to the first one that selects its labels; Syncs that none selects come last.
    #[schemars(length(min = 1, max = 16))]
    pub stages: Vec<RolloutStage>,

    /// Rule for a degraded Sync of a stage: Stop, the default, writes nothing further until it is healthy, or until the template has
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(validation = Rule::new("self == 'Stop'")
        .message("write Stop: Revert is not supported yet; to return a stage, take the change of the template back"))]
    pub on_failure: Option<String>,
}

/// Syncs that are written together.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.matchLabels) || has(self.matchExpressions)")
    .message("select the Syncs of the stage by matchLabels or matchExpressions; Syncs that no stage selects come last"))]
pub struct RolloutStage {
    /// Labels of the Syncs with their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,

    /// Requirements on labels of the Syncs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub match_expressions: Option<Vec<WindowRequirement>>,

    /// The number of Syncs of the stage that may be not ready or not healthy at one time, such as 2, or a share of them, such as 25%,
    /// which is rounded down, but to 1 at least; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_percent")]
    pub max_unavailable: Option<IntOrString>,

    /// Time for which all Syncs of the stage have to be ready and healthy without interruption before the next stage begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_for: Option<DurationText>,
}

/// A roll-out in progress.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The number of the stage, from 1. Syncs that no stage selects are one more stage.
    pub stage: i32,

    /// The Syncs that have to be ready and healthy first; only the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<String>,

    /// The time until which all Syncs of the stage have to stay healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::status::time")]
    pub until: Option<Time>,
}

fn count_or_percent(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 1,
        "pattern": "^(100|[1-9][0-9]?)%$",
    })
}
