//! Requests that are the same for every kind of Moorline.
//!
//! In: a kind, or the path of a resource. Out: the target of a watch; one write of a status or of
//! finalizers.

use serde_json::{Value, json};

use super::watch::WatchTarget;
use super::{Inner, query};
use crate::api_client::{ApiRequest, ApiResponse, METADATA};
use crate::api_error::ApiError;
use moorline_api::{DAEMON_MANAGER, INSTANCE_LABEL};
use moorline_core::object::GroupKind;
use moorline_metrics::RequestClass;

/// Group of the kinds.
pub(super) const GROUP: &str = "moorline.dev";

/// Returns the target for the whole resources of a kind that a label selector selects; nothing
/// waits for the right to watch them.
pub(super) fn watch_target(kind: &str, plural: &str, selector: &str) -> WatchTarget {
    WatchTarget {
        kind: GroupKind::new(GROUP, kind),
        namespace: None,
        patient: true,
        path: format!("/apis/{GROUP}/v1alpha1/{plural}"),
        selector: format!("labelSelector={}", query(selector)),
        whole: true,
        watchable: true,
    }
}

/// Returns the label selector for the resources of an instance.
pub(super) fn instance_selector(instance: Option<&str>) -> String {
    match instance {
        Some(instance) => format!("{INSTANCE_LABEL}={instance}"),
        None => format!("!{INSTANCE_LABEL}"),
    }
}

/// Replaces the status of the resource with this uid. It is ours as a whole, so there is nothing to
/// merge with concurrent writes.
pub(super) async fn patch_status(
    inner: &Inner,
    uri: String,
    uid: &str,
    status: &Value,
) -> Result<ApiResponse, ApiError> {
    let steps = json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": "/status", "value": status},
    ]);
    let call = ApiRequest::new(RequestClass::Status, "patch", uri)
        .accept(METADATA)
        .content("application/json-patch+json", steps.to_string().into_bytes());
    inner.status_limiter.send(&inner.wire, call, None).await
}

/// Sets the finalizers of the resource at this path, if it still has this resourceVersion.
pub(super) async fn patch_finalizers(
    inner: &Inner,
    path: &str,
    version: &str,
    finalizers: &[String],
) -> Result<(), ApiError> {
    let body = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
    let call =
        ApiRequest::new(RequestClass::Status, "patch", format!("{path}?fieldManager={DAEMON_MANAGER}"))
            .accept(METADATA)
            .content("application/merge-patch+json", body.to_string().into_bytes());
    inner.status_limiter.send(&inner.wire, call, None).await.map(drop)
}
