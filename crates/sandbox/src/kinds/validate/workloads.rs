//! Validation of workloads and autoscalers where the rule table is not sufficient.
//!
//! In: the value that a line of `rules.txt` selects.
//! Out: the problems found there.

use serde_json::{Value, json};

use super::name_formats;
use super::{
    Cause, CustomCheck, RuleInput, forbidden, invalid, is_empty, items, required, text, unsupported,
};

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    Some(match name {
        "after-ready" => after_ready,
        "cron-name" => cron_name,
        "daemon-strategy" => daemon_strategy,
        "deployment-selector" => deployment_selector,
        "deployment-strategy" => deployment_strategy,
        "expression" => expression,
        "job-selector" => job_selector,
        "management-policy" => management_policy,
        "metric" => metric,
        "most-replicas" => most_replicas,
        "scalable-group" => scalable_group,
        "schedule" => schedule,
        "selected" => selected,
        "set-strategy" => set_strategy,
        _ => return None,
    })
}

/// True if a label selector matches the labels; `None` if it is malformed.
fn selects(selector: &Value, labels: &Value) -> Option<bool> {
    let pairs = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    let mut fine = pairs;
    for expression in items(selector.get("matchExpressions")) {
        let (key, values) =
            (expression["key"].as_str()?, items(expression.get("values")).collect::<Vec<_>>());
        let value = labels.get(key);
        fine &= match (expression["operator"].as_str()?, values.is_empty()) {
            ("In", false) => value.is_some_and(|it| values.contains(&it)),
            ("NotIn", false) => value.is_none_or(|it| !values.contains(&it)),
            ("Exists", true) => value.is_some(),
            ("DoesNotExist", true) => value.is_none(),
            _ => return None,
        };
    }
    Some(fine)
}

fn selected(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let selector = seen.section.get("selector").filter(|it| !it.is_null());
    let labels = seen.value.unwrap_or(&Value::Null);
    let place = seen.at.split(".template").next().unwrap_or_default();
    match selector.map_or(Some(false), |it| selects(it, labels)) {
        Some(true) => {}
        Some(false) => {
            causes.push(invalid(&seen.at, seen.value, "`selector` does not match template `labels`"))
        }
        None if seen.kind.kind == "Deployment" => {
            causes.push(invalid(&format!("{place}.selector"), selector, "invalid label selector"));
        }
        None => {}
    }
}

fn deployment_selector(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.is_some_and(is_empty) {
        causes.retain(|it| it.field != seen.at);
        causes.push(invalid(&seen.at, seen.value, "empty selector is invalid for deployment"));
    }
}

fn expression(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(it) = seen.value else { return };
    let none = it.get("values").is_none_or(is_empty);
    match it["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if none => {
            let words = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(required(&format!("{}.values", seen.at), words));
        }
        "Exists" | "DoesNotExist" if !none => {
            let words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(forbidden(&format!("{}.values", seen.at), words));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => {
            let at = format!("{}.operator", seen.at);
            causes.push(invalid(&at, it.get("operator"), "not a valid selector operator"));
        }
    }
    let key = it["key"].as_str().unwrap_or_default();
    let at = format!("{}.key", seen.at);
    causes.extend(name_formats::qualified(key).iter().map(|words| invalid(&at, it.get("key"), words)));
}

/// Returns an unknown strategy type; the message prints the whole strategy as Go does.
fn strategy_type<'a>(seen: &RuleInput<'a>, known: [&str; 2]) -> Option<&'a str> {
    let kind = seen.value?["type"].as_str()?;
    (!known.contains(&kind)).then_some(kind)
}

fn in_go(kind: &str) -> String {
    format!("{{\"Type\":{},\"RollingUpdate\":null}}", json!(kind))
}

fn deployment_strategy(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let all = ["Recreate", "RollingUpdate"];
    if let Some(kind) = strategy_type(seen, all) {
        let message =
            format!("Unsupported value: {}: supported values: \"Recreate\", \"RollingUpdate\"", in_go(kind));
        causes.push(Cause { reason: "FieldValueNotSupported", message, field: seen.at.clone() });
    }
    let Some(it) = seen.value else { return };
    let rolling = &it["rollingUpdate"];
    let is_none = |it: &Value| *it == 0 || *it == "0%";
    if it["type"] == "Recreate" && !rolling.is_null() {
        let words = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(forbidden(&format!("{}.rollingUpdate", seen.at), words));
    } else if is_none(&rolling["maxSurge"]) && is_none(&rolling["maxUnavailable"]) {
        let at = format!("{}.rollingUpdate.maxUnavailable", seen.at);
        causes.push(invalid(&at, rolling.get("maxUnavailable"), "may not be 0 when `maxSurge` is 0"));
    }
}

fn set_strategy(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if let Some(kind) = strategy_type(seen, ["RollingUpdate", "OnDelete"]) {
        let message = format!("Invalid value: {}: must be 'RollingUpdate' or 'OnDelete'", in_go(kind));
        causes.push(Cause { reason: "FieldValueInvalid", message, field: seen.at.clone() });
    }
}

fn daemon_strategy(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if let Some(kind) = strategy_type(seen, ["RollingUpdate", "OnDelete"]) {
        let message =
            format!("Unsupported value: {}: supported values: \"RollingUpdate\", \"OnDelete\"", in_go(kind));
        causes.push(Cause { reason: "FieldValueNotSupported", message, field: seen.at.clone() });
    }
}

fn management_policy(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if text(seen).is_some_and(|it| it != "OrderedReady" && it != "Parallel") {
        causes.push(invalid(&seen.at, seen.value, "must be 'OrderedReady' or 'Parallel'"));
    }
}

fn after_ready(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let ready = seen.section["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
    if seen.value.and_then(Value::as_i64).is_some_and(|it| it >= 0 && it <= ready) {
        causes.push(invalid(&seen.at, seen.value, "must be greater than minReadySeconds"));
    }
}

fn job_selector(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let spec = &seen.section["spec"];
    let labels = &spec["template"]["metadata"]["labels"];
    let uid = "batch.kubernetes.io/controller-uid";
    let made = json!({"matchLabels": {uid: seen.root["metadata"]["uid"]}});
    if spec["manualSelector"] != true && seen.value != Some(&made) {
        causes.push(invalid(&seen.at, seen.value, "`selector` not auto-generated"));
    }
    if seen.value.is_some_and(|it| selects(it, labels) == Some(false)) {
        let at = "spec.template.metadata.labels";
        causes.push(invalid(at, Some(labels), "`selector` does not match template `labels`"));
    }
}

/// The names of its Jobs have eleven more characters.
fn cron_name(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let name = seen.root["metadata"].get("name");
    if seen.old.is_none() && name.and_then(Value::as_str).is_some_and(|it| it.len() > 52) {
        causes.push(invalid("metadata.name", name, "must be no more than 52 characters"));
    }
}

/// A schedule has five fields, or is a macro such as `@daily`.
fn schedule(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(schedule) = text(seen) else { return };
    if schedule.starts_with('@') {
        return;
    }
    let fields: Vec<_> = schedule.split_whitespace().collect();
    if fields.len() != 5 {
        let words = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        causes.push(invalid(&seen.at, seen.value, &words));
    }
}

fn most_replicas(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let (most, least) =
        (seen.value.and_then(Value::as_i64).unwrap_or(0), seen.section["spec"]["minReplicas"].as_i64());
    if most < 1 {
        causes.push(required(&seen.at, "must be set and greater than 0"));
    }
    if least.is_some_and(|it| most < it) {
        causes.push(invalid(&seen.at, Some(&json!(most)), "must be greater than or equal to `minReplicas`"));
    }
}

/// The version of a scale target needs an API group, unless it is `v1`.
fn scalable_group(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let version = text(seen).unwrap_or_default();
    if !version.contains('/') && version != "v1" {
        causes.push(invalid(&seen.at, Some(&json!(version)), "apiVersion must specify API group"));
    }
}

fn metric(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let sources = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = seen.value.map_or("", |it| it["type"].as_str().unwrap_or_default());
    match sources.iter().find(|(name, _)| *name == kind) {
        Some((_, field)) => {
            if seen.value.is_some_and(|it| it.get(*field).is_none()) {
                let words = "must populate information for the given metric source";
                causes.push(required(&format!("{}.{field}", seen.at), words));
            }
        }
        None => causes.push(unsupported(&format!("{}.type", seen.at), kind, &sources.map(|(name, _)| name))),
    }
}
