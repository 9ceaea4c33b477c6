//! Calls admission webhooks during a write.
//!
//! In: an object with its `managedFields`.
//! Out: the object as the webhooks leave it, normalized again. Field ownership does not change, and
//! neither do the fields that only the server sets.

use http::Method;
use serde_json::{Value, json};

use super::{RequestTarget, SERVER_METADATA, copy_server_metadata};
use crate::admission::Admission;
use crate::kinds;
use crate::request::ApiRequest;
use crate::state::ServerState;
use crate::status_error::StatusError;

impl ServerState {
    /// Lets webhooks admit an object before it is stored; returns their warnings.
    pub(super) fn admit_object(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<Vec<String>, StatusError> {
        // A `Scale` is admitted as such, before it becomes part of an object.
        if !self.has_admission(ask) || target.subresource == "scale" {
            return Ok(Vec::new());
        }
        let before = new.clone();
        self.show_as_given(ask, old, new)?;
        let shown = new.clone();
        let warnings = self.call_admission_webhooks(&about(target, ask, old), new)?;
        if *new == shown {
            *new = before;
            return Ok(warnings);
        }
        let schema = &target.served().schema;
        match target.resource.builtin() {
            Some(kind) => {
                if let Some(words) = schema.type_mismatch(new) {
                    return Err(StatusError::internal(&words));
                }
                kinds::normalize(schema, kind.kind, new);
                kinds::set_defaults(kind.group, kind.kind, new);
            }
            // Unknown fields are pruned only when the object is stored; until then they count as a
            // change, as on a real server.
            None => {
                schema.without_nulls(new);
                schema.with_defaults(new);
            }
        }
        keep_own(&before, new);
        Ok(warnings)
    }

    /// Removes metadata that a real server sets only after admission.
    fn show_as_given(
        &self,
        ask: &ApiRequest,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<(), StatusError> {
        let Some(metadata) = new["metadata"].as_object_mut() else { return Ok(()) };
        if old.is_none() {
            metadata.remove("uid");
            metadata.remove("creationTimestamp");
            if self.conversions.has_named() {
                metadata.remove("name");
            }
        } else if ask.method == Method::PUT {
            let given = ask.body()?.unwrap_or_default();
            metadata.retain(|field, _| {
                !SERVER_METADATA.contains(&field.as_str()) || !given["metadata"][field].is_null()
            });
        }
        Ok(())
    }

    /// Lets webhooks admit a `Scale`; returns their warnings.
    pub(super) fn admit_scale(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        old: &Value,
        new: &mut Value,
    ) -> Result<Vec<String>, StatusError> {
        match self.has_admission(ask) {
            true => self.call_admission_webhooks(&about(target, ask, Some(old)), new),
            false => Ok(Vec::new()),
        }
    }

    fn has_admission(&self, ask: &ApiRequest) -> bool {
        !self.admitters.is_empty() && ask.asks_admission()
    }
}

fn about<'a>(target: &'a RequestTarget, ask: &ApiRequest, old: Option<&'a Value>) -> Admission<'a> {
    let (operation, kind) = match old {
        Some(_) => ("UPDATE", "UpdateOptions"),
        None => ("CREATE", "CreateOptions"),
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = ask.query(field) {
            options[field] = value.into();
        }
    }
    if ask.is_dry_run() {
        options["dryRun"] = json!(["All"]);
    }
    Admission { target, name: &target.key.name, operation, old, options, is_dry_run: ask.is_dry_run() }
}

/// Restores the fields that admission cannot change.
fn keep_own(before: &Value, new: &mut Value) {
    const OWN: [&str; 3] = ["name", "namespace", "managedFields"];
    for field in ["apiVersion", "kind"] {
        new[field] = before[field].clone();
    }
    let Some(metadata) = new["metadata"].as_object_mut() else {
        new["metadata"] = before["metadata"].clone();
        return;
    };
    copy_server_metadata(before, metadata);
    for field in OWN {
        match before["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}
