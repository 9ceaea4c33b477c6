//! The custom resources `ChangeWindow` and `NamespaceChangeWindow`: times at which Syncs take up
//! new revisions.
//!
//! In: YAML.
//! Out: [`ChangeWindowSpec`], which `moorline-windows` compiles, and [`ChangeWindowStatus`]. Both
//! kinds have one spec; the namespaced one selects in its own namespace alone, and has no
//! namespaceSelector.

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

/// Times at which Syncs may, or may not, take up new revisions.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "moorline.dev",
    version = "v1alpha1",
    kind = "ChangeWindow",
    plural = "changewindows",
    shortname = "cw",
    category = "moorline",
    status = "ChangeWindowStatus",
    derive = "PartialEq",
    doc = "A ChangeWindow says when Syncs take up new revisions. Drift is repaired at any time.",
    printcolumn(
        name = "Effect",
        type_ = "string",
        json_path = ".spec.effect",
        description = "Allow or Deny"
    ),
    printcolumn(
        name = "Schedule",
        type_ = "string",
        json_path = ".spec.schedule",
        description = "Starts of the window; empty for a freeze"
    ),
    printcolumn(
        name = "Duration",
        type_ = "string",
        json_path = ".spec.duration",
        description = "Length of the window"
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = ".spec.timeZone",
        description = "Time zone of the schedule"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "True if the window can be read; a window that cannot be read is closed"
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
#[x_kube(validation = Rule::new("has(self.schedule) || self.effect == 'Deny'")
    .message("write schedule and duration: an Allow without them would always be open"),
    validation = Rule::new("has(self.schedule) == has(self.duration)")
    .message("write schedule and duration together, or neither of them"))]
pub struct ChangeWindowSpec {
    /// Allow: the selected Syncs take up new revisions only in windows that allow it. Deny: the selected Syncs take up no new revision
    /// in this window. Deny wins over Allow.
    pub effect: WindowEffect,

    /// Starts of the window, as the five fields of a CronJob: minute, hour, day of month, month, day of week. A Deny without a schedule
    /// is a freeze: it denies until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 9, max = 128))]
    pub schedule: Option<String>,

    /// The length of the window, such as 30m, 8h or 336h; at least one minute, at most 8784h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 18), regex(pattern = "^([0-9]{1,4}h)?([0-9]{1,5}m)?$"))]
    pub duration: Option<String>,

    /// The time zone of the schedule, by its IANA name, such as Europe/Berlin; UTC if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: Option<String>,

    /// The namespaces of the Syncs; all namespaces if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<WindowSelector>,

    /// The Syncs; all Syncs of the selected namespaces if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_selector: Option<WindowSelector>,

    /// The reason of the window. It is shown with a held revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
}

/// Effect of a window: Allow opens and Deny closes; Deny wins.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEffect {
    /// New revisions are taken up in the window, and held outside of it.
    Allow,
    /// New revisions are held in the window.
    Deny,
}

/// A selection by name and labels. It selects what matches every field that is set.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WindowSelector {
    /// Names of the selected objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub names: Vec<String>,
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<WindowRequirement>,
}

/// A requirement on a label.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)")
    .message("write the values of In or NotIn: without any, nothing would be selected, or everything"))]
pub struct WindowRequirement {
    /// The label.
    pub key: String,
    /// In and NotIn compare the value of the label with `values`. Exists and DoesNotExist only check if the label exists.
    pub operator: LabelOperator,
    /// The values of In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub values: Vec<String>,
}

/// Comparison with a label.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOperator {
    /// The value is one of these.
    In,
    /// The label is absent, or its value is none of these.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl WindowSelector {
    /// Returns true if name and labels match. `labels` is none if they are unknown; a result that
    /// depends on them is then none as well.
    pub fn selects(&self, name: &str, labels: Option<&BTreeMap<String, String>>) -> Option<bool> {
        if !self.names.is_empty() && !self.names.iter().any(|known| known == name) {
            return Some(false);
        }
        if !self.reads_labels() {
            return Some(true);
        }
        let labels = labels?;
        let has_all = self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        Some(has_all && self.match_expressions.iter().all(|it| it.fits(labels)))
    }

    /// True if the selection depends on labels.
    pub fn reads_labels(&self) -> bool {
        !self.match_labels.is_empty() || !self.match_expressions.is_empty()
    }
}

impl WindowRequirement {
    /// True if the labels meet the requirement.
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            LabelOperator::In => value.is_some_and(|value| self.values.contains(value)),
            LabelOperator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// Observed state of the window, as the daemon reports it.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ChangeWindowStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready: True while schedule, duration and time zone can be read. While it is False, the window is closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::status::conditions")]
    pub conditions: Vec<Condition>,
}

/// A revision that a closed window holds.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HeldByWindow {
    /// The revision.
    pub revision: String,
    /// Hash of the plan, for the annotation moorline.dev/override.
    pub hash: String,
    /// The window, such as `ChangeWindow nightly`.
    pub by: String,
    /// The time at which the window opens, such as `2026-12-01 08:00 Europe/Berlin`; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The number of objects that are created.
    #[serde(default)]
    pub created: i64,
    /// The number of objects that are changed.
    #[serde(default)]
    pub changed: i64,
    /// The number of objects that are deleted.
    #[serde(default)]
    pub pruned: i64,
    /// The plan, such as `update Deployment.apps shop/web`; only the first lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<String>,
}

/// A revision that a person applied in a closed window.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct OverriddenRevision {
    /// The revision.
    pub revision: String,
    /// Hash of the plan that was shown.
    pub hash: String,
    /// The person.
    pub by: String,
    /// The reason.
    pub reason: String,
    /// The renderDigest of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selection_fits_everything_that_is_set() {
        let labels = BTreeMap::from([("tier".to_owned(), "prod".to_owned())]);
        let one = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, known, unknown) in [
            (json!({}), Some(true), Some(true)),
            (json!({"names": ["shop", "web"]}), Some(true), Some(true)),
            (json!({"names": ["web"]}), Some(false), Some(false)),
            (json!({"names": ["web"], "matchLabels": {"tier": "prod"}}), Some(false), Some(false)),
            (json!({"matchLabels": {"tier": "prod"}}), Some(true), None),
            (json!({"matchLabels": {"tier": "prod", "team": "a"}}), Some(false), None),
            (one("tier", "In", &["dev", "prod"]), Some(true), None),
            (one("team", "In", &["a"]), Some(false), None),
            (one("tier", "NotIn", &["prod"]), Some(false), None),
            (one("team", "NotIn", &["a"]), Some(true), None),
            (one("tier", "Exists", &[]), Some(true), None),
            (one("tier", "DoesNotExist", &[]), Some(false), None),
        ] {
            let parsed: WindowSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(parsed.selects("shop", Some(&labels)), known, "{selector}");
            assert_eq!(parsed.selects("shop", None), unknown, "{selector}");
        }
    }
}
