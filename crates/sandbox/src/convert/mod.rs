//! Conversion between the versions of a resource.
//!
//! In: an object in one version of its resource.
//! Out: the object in another version, or an error. The versions of a definition differ only in
//! their name, unless its webhook converts them.
//!
//! A webhook is never called under the lock of the state: it may be slow, and it may send requests
//! to this server. Code that needs an unknown conversion records it in [`ConversionCache`], and the
//! whole attempt is discarded. The webhooks are called when the lock is free, and the request is
//! tried again with their responses, as often as a further conversion is missing or the object has
//! changed meanwhile. An attempt writes only when all its conversions are known, so a discarded
//! attempt has changed nothing.

mod builtin;
mod conversion_cache;
mod conversion_webhook;
mod review;
mod webhook_client;

use serde_json::Value;

use super::store::StoredObject;
use crate::resource_registry::{Origin, Resource};
use crate::status_error::StatusError;
pub(crate) use conversion_cache::ConversionCache;
pub(crate) use conversion_webhook::ConversionWebhook;
pub(crate) use review::read as read_review;
pub(crate) use webhook_client::WebhookClient;

/// Reads a stored object in a served version: prunes the fields that its definition has dropped
/// since, and fills in new defaults, both by the schema of the stored version.
pub(crate) fn read_stored(
    conversions: &ConversionCache,
    resource: &Resource,
    version: usize,
    stored: &StoredObject,
) -> Result<Value, StatusError> {
    let mut body = stored.body();
    if resource.is_older(stored.revision)
        && let Some(own) = resource.version_of(&body)
    {
        let schema = &resource.versions[own].schema;
        schema.prune(&mut body);
        schema.with_defaults(&mut body);
    }
    convert_to_version(conversions, resource, version, body)
}

/// Converts an object to another version, in the form in which it is read and stored there.
pub(crate) fn convert_to_version(
    conversions: &ConversionCache,
    resource: &Resource,
    version: usize,
    mut object: Value,
) -> Result<Value, StatusError> {
    let wanted = resource.api_version(version);
    if object["apiVersion"] == wanted {
        return Ok(object);
    }
    if let Origin::Builtin(kind) = &resource.origin {
        return Ok(builtin::converted(kind.kind, &wanted, object));
    }
    // The resourceVersion is not part of the conversion.
    let revision = object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("resourceVersion"));
    let mut converted =
        convert_for_comparison(conversions, resource, version, object).map_err(StatusError::failed)?;
    let schema = &resource.versions[version].schema;
    schema.prune(&mut converted);
    schema.without_nulls(&mut converted);
    if let Some(metadata) = converted["metadata"].as_object_mut() {
        metadata.retain(|name, value| {
            !matches!(name.as_str(), "labels" | "annotations")
                || value.as_object().is_some_and(|it| !it.is_empty())
        });
    }
    if let Some(revision) = revision {
        converted["metadata"]["resourceVersion"] = revision;
    }
    Ok(converted)
}

/// Converts an object to the version in which it is stored.
pub(crate) fn to_stored(
    conversions: &ConversionCache,
    resource: &Resource,
    object: Value,
) -> Result<Value, StatusError> {
    match &resource.origin {
        // Events of the newer group are stored under the older one.
        Origin::Builtin(kind) if kind.storage_group() != kind.group => {
            Ok(builtin::converted(kind.kind, "v1", object))
        }
        // Controllers leave an object in the version that it has.
        Origin::Definition { hook: Some(_), .. } if !conversions.calls_webhooks() => Ok(object),
        Origin::Builtin(_) => convert_to_version(conversions, resource, resource.stored_version(), object),
        Origin::Definition { stored, .. } if object["apiVersion"] == resource.api_version(*stored) => {
            Ok(object)
        }
        Origin::Definition { stored, .. } => {
            let mut kept = convert_to_version(conversions, resource, *stored, object)?;
            // A real server fills in defaults when it reads; clients see no difference.
            resource.versions[*stored].schema.with_defaults(&mut kept);
            Ok(kept)
        }
    }
}

/// Converts an object for a comparison: the plain result of the conversion, with unknown fields.
pub(crate) fn convert_for_comparison(
    conversions: &ConversionCache,
    resource: &Resource,
    version: usize,
    mut object: Value,
) -> Result<Value, String> {
    let wanted = resource.api_version(version);
    if object["apiVersion"] == wanted {
        return Ok(object);
    }
    match &resource.origin {
        Origin::Builtin(kind) => Ok(builtin::converted(kind.kind, &wanted, object)),
        Origin::Definition { .. } if resource.version_of(&object).is_none() => Err(format!(
            "request to convert CR from an invalid group/version: {}",
            object["apiVersion"].as_str().unwrap_or_default()
        )),
        Origin::Definition { hook: Some(hook), .. } if !is_bare(&object) => {
            conversions.find(hook, &object, &wanted)
        }
        Origin::Definition { .. } => {
            object["apiVersion"] = wanted.into();
            Ok(object)
        }
    }
}

/// True if an object contains only `apiVersion` and `kind`.
fn is_bare(object: &Value) -> bool {
    object.as_object().is_some_and(|fields| fields.keys().all(|name| name == "apiVersion" || name == "kind"))
}
