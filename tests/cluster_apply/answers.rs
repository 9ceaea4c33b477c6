//! Each row of the table of answers, provoked on a real API server: what the server really says is what we read.

use std::time::Duration;

use kube::Client;
use moorline::cluster::{ApiError, ApiStatus, RetryWhen, StatusCause, classify_error};
use serde_json::{Value, json};

use moorline_test_support::control_plane::shared;
use moorline_test_support::credentials::{ADMIN, TENANT};
use moorline_test_support::daemon::until;

/// Applies an object and says what the answer means: the reason and who has to change, or nothing for a success.
async fn meaning(client: &Client, path: &str, body: &Value) -> Option<(&'static str, RetryWhen)> {
    let uri = format!("{path}?fieldManager=moorline/a/b&fieldValidation=Strict");
    let request = http::Request::patch(uri)
        .header("Content-Type", "application/apply-patch+yaml")
        .body(body.to_string().into_bytes())
        .unwrap();
    let failure = ApiError::Refused(Box::new(refusal(client, request).await?));
    let found = classify_error(&failure, body["kind"] == "Secret");
    Some((found.reason.as_str(), found.retry_when))
}

/// Returns the server's answer to a request that it refuses.
async fn refusal(client: &Client, request: http::Request<Vec<u8>>) -> Option<ApiStatus> {
    let status = match client.request_text(request).await {
        Ok(_) => return None,
        Err(kube::Error::Api(status)) => serde_json::to_value(&status).unwrap(),
        Err(other) => panic!("{other}"),
    };
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().into();
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let cause = |cause: &Value| StatusCause {
        reason: text(cause, "reason"),
        message: text(cause, "message"),
        field: text(cause, "field"),
    };
    Some(ApiStatus {
        code: u16::try_from(status["code"].as_u64().unwrap()).unwrap(),
        reason: text(&status, "reason"),
        message: text(&status, "message"),
        causes: causes.iter().map(cause).collect(),
        retry_after: None,
    })
}

fn map(namespace: &str, name: &str) -> (String, Value) {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let metadata = json!({"name": name, "namespace": namespace});
    (path, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}))
}

async fn apply(client: &Client, path: &str, body: Value) {
    assert_eq!(meaning(client, path, &body).await, None, "{body}");
}

#[tokio::test]
async fn what_the_cluster_lacks_is_for_the_cluster_to_change() {
    use RetryWhen::ClusterChanges;
    let Some(plane) = shared() else { return };
    let (admin, tenant) = (plane.client(ADMIN).await, plane.client(TENANT).await);
    let namespace = plane.namespace("answers").await;

    let (path, body) = map(&namespace, "a");
    assert_eq!(meaning(&tenant, &path, &body).await, Some(("Forbidden", ClusterChanges)));
    let (path, body) = map("nowhere-at-all", "a");
    assert_eq!(meaning(&admin, &path, &body).await, Some(("NamespaceMissing", ClusterChanges)));
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let path = format!("/apis/example.com/v1/namespaces/{namespace}/widgets/a");
    assert_eq!(meaning(&admin, &path, &widget).await, Some(("KindMissing", ClusterChanges)));

    let (path, body) = map(&namespace, "contested");
    apply(&admin, &path, body.clone()).await;
    let other = http::Request::patch(format!("{path}?fieldManager=other&force=true"))
        .header("Content-Type", "application/apply-patch+yaml")
        .body(body.to_string().replace("\"b\"", "\"c\"").into_bytes())
        .unwrap();
    admin.request_text(other).await.unwrap();
    assert_eq!(meaning(&admin, &path, &body).await, Some(("Conflict", ClusterChanges)));

    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/secrets": "0"}},
    });
    apply(&admin, &format!("/api/v1/namespaces/{namespace}/resourcequotas/none"), quota).await;
    // Each attempt is at a Secret of its own: one that was there before the quota held is only applied again.
    let mut attempt = 0;
    until("the quota holds", async || {
        attempt += 1;
        let name = format!("over-{attempt}");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        let found = meaning(&admin, &path, &secret).await;
        (found == Some(("QuotaExceeded", ClusterChanges))).then_some(())
    })
    .await;

    let leaving = plane.namespace("leaving").await;
    let (path, mut body) = map(&leaving, "kept");
    body["metadata"]["finalizers"] = json!(["example.com/never"]);
    apply(&admin, &path, body).await;
    let request = http::Request::delete(format!("/api/v1/namespaces/{leaving}")).body(Vec::new()).unwrap();
    admin.request_text(request).await.unwrap();
    let (path, body) = map(&leaving, "late");
    assert_eq!(meaning(&admin, &path, &body).await, Some(("NamespaceTerminating", ClusterChanges)));
}

#[tokio::test]
async fn what_is_wrong_in_a_manifest_is_for_the_manifest_to_change() {
    use RetryWhen::ManifestChanges;
    let Some(plane) = shared() else { return };
    let admin = plane.client(ADMIN).await;
    let namespace = plane.namespace("manifests").await;

    let (path, mut body) = map(&namespace, "a");
    body["metadata"]["name"] = json!("b");
    assert_eq!(meaning(&admin, &path, &body).await, Some(("BadRequest", ManifestChanges)));
    let (path, mut body) = map(&namespace, "a");
    body["data"] = json!({"not a key": "a"});
    assert_eq!(meaning(&admin, &path, &body).await, Some(("Invalid", ManifestChanges)));
    let (path, mut body) = map(&namespace, "a");
    body["dta"] = json!({});
    assert_eq!(meaning(&admin, &path, &body).await, Some(("SchemaMismatch", ManifestChanges)));
    let (path, mut body) = map(&namespace, "a");
    body["data"]["a"] = json!("x".repeat(4 << 20));
    assert_eq!(meaning(&admin, &path, &body).await, Some(("TooLarge", ManifestChanges)));

    let request = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": namespace, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    apply(&admin, &format!("/api/v1/namespaces/{namespace}"), request).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"},
        "spec": {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": true}}]},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/root");
    until("the namespace is restricted", async || {
        let found = meaning(&admin, &path, &pod).await;
        (found == Some(("PodSecurity", ManifestChanges))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_stands_before_the_api_server_says_no_in_its_own_ways() {
    let Some(plane) = shared() else { return };
    let admin = plane.client(ADMIN).await;
    let namespace = plane.namespace("admission").await;
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    let rules = |resource: &str| json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}]);
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [{
            "name": "nobody.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "rules": rules("configmaps"), "namespaceSelector": selector,
        }],
    });
    apply(&admin, &format!("{admission}/validatingwebhookconfigurations/{namespace}"), webhook).await;
    let (path, body) = map(&namespace, "a");
    until("the webhook is called", async || {
        let found = meaning(&admin, &path, &body).await;
        (found == Some(("WebhookFailed", RetryWhen::ClusterChanges))).then_some(())
    })
    .await;

    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": rules("secrets")},
            "validations": [{"expression": "false", "message": "field is immutable"}],
        },
    });
    apply(&admin, &format!("{admission}/validatingadmissionpolicies/{namespace}"), policy).await;
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {
            "policyName": namespace, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        },
    });
    apply(&admin, &format!("{admission}/validatingadmissionpolicybindings/{namespace}"), binding).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let path = format!("/api/v1/namespaces/{namespace}/secrets/a");
    let found = until("the policy denies", async || {
        let found = meaning(&admin, &path, &secret).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        found
    })
    .await;
    // With the status of an invalid object, and whatever words its author chose.
    assert_eq!(found, ("PolicyDenied", RetryWhen::ManifestChanges));
}

#[tokio::test]
async fn a_server_that_is_behind_says_so() {
    let Some(plane) = shared() else { return };
    let (admin, namespace) = (plane.client(ADMIN).await, plane.namespace("answers-behind").await);
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let uri = format!("{path}?limit=1&resourceVersion=999999999&resourceVersionMatch=Exact");
    let refused = refusal(&admin, http::Request::get(uri).body(Vec::new()).unwrap()).await;
    assert!(refused.as_ref().is_some_and(ApiStatus::is_behind), "{refused:?}");
}
