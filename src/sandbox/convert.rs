//! One object in several versions.
//!
//! In: an object in one version of its resource. Out: the same in another. Versions of a definition differ by their name
//! alone: webhooks that convert are not asked. Of the built-in kinds two have versions that differ.

use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::served::{Origin, Resource};
use super::store::Stored;

/// What is stored, as it is read in a version that is served: without what its definition has dropped since, and with the
/// defaults that it has got.
pub(crate) fn read(resource: &Resource, version: usize, stored: &Stored) -> Result<Value, Refusal> {
    let mut body = in_version(resource, version, stored.body())?;
    if resource.is_older(stored.revision) {
        let schema = &resource.versions[version].schema;
        schema.pruned(&mut body);
        schema.with_defaults(&mut body);
    }
    Ok(body)
}

/// A stored object in a version that is served.
pub(crate) fn in_version(resource: &Resource, version: usize, stored: Value) -> Result<Value, Refusal> {
    let wanted = resource.api_version(version);
    if stored["apiVersion"] == wanted {
        return Ok(stored);
    }
    match &resource.origin {
        Origin::Builtin(kind) => Ok(builtin(kind.kind, &wanted, stored)),
        Origin::Definition { .. } => named(stored, wanted),
    }
}

/// An object in the version in which it is stored.
pub(crate) fn to_stored(resource: &Resource, version: usize, object: Value) -> Result<Value, Refusal> {
    match &resource.origin {
        // The newer name of Events is kept under the older one.
        Origin::Builtin(kind) if kind.home() != kind.group => Ok(builtin(kind.kind, "v1", object)),
        Origin::Builtin(_) | Origin::Definition { .. } => {
            between(resource, version, resource.stored_version(), object)
        }
    }
}

/// An object of one version in another.
pub(crate) fn between(resource: &Resource, from: usize, to: usize, object: Value) -> Result<Value, Refusal> {
    if from == to { Ok(object) } else { in_version(resource, to, object) }
}

fn named(mut object: Value, version: String) -> Result<Value, Refusal> {
    object["apiVersion"] = version.into();
    Ok(object)
}

fn builtin(kind: &str, version: &str, mut object: Value) -> Value {
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

/// What Events call their parts in the core group, and in their own.
const EVENT: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];
/// The part of it that is named one level further down, in either.
const CONTROLLER: (&str, &str) = ("reportingComponent", "reportingController");

fn rename(fields: &mut Map<String, Value>, names: &[(&str, &str)], to_core: bool) {
    for (core, own) in names.iter().chain([&CONTROLLER]) {
        let (from, to) = if to_core { (own, core) } else { (core, own) };
        if let Some(value) = fields.remove(*from) {
            fields.insert((*to).to_owned(), value);
        }
    }
}

/// Who reports is said in the core group even where nobody does.
fn reporter(fields: &mut Map<String, Value>, is_core: bool) {
    for name in [if is_core { CONTROLLER.0 } else { CONTROLLER.1 }, "reportingInstance"] {
        if is_core {
            fields.entry(name).or_insert_with(|| "".into());
        } else if fields.get(name) == Some(&"".into()) {
            fields.remove(name);
        }
    }
}

/// The processor is all that the first version knows.
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
