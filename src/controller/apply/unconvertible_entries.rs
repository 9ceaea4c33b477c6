//! Removes managed fields of a version that the CustomResourceDefinition does not have any more.
//! Since Kubernetes 1.37 the API server keeps them, and refuses every apply because it cannot
//! convert them. Before, it dropped all managed fields of the object at its next write.
//!
//! In: an object that is ours, and the error of its refused apply.
//! Out: true if the apply can be sent once more.
//!
//! No request is sent unless an apply was refused with this error.

use serde_json::{Value, json};

use super::ApplyContext;
use crate::cluster::ApiError;
use crate::desired::DesiredObject;

/// The server's message before the group and version.
const CANNOT_CONVERT: &str = "request to convert CR to an invalid group/version: ";

/// Removes the entries that cannot be converted; the next apply writes ours again.
pub(crate) async fn remove_unconvertible_entries(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    failure: &ApiError,
) -> Result<bool, ApiError> {
    let Some(removed) = removed_version(failure) else { return Ok(false) };
    let Some(live) = work.cluster.objects().read_metadata(&wanted.id, &wanted.version).await? else {
        return Ok(false);
    };
    let steps = live.body.get("metadata").and_then(|metadata| steps(metadata, removed));
    let Some(steps) = steps else { return Ok(false) };
    match work.cluster.objects().patch(&wanted.id, Some(&*wanted.version), work.owner, &steps).await {
        Ok(()) => {
            tracing::info!(sync = %work.owner, object = %wanted.id, version = removed, "removed managed fields of a version that is not in the CustomResourceDefinition any more");
            Ok(true)
        }
        // The object changed meanwhile; the next apply shows if the entries are still there.
        Err(failure) if matches!(failure.code(), Some(409 | 422)) => Ok(true),
        Err(failure) => Err(failure),
    }
}

/// Returns the version that the server could not convert.
fn removed_version(failure: &ApiError) -> Option<&str> {
    let ApiError::Refused(refusal) = failure else { return None };
    let (_, rest) = refusal.message.split_once(CANNOT_CONVERT).filter(|_| refusal.code == 500)?;
    rest.split_whitespace().next()
}

/// Returns the patch that removes the entries of a version; `None` if there are none.
fn steps(metadata: &Value, removed: &str) -> Option<Value> {
    let entries = metadata.get("managedFields")?.as_array()?;
    let mut kept: Vec<&Value> = entries.iter().filter(|entry| entry["apiVersion"] != removed).collect();
    if kept.len() == entries.len() {
        return None;
    }
    let nothing = json!({});
    if kept.is_empty() {
        // The server ignores an empty list; a list with an empty entry removes all.
        kept.push(&nothing);
    }
    Some(json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")?},
        {"op": "replace", "path": "/metadata/managedFields", "value": kept},
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ApiStatus;

    fn refused(code: u16, message: &str) -> ApiError {
        let (reason, causes) = ("InternalError".into(), Vec::new());
        ApiError::Refused(Box::new(ApiStatus {
            code,
            reason,
            message: message.into(),
            causes,
            retry_after: None,
        }))
    }

    #[test]
    fn only_the_error_about_a_removed_version_counts() {
        let message = "request to convert CR to an invalid group/version: example.com/v1";
        assert_eq!(removed_version(&refused(500, message)), Some("example.com/v1"));
        assert_eq!(removed_version(&refused(403, message)), None);
        assert_eq!(removed_version(&refused(500, "conversion webhook for example.com/v1 failed")), None);
        assert_eq!(removed_version(&ApiError::NotLeader), None);
    }

    #[test]
    fn entries_of_other_versions_are_kept() {
        let live = |versions: &[&str]| {
            let entries: Vec<Value> = versions.iter().map(|version| json!({"apiVersion": version})).collect();
            json!({"name": "a", "resourceVersion": "7", "managedFields": entries})
        };
        let kept =
            |versions: &[&str]| steps(&live(versions), "example.com/v1").map(|it| it[1]["value"].clone());
        let v2 = "example.com/v2";
        assert_eq!(kept(&["example.com/v1", v2]), Some(json!([{"apiVersion": v2}])));
        assert_eq!(kept(&["example.com/v1"]), Some(json!([{}])));
        assert_eq!(kept(&[v2]), None);
        let guard = steps(&live(&["example.com/v1"]), "example.com/v1").unwrap()[0].clone();
        assert_eq!(guard, json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
    }
}
