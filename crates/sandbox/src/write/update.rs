//! PUT: replaces an object or its status.
//!
//! In: an existing object and its replacement.
//! Out: the stored object.

use serde_json::Value;

use super::{Draft, RequestTarget, WriteResult};
use crate::kinds;
use crate::request::ApiRequest;
use crate::state::ServerState;
use crate::status_error::{ErrorSubject, StatusError};

impl ServerState {
    /// Replaces an object.
    pub(crate) fn update(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
        body: Value,
    ) -> Result<WriteResult, StatusError> {
        super::same_kind(target, &body)?;
        named_alike(target, &body)?;
        let Some((_, live)) = self.live(target)? else {
            let kind = target.resource.builtin();
            let makes =
                target.subresource.is_empty() && kind.is_some_and(|kind| kinds::is_made_by_update(kind.kind));
            return match makes {
                true => self.create_as(target, ask, Draft { old: None, new: body, applied: false }),
                false => Err(StatusError::not_found(target.about())),
            };
        };
        let uid = body["metadata"]["uid"].as_str().unwrap_or_default();
        let known = live["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && uid != known {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {uid}, UID in object meta: {known}",
                registry(target),
                target.key.name,
            );
            return Err(StatusError::conflict(target.about(), &why));
        }
        let unversioned = body["metadata"]["resourceVersion"].as_str().unwrap_or_default().is_empty();
        let needs = target.resource.builtin().is_none_or(|kind| kinds::needs_version(kind.kind));
        if unversioned && needs {
            let cause = serde_json::json!({
                "reason": "FieldValueInvalid", "field": "metadata.resourceVersion",
                "message": "Invalid value: 0: must be specified for an update",
            });
            // Here the server prints the resource in place of the kind.
            let about = target.about();
            return Err(StatusError::invalid(ErrorSubject { kind: about.plural, ..about }, &[cause]));
        }
        same_version(target, &live, &body)?;
        self.write_object(target, ask, Draft { old: Some(&live), new: body, applied: false })
    }
}

/// Returns the etcd path under which a real server stores the object.
fn registry(target: &RequestTarget) -> String {
    let resource = &target.resource;
    let root = match (&*resource.group, &*resource.plural) {
        ("", "services") => "services/specs".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (
            "coordination.k8s.io" | "scheduling.k8s.io" | "storage.k8s.io" | "rbac.authorization.k8s.io",
            plural,
        )
        | ("", plural) => plural.to_owned(),
        (_, plural) if resource.builtin().is_some() => plural.to_owned(),
        (group, plural) => format!("{group}/{plural}"),
    };
    if resource.namespaced { format!("{root}/{}", target.key.namespace) } else { root }
}

/// Refuses a write if its resourceVersion is not that of the live object.
pub(super) fn same_version(target: &RequestTarget, live: &Value, body: &Value) -> Result<(), StatusError> {
    let version = |of: &Value| of["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let wanted = version(body);
    match wanted.is_empty() || wanted == version(live) {
        true => Ok(()),
        false => Err(StatusError::modified(target.about())),
    }
}

/// Refuses a body whose name or namespace differs from the path.
pub(super) fn named_alike(target: &RequestTarget, body: &Value) -> Result<(), StatusError> {
    let given = |field: &str| body["metadata"][field].as_str().unwrap_or_default();
    let (name, namespace) = (given("name"), given("namespace"));
    if name.is_empty() {
        let cause = serde_json::json!({
            "reason": "FieldValueRequired", "field": "metadata.name",
            "message": "Required value: name is required",
        });
        return Err(StatusError::invalid(target.resource.about(""), &[cause]));
    }
    if *name != *target.key.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.key.name
        )));
    }
    if !namespace.is_empty() && *namespace != *target.key.namespace {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
