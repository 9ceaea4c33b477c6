//! The scale subresource: the replica count of an object.
//!
//! In: an object, and the scale paths of its version.
//! Out: a `Scale`, or the object with another replica count.

use serde_json::{Value, json};

use super::{Draft, RequestTarget, WriteResult, patch};
use crate::managed_fields;
use crate::request::ApiRequest;
use crate::resource_registry::Scale;
use crate::state::ServerState;
use crate::status_error::StatusError;

impl ServerState {
    /// Returns the `Scale` of an object.
    pub(crate) fn scale(&self, target: &RequestTarget) -> Result<Value, StatusError> {
        let (_, live) = self.require_live(target)?;
        Ok(shown(paths(target)?, &live))
    }

    /// Scales an object by a complete `Scale` or by a patch of one.
    pub(crate) fn rescale(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        body: &Value,
    ) -> Result<WriteResult, StatusError> {
        let paths = paths(target)?.clone();
        let (_, live) = self.require_live(target)?;
        let before = shown(&paths, &live);
        let mut wanted = match ask.content_type() {
            "application/json" | "application/yaml" => body.clone(),
            "application/strategic-merge-patch+json" => {
                let mut wanted = before.clone();
                crate::patch::apply_merge_patch(&mut wanted, body);
                wanted
            }
            _ => patch::patched(target, ask, &before, body)?,
        };
        super::update::same_version(target, &live, &wanted)?;
        let warnings = self.admit_scale(target, ask, &before, &mut wanted)?;
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
            let about = crate::status_error::ErrorSubject {
                group: "autoscaling",
                plural: "",
                kind: "Scale",
                name: &target.key.name,
            };
            return Err(StatusError::invalid(about, &[cause]));
        };
        let mut new = live.clone();
        set(&mut new, &paths.spec, replicas.into());
        if shown(&paths, &live)["spec"] != shown(&paths, &new)["spec"] {
            managed_fields::transfer_replicas(
                &mut new,
                &paths.spec,
                &ask.manager(),
                &target.api_version(),
                replicas > 0,
            );
        }
        let written = self.write_object(target, ask, Draft { old: Some(&live), new, applied: true })?;
        Ok(WriteResult { body: shown(&paths, &written.body), warnings, ..written })
    }
}

fn paths(target: &RequestTarget) -> Result<&Scale, StatusError> {
    target.served().scale.as_ref().ok_or_else(StatusError::no_such_path)
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

/// Sets a field and creates its missing parents.
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
