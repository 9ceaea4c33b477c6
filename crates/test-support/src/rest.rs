//! Untyped requests by URL, and the rights of tenants.
//!
//! In: a client, a method, a URL and a body.
//! Out: the response of the API server.

use std::borrow::Borrow;

use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// Sends a request; a PATCH is a merge patch, and null means no body.
pub async fn send_request(
    client: &Client,
    method: &str,
    uri: &str,
    body: impl Borrow<Value>,
) -> Result<Value, kube::Error> {
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = match body.borrow() {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let request = Request::builder().method(method).uri(uri).header("Content-Type", content);
    client.request(request.body(body).unwrap()).await
}

/// Gives `subject` rights in one namespace, by a Role and a RoleBinding named `tenant`.
pub async fn grant(admin: &Client, namespace: &str, subject: &Value, rules: &Value) {
    let root = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let role = json!({"metadata": {"name": "tenant"}, "rules": rules});
    let binding = json!({
        "metadata": {"name": "tenant"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
    });
    send_request(admin, "POST", &format!("{root}/roles"), role).await.unwrap();
    send_request(admin, "POST", &format!("{root}/rolebindings"), binding).await.unwrap();
}

/// Subject of a RoleBinding for a user.
pub fn user(name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
}

/// Policy rule for resources of one group.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// The ServiceAccount `tenant` with rights on the ConfigMaps of its namespace.
pub async fn tenant(admin: &Client, namespace: &str, verbs: &[&str]) {
    let account = json!({"metadata": {"name": "tenant"}});
    send_request(admin, "POST", &format!("/api/v1/namespaces/{namespace}/serviceaccounts"), account)
        .await
        .unwrap();
    let subject = json!({"kind": "ServiceAccount", "name": "tenant", "namespace": namespace});
    grant(admin, namespace, &subject, &json!([rule("", &["configmaps"], verbs)])).await;
}
