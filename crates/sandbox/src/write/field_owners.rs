//! Updates `managedFields` after a write.
//!
//! In: the object before and after.
//! Out: the object with its `managedFields`. The rules of each endpoint are here: a field that
//! cannot be written through an endpoint is not owned through it either.

use serde_json::Value;

use super::RequestTarget;
use crate::convert::{self, ConversionCache};
use crate::managed_fields;
use crate::managed_fields::{ApplyError, InVersion, Writer};
use crate::request::ApiRequest;
use crate::resource_registry::Origin;
use crate::state::ServerState;
use crate::status_error::StatusError;

/// Updates `managedFields` of `new`.
pub(super) fn record_managers(
    state: &ServerState,
    target: &RequestTarget,
    ask: &ApiRequest,
    old: Option<&Value>,
    new: &mut Value,
) {
    let (manager, now, version) = (ask.manager(), state.clock.text(), target.api_version());
    with_writer(&state.conversions, target, &manager, &now, &version, &mut |writer| {
        managed_fields::update(&target.served().schema, old, new, writer);
    });
}

/// Applies a configuration to the live object.
pub(super) fn apply_config(
    state: &ServerState,
    target: &RequestTarget,
    ask: &ApiRequest,
    live: Option<&Value>,
    config: &Value,
) -> Result<Value, StatusError> {
    let (manager, now, version) = (ask.manager(), state.clock.text(), target.api_version());
    let force = ask.is_set("force");
    let mut done = Ok(Value::Null);
    with_writer(&state.conversions, target, &manager, &now, &version, &mut |writer| {
        done = managed_fields::apply(&target.served().schema, live, config, writer, force);
    });
    done.map_err(|fault| match fault {
        ApplyError::Conflicts(conflicts) => {
            let (message, causes) = managed_fields::conflict_message(&conflicts);
            StatusError::field_conflicts(message, causes)
        }
        ApplyError::Typed(words) => StatusError::failed(words),
        ApplyError::Refused(words) => StatusError::bad_request(words),
    })
}

fn with_writer(
    conversions: &ConversionCache,
    target: &RequestTarget,
    manager: &str,
    now: &str,
    api_version: &str,
    act: &mut dyn FnMut(&Writer<'_>),
) {
    let resource = &target.resource;
    let in_version = |wanted: &str, object: &Value| {
        let version = wanted.rsplit_once('/').map_or(wanted, |(_, version)| version);
        let known = resource.versions.iter().position(|known| *known.name == *version);
        match (&resource.origin, known) {
            (Origin::Builtin(kind), None) if kind.storage_group() != kind.group => InVersion::Same,
            (_, None) => InVersion::Gone,
            (_, Some(at)) if object["apiVersion"] == resource.api_version(at) => InVersion::Same,
            (_, Some(at)) => {
                let mut object = object.clone();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
                // Converted by way of the version of the request.
                let between = |at, object| convert::convert_for_comparison(conversions, resource, at, object);
                let converted = between(target.version, object).and_then(|object| between(at, object));
                match converted {
                    Ok(object) => InVersion::Other(resource.versions[at].schema.clone(), object),
                    Err(words) => InVersion::Failed(words),
                }
            }
        }
    };
    let reset: &[&[&str]] = match target.subresource.as_str() {
        // Deployment is the only built-in kind that resets its labels.
        "status" if &*resource.kind == "Deployment" => &[&["spec"], &["metadata", "labels"]],
        "status" if resource.builtin().is_none() => &[&["spec"], &["metadata"]],
        "status" => &[&["spec"]],
        _ if target.served().has_status => &[&["status"]],
        _ => &[],
    };
    act(&Writer {
        manager,
        api_version,
        subresource: &target.subresource,
        now,
        reset,
        in_version: &in_version,
    });
}
