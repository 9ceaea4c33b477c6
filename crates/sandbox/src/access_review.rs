//! Access reviews: in the sandbox every user may do everything.
//!
//! In: a review.
//! Out: the review with its status; `None` for any other resource.

use http::Method;
use serde_json::{Value, json};

use crate::request::{ApiRequest, ObjectPath};
use crate::response::ApiResponse;
use crate::status_error::StatusError;

/// Answers a review.
pub(crate) fn review(ask: &ApiRequest, objects: &ObjectPath) -> Result<Option<ApiResponse>, StatusError> {
    let status = match (objects.group.as_str(), objects.plural.as_str()) {
        (
            "authorization.k8s.io",
            "selfsubjectaccessreviews" | "subjectaccessreviews" | "localsubjectaccessreviews",
        ) => {
            json!({"allowed": true})
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        ("authentication.k8s.io", "selfsubjectreviews") => {
            json!({"userInfo": {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]}})
        }
        ("authentication.k8s.io", "tokenreviews") => json!({"authenticated": false, "user": {}}),
        _ => return Ok(None),
    };
    if objects.name.is_some() {
        return Err(StatusError::no_such_path());
    }
    if ask.method != Method::POST {
        return Err(StatusError::method_not_allowed());
    }
    let mut body = ask.body()?.unwrap_or_default();
    if !body.is_object() {
        return Err(StatusError::bad_request("the body of the request is not an object"));
    }
    if !body["metadata"].is_object() {
        body["metadata"] = Value::Object(Default::default());
    }
    body["status"] = status;
    Ok(Some(ApiResponse::json(201, &body)))
}
