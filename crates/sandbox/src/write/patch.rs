//! PATCH: patches an object or applies a configuration.
//!
//! In: the type of the patch and its body.
//! Out: the stored object.

use serde_json::Value;

use super::field_owners;
use super::update::same_version;
use super::{Draft, RequestTarget, WriteResult};
use crate::patch;
use crate::request::ApiRequest;
use crate::state::ServerState;
use crate::status_error::{ErrorSubject, StatusError};

const FORMS: &str = "application/json-patch+json, application/merge-patch+json, \
    application/strategic-merge-patch+json, application/apply-patch+yaml, application/apply-patch+cbor";

impl ServerState {
    /// Patches an object.
    pub(crate) fn patch(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        body: Value,
    ) -> Result<WriteResult, StatusError> {
        if ask.content_type() == "application/apply-patch+yaml" {
            return self.apply(target, ask, body);
        }
        let (_, live) = self.require_live(target)?;
        let new = patched(target, ask, &live, &body)?;
        readable(target, ask, &new)?;
        if new["metadata"]["name"] != live["metadata"]["name"] {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                new["metadata"]["name"].as_str().unwrap_or_default(),
                target.key.name
            )));
        }
        same_version(target, &live, &new)?;
        self.write_object(target, ask, Draft { old: Some(&live), new, applied: false })
    }

    fn apply(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        mut config: Value,
    ) -> Result<WriteResult, StatusError> {
        let expected = target.api_version();
        if let Some(version) = config["apiVersion"].as_str().filter(|version| *version != expected) {
            return Err(StatusError::bad_request(self.other_version(version, &config, &expected)));
        }
        let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) else {
            return Err(StatusError::bad_request("the apply patch has no metadata"));
        };
        match metadata.get("name").and_then(Value::as_str).unwrap_or_default() {
            "" => drop(metadata.insert("name".to_owned(), (&*target.key.name).into())),
            name if *name == *target.key.name => {}
            name => {
                return Err(StatusError::bad_request(format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    target.key.name
                )));
            }
        }
        let live = self.live(target)?.map(|(_, live)| live);
        if let Some(live) = &live {
            same_version(target, live, &config)?;
            same_uid(target, live, &config)?;
        } else if !target.subresource.is_empty() {
            return Err(StatusError::not_found(target.about()));
        } else if let Some(uid) = config["metadata"]["uid"].as_str() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(StatusError::conflict(target.about(), &why));
        }
        let new = field_owners::apply_config(self, target, ask, live.as_ref(), &config)?;
        match &live {
            Some(_) => self.write_object(target, ask, Draft { old: live.as_ref(), new, applied: true }),
            None => self.create_as(target, ask, Draft { old: None, new, applied: true }),
        }
    }
}

impl ServerState {
    /// Returns the error for an apply in another version.
    fn other_version(&self, version: &str, config: &Value, expected: &str) -> String {
        let (group, name) = version.split_once('/').unwrap_or(("", version));
        let kind = config["kind"].as_str().unwrap_or_default();
        let known = self.registry.of_kind(group, kind);
        match known.is_some_and(|resource| resource.served().any(|known| *known.name == *name)) {
            true => format!(
                "incorrect version specified in apply patch. Specified patch version: {version}, expected: {expected}"
            ),
            false => format!("invalid object type: {group}/{name}, Kind={kind}"),
        }
    }
}

/// Returns the live object with the patch applied.
pub(super) fn patched(
    target: &RequestTarget,
    ask: &ApiRequest,
    live: &Value,
    body: &Value,
) -> Result<Value, StatusError> {
    let refuse = |fault: patch::PatchError| StatusError::of_patch(fault.code, fault.words);
    match ask.content_type() {
        "application/merge-patch+json" => {
            let mut new = live.clone();
            patch::apply_merge_patch(&mut new, body);
            Ok(new)
        }
        "application/json-patch+json" => patch::apply_json_patch(live.clone(), body).map_err(refuse),
        "application/strategic-merge-patch+json" if target.resource.builtin().is_some() => {
            patch::apply_strategic_patch(&target.served().schema, live.clone(), body.clone()).map_err(refuse)
        }
        _ => Err(StatusError::unsupported_media_type(FORMS)),
    }
}

/// Checks the types of a patched object; with strict validation it refuses unknown fields, too.
fn readable(target: &RequestTarget, ask: &ApiRequest, new: &Value) -> Result<(), StatusError> {
    if target.resource.builtin().is_none() {
        return Ok(());
    }
    let schema = &target.served().schema;
    let mut said = schema.type_mismatch(new).unwrap_or_default();
    if said.is_empty() && ask.query("fieldValidation") == Some("Strict") {
        let unknown = schema.unknown_fields(new);
        if !unknown.is_empty() {
            said = format!("strict decoding error: {}", unknown.join(", "));
        }
    }
    if said.is_empty() {
        return Ok(());
    }
    let message = format!("Invalid value: {}: {said}", Value::from(new.to_string()));
    let cause = serde_json::json!({"reason": "FieldValueInvalid", "field": "patch", "message": message});
    Err(StatusError::invalid(ErrorSubject { group: "", plural: "", kind: "", name: "" }, &[cause]))
}

fn same_uid(target: &RequestTarget, live: &Value, config: &Value) -> Result<(), StatusError> {
    match config["metadata"]["uid"].as_str() {
        Some(uid) if live["metadata"]["uid"] != uid => {
            let cause = serde_json::json!({
                "reason": "FieldValueInvalid", "field": "metadata.uid",
                "message": format!("Invalid value: {uid:?}: field is immutable"),
            });
            // A real server checks this twice and reports it twice.
            Err(StatusError::invalid(target.about(), &[cause.clone(), cause]))
        }
        _ => Ok(()),
    }
}
