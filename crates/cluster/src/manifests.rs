//! Applies manifests as they are, for an installation.
//!
//! In: a manifest, and the field manager that applies it.
//! Out: a [`ManifestChange`]. The object gets no label and no proof of ownership: it belongs to no
//! Sync.

use serde_json::Value;

use super::apply::{APPLY, Force, unknown};
use super::{Cluster, query};
use crate::api_client::{ApiRequest, METADATA};
use crate::api_error::ApiError;
use moorline_core::object::ObjectId;
use moorline_metrics::RequestClass;

/// Result of an apply of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestChange {
    /// The object did not exist.
    Created,
    /// The object existed and was changed.
    Changed,
    /// The object existed as it is.
    Unchanged,
}

/// Applies a manifest.
///
/// # Guarantees
///
/// One server-side apply with strict validation of fields, after a read of the object's
/// metadata.
///
/// # Cancellation
///
/// Dropping the future leaves open whether the object was written.
///
/// # Errors
///
/// [`ApiError::UnknownKind`] if the kind was not served at the last discovery; 409 if another
/// manager owns a field with another value and `force` is `No`; otherwise any [`ApiError`].
pub async fn apply_manifest(
    cluster: &Cluster,
    manifest: &Value,
    manager: &str,
    force: Force,
) -> Result<ManifestChange, ApiError> {
    let (id, version) = identity(manifest)?;
    let path = cluster.kinds().path(&id, version).ok_or_else(|| unknown(&id))?;
    let get = ApiRequest::new(RequestClass::Verify, "get", path.clone()).accept(METADATA);
    let before = match cluster.0.wire.send(get).await {
        Ok(reply) => Some(wanted_state(&reply.json()?)),
        Err(failure) if failure.code() == Some(404) => None,
        Err(failure) => return Err(failure),
    };
    let force = force == Force::Yes;
    let uri = format!("{path}?fieldManager={}&fieldValidation=Strict&force={force}", query(manager));
    let apply = ApiRequest::new(RequestClass::Object, "patch", uri)
        .accept(METADATA)
        .content(APPLY, manifest.to_string().into_bytes());
    let reply = cluster.0.wire.send(apply).await?;
    Ok(match before {
        None => ManifestChange::Created,
        Some(before) if before == wanted_state(&reply.json()?) => ManifestChange::Unchanged,
        Some(_) => ManifestChange::Changed,
    })
}

/// Returns the id of a manifest, and the version of its kind.
fn identity(manifest: &Value) -> Result<(ObjectId, &str), ApiError> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let id = ObjectId::new(group, text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    let id = id.map_err(|error| ApiError::InvalidResponse(error.to_string().into()))?;
    Ok((id, version))
}

/// Returns the metadata that shows if the desired state has changed. A controller may write the
/// status meanwhile, which moves the resourceVersion but not the generation.
fn wanted_state(object: &Value) -> [Value; 3] {
    let metadata = &object["metadata"];
    let version = metadata.get("generation").unwrap_or(&metadata["resourceVersion"]);
    [version, &metadata["labels"], &metadata["annotations"]].map(Value::clone)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_of_the_status_is_no_change() {
        let state = |metadata: Value| wanted_state(&json!({"metadata": metadata}));
        let before = state(json!({"generation": 1, "resourceVersion": "7"}));
        assert_eq!(before, state(json!({"generation": 1, "resourceVersion": "8"})));
        assert_ne!(before, state(json!({"generation": 2, "resourceVersion": "8"})));
        assert_ne!(before, state(json!({"generation": 1, "resourceVersion": "8", "labels": {"a": "b"}})));
        let without = state(json!({"resourceVersion": "7"}));
        assert_ne!(without, state(json!({"resourceVersion": "8"})));
    }
}
