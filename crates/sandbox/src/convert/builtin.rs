//! Built-in kinds with versions that differ in their fields: Events and HorizontalPodAutoscalers.
//!
//! In: an object in one version.
//! Out: the object in another version.

use serde_json::{Map, Value, json};

/// Converts the object to another version of its kind.
pub(super) fn converted(kind: &str, version: &str, mut object: Value) -> Value {
    object["apiVersion"] = version.into();
    if let Some(fields) = object.as_object_mut() {
        match (kind, version) {
            ("Event", "v1") => {
                rename(fields, &EVENT, true);
                reporter(fields, true);
            }
            ("Event", _) => {
                rename(fields, &EVENT, false);
                reporter(fields, false);
            }
            ("HorizontalPodAutoscaler", "autoscaling/v1") => to_first_autoscaler(fields),
            ("HorizontalPodAutoscaler", _) => to_second_autoscaler(fields),
            _ => {}
        }
    }
    object
}

/// Field names of Events in the core group, and in `events.k8s.io`.
const EVENT: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];
/// The same for the reporting controller.
const CONTROLLER: (&str, &str) = ("reportingComponent", "reportingController");

fn rename(fields: &mut Map<String, Value>, names: &[(&str, &str)], to_core: bool) {
    for (core, own) in names.iter().chain([&CONTROLLER]) {
        let (from, to) = if to_core { (own, core) } else { (core, own) };
        if let Some(value) = fields.remove(*from) {
            fields.insert((*to).to_owned(), value);
        }
    }
}

/// In the core group the reporter is present even if it is empty.
fn reporter(fields: &mut Map<String, Value>, is_core: bool) {
    for name in [if is_core { CONTROLLER.0 } else { CONTROLLER.1 }, "reportingInstance"] {
        if is_core {
            fields.entry(name).or_insert_with(|| "".into());
        } else if fields.get(name) == Some(&"".into()) {
            fields.remove(name);
        }
    }
}

/// `autoscaling/v1` supports no other metric than CPU.
fn to_first_autoscaler(fields: &mut Map<String, Value>) {
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("currentMetrics");
        status.entry("currentReplicas").or_insert_with(|| 0.into());
    }
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let metrics = spec.remove("metrics").unwrap_or_default();
    for metric in metrics.as_array().into_iter().flatten() {
        if metric["resource"]["name"] == "cpu" && metric["resource"]["target"]["type"] == "Utilization" {
            let percent = metric["resource"]["target"]["averageUtilization"].clone();
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
    }
}

fn to_second_autoscaler(fields: &mut Map<String, Value>) {
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentMetrics").or_insert(Value::Null);
        if status.get("currentReplicas") == Some(&0.into()) {
            status.remove("currentReplicas");
        }
    }
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".to_owned(), json!([metric]));
    }
}
