//! The scale of an object: its number of replicas, as others see and set it.
//!
//! In: an object and the paths of its version. Out: a `Scale`, or the object with another number.

use serde_json::{Value, json};

use super::{Draft, Target, Written, patch};
use crate::sandbox::ask::Ask;
use crate::sandbox::refusal::Refusal;
use crate::sandbox::served::Scale;
use crate::sandbox::state::State;

impl State {
    /// How far an object is scaled.
    pub(crate) fn scale(&self, target: &Target) -> Result<Value, Refusal> {
        let (_, live) = self.must_live(target)?;
        Ok(shown(paths(target)?, &live))
    }

    /// Scales an object: by a whole `Scale`, or by a patch of one.
    pub(crate) fn rescale(&mut self, target: &Target, ask: &Ask, body: &Value) -> Result<Written, Refusal> {
        let paths = paths(target)?.clone();
        let (_, live) = self.must_live(target)?;
        let before = shown(&paths, &live);
        let wanted = match ask.content_type() {
            "application/json" | "application/yaml" => body.clone(),
            "application/strategic-merge-patch+json" => {
                let mut wanted = before;
                crate::sandbox::patch::merge(&mut wanted, body);
                wanted
            }
            _ => patch::patched(target, ask, &before, body)?,
        };
        super::update::same_version(target, &live, &wanted)?;
        let should = match target.resource.builtin() {
            Some(_) => "must be greater than or equal to 0",
            None => "should be a non-negative integer",
        };
        let Some(replicas) = wanted["spec"]["replicas"].as_i64().or(Some(0)).filter(|count| *count >= 0)
        else {
            let cause = json!({
                "reason": "FieldValueInvalid", "field": "spec.replicas",
                "message": format!("Invalid value: {}: {should}", wanted["spec"]["replicas"]),
            });
            let about = crate::sandbox::refusal::About {
                group: "autoscaling",
                plural: "",
                kind: "Scale",
                name: &target.key.name,
            };
            return Err(Refusal::invalid(about, &[cause]));
        };
        let mut new = live.clone();
        set(&mut new, &paths.spec, replicas.into());
        if shown(&paths, &live)["spec"] != shown(&paths, &new)["spec"] {
            give(&mut new, &paths.spec, &ask.manager(), &target.api_version(), replicas > 0);
        }
        let written = self.keep(target, ask, Draft { old: Some(&live), new, applied: true })?;
        Ok(Written { body: shown(&paths, &written.body), ..written })
    }
}

fn paths(target: &Target) -> Result<&Scale, Refusal> {
    target.served().scale.as_ref().ok_or_else(Refusal::no_such_path)
}

fn shown(paths: &Scale, live: &Value) -> Value {
    let metadata = &live["metadata"];
    let mut kept = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !metadata[field].is_null() {
            kept[field] = metadata[field].clone();
        }
    }
    let at = |path: &[Box<str>]| path.iter().try_fold(live, |value, name| value.get(&**name));
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": {},
        "status": {"replicas": at(&paths.status).and_then(Value::as_i64).unwrap_or(0)},
    });
    if let Some(replicas) = at(&paths.spec).and_then(Value::as_i64).filter(|count| *count > 0) {
        scale["spec"]["replicas"] = replicas.into();
    }
    let selector = match &paths.selector {
        Some(path) => at(path).and_then(Value::as_str).map(str::to_owned),
        None => live["spec"]["selector"].as_object().map(|selector| {
            let labels = selector.get("matchLabels").and_then(Value::as_object).unwrap_or(selector);
            let labels =
                labels.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
            labels.collect::<Vec<_>>().join(",")
        }),
    };
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// Whoever owned the number loses it to who scales. Where nobody owned it, nobody comes to own it by scaling; nor where it is
/// zero, which a `Scale` does not show. A new entry has no time.
fn give(object: &mut Value, path: &[Box<str>], manager: &str, version: &str, is_shown: bool) {
    let Some(Value::Array(managers)) = object.pointer_mut("/metadata/managedFields") else { return };
    let (mut was_owned, mut has_own) = (false, false);
    managers.retain_mut(|entry| {
        let owns = path.iter().try_fold(&entry["fieldsV1"], |place, name| place.get(format!("f:{name}")));
        was_owned |= owns.is_some();
        let is_own =
            entry["manager"] == manager && entry["operation"] == "Update" && entry["subresource"] == "scale";
        has_own |= is_own && is_shown && owns.is_some();
        if owns.is_none() || is_own && is_shown {
            return true;
        }
        disown(&mut entry["fieldsV1"], path);
        entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty())
    });
    if was_owned && !has_own && is_shown {
        let fields = path.iter().rev().fold(json!({}), |inner, name| json!({format!("f:{name}"): inner}));
        let applied = managers.iter().take_while(|entry| entry["operation"] == "Apply").count();
        managers.insert(
            applied,
            json!({
                "manager": manager, "operation": "Update", "subresource": "scale", "apiVersion": version,
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            }),
        );
    }
}

/// Takes a field out of a set, and whatever was in it for that field alone.
fn disown(fields: &mut Value, path: &[Box<str>]) {
    let ([name, rest @ ..], Some(fields)) = (path, fields.as_object_mut()) else { return };
    let name = format!("f:{name}");
    if let Some(inner) = fields.get_mut(&name).filter(|_| !rest.is_empty()) {
        disown(inner, rest);
        if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
            return;
        }
    }
    fields.remove(&name);
}

/// Sets a field, and makes what is missing on the way to it.
fn set(object: &mut Value, path: &[Box<str>], value: Value) {
    let place = path.iter().try_fold(object, |place, name| {
        if !place.is_object() {
            *place = json!({});
        }
        Some(place.as_object_mut()?.entry(&**name).or_insert(Value::Null))
    });
    if let Some(place) = place {
        *place = value;
    }
}
