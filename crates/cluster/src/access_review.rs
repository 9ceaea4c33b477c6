//! Access reviews: what this identity may do, as the API server says.
//!
//! In: a namespace, or an object; or a person and a right.
//! Out: the review of our own rights there, or of those of the person. Every identity may review
//! its own rights.

use serde_json::{Value, json};

use super::Inner;
use crate::api_client::ApiRequest;
use crate::api_error::ApiError;
use moorline_core::object::ObjectId;
use moorline_metrics::RequestClass;

const RULES: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const SUBJECT_ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Access reviews of one identity.
#[derive(Clone, Copy)]
pub struct AccessReviews<'a>(pub(super) &'a Inner);

impl AccessReviews<'_> {
    /// Returns our rules in a namespace, including cluster-wide ones.
    pub async fn own_rules(&self, namespace: &str) -> Result<Value, ApiError> {
        self.review(RULES, "SelfSubjectRulesReview", json!({"namespace": namespace})).await
    }

    /// True if we may read this Sync.
    pub async fn may_read_sync(&self, namespace: &str, name: &str) -> Result<bool, ApiError> {
        let attributes = json!({
            "namespace": namespace, "name": name, "verb": "get", "group": "moorline.dev", "resource": "syncs",
        });
        self.is_allowed(attributes).await
    }

    /// True if we may get this Secret.
    pub async fn may_get_secret(&self, namespace: &str, name: &str) -> Result<bool, ApiError> {
        let attributes = json!({
            "namespace": namespace, "name": name, "verb": "get", "group": "", "resource": "secrets",
        });
        self.is_allowed(attributes).await
    }

    /// True if we may request tokens of this ServiceAccount.
    pub async fn may_request_token(&self, namespace: &str, name: &str) -> Result<bool, ApiError> {
        let attributes = json!({
            "namespace": namespace, "name": name, "verb": "create", "group": "",
            "resource": "serviceaccounts", "subresource": "token",
        });
        self.is_allowed(attributes).await
    }

    /// True if we may patch this object; without a name, every object of its kind and namespace.
    pub async fn may_patch(&self, id: &ObjectId, name: Option<&str>) -> Result<bool, ApiError> {
        let kind = id.group_kind();
        let kinds = self.0.discovery.kinds();
        let Some(served) = kinds.get(&kind) else {
            return Err(ApiError::UnknownKind(kind.to_string().into()));
        };
        let mut attributes = json!({
            "verb": "patch", "group": id.group(), "resource": served.plural,
            "namespace": id.namespace().unwrap_or_default(),
        });
        if let Some(name) = name {
            attributes["name"] = name.into();
        }
        self.is_allowed(attributes).await
    }

    /// True if the subject of a SubjectAccessReview may do what its spec asks about.
    pub async fn may_subject(&self, spec: Value) -> Result<bool, ApiError> {
        Ok(is_allowed(&self.review(SUBJECT_ACCESS, "SubjectAccessReview", spec).await?))
    }

    async fn is_allowed(&self, attributes: Value) -> Result<bool, ApiError> {
        let spec = json!({"resourceAttributes": attributes});
        Ok(is_allowed(&self.review(ACCESS, "SelfSubjectAccessReview", spec).await?))
    }

    async fn review(&self, uri: &str, kind: &str, spec: Value) -> Result<Value, ApiError> {
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        let call = ApiRequest::new(RequestClass::Verify, "create", uri.to_owned())
            .content("application/json", body.to_string().into_bytes());
        self.0.wire.send(call).await?.json()
    }
}

fn is_allowed(review: &Value) -> bool {
    review.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default()
}
