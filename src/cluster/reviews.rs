//! What we may do, as the API server says.
//!
//! In: a namespace. Out: the review of our rules there. Everybody may ask about themselves.

use serde_json::{Value, json};

use super::Cluster;
use super::wire::{Call, Failure};
use crate::metrics::Class;

const RULES: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

impl Cluster {
    /// Our rules in a namespace, with those that hold everywhere.
    pub async fn own_rules(&self, namespace: &str) -> Result<Value, Failure> {
        self.review(RULES, "SelfSubjectRulesReview", json!({"namespace": namespace})).await
    }

    /// True if we may read this Sync.
    pub async fn may_read_sync(&self, namespace: &str, name: &str) -> Result<bool, Failure> {
        let attributes = json!({
            "namespace": namespace, "name": name, "verb": "get", "group": "moorline.dev", "resource": "syncs",
        });
        let review =
            self.review(ACCESS, "SelfSubjectAccessReview", json!({"resourceAttributes": attributes})).await?;
        Ok(review.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default())
    }

    async fn review(&self, uri: &str, kind: &str, spec: Value) -> Result<Value, Failure> {
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        let call = Call::new(Class::Verify, "create", uri.to_owned())
            .content("application/json", body.to_string().into_bytes());
        self.0.wire.send(call).await?.json()
    }
}
