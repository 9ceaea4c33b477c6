//! Objects with the test as their controller.
//!
//! In: kinds to define, and statuses.
//! Out: objects as files, and the health that a Sync reports of them.

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::daemon::{Daemon, until};
use super::scene::Scene;

/// Definition of a kind with a status subresource.
fn definition(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": anything, "status": anything}});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.ready.example")},
        "spec": {
            "group": "ready.example", "scope": "Namespaced", "versions": [version],
            "names": {"kind": kind, "plural": plural},
        },
    })
}

/// Defines a kind of the group `ready.example`, and waits until it is served.
pub async fn define(scene: &Scene, kind: &str) -> Api<DynamicObject> {
    let definitions = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(scene.admin.clone(), &ApiResource::from_gvk(&definitions));
    let body = definition(kind);
    let name = body["metadata"]["name"].as_str().unwrap().to_owned();
    api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&body)).await.unwrap();
    let objects = scene.dynamic("ready.example", "v1", kind);
    until("the kind is served", async || objects.list(&ListParams::default()).await.ok()).await;
    objects
}

/// An object of such a kind, as a file.
pub fn object(kind: &str, name: &str) -> (String, String) {
    let body = json!({"apiVersion": "ready.example/v1", "kind": kind, "metadata": {"name": name}, "spec": {"size": 1}});
    (format!("{name}.json"), body.to_string())
}

/// A Deployment, as a file.
pub fn deployment(name: &str, image: &str, replicas: u8) -> (String, String) {
    let labels = json!({"app": name});
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    });
    (format!("{name}.json"), body.to_string())
}

/// Writes a status like a controller.
pub async fn report(objects: &Api<DynamicObject>, name: &str, status: Value) {
    let body = json!({"status": status});
    objects.patch_status(name, &PatchParams::default(), &Patch::Merge(&body)).await.unwrap();
}

/// Status of a Job that has ended.
pub fn ended(well: bool) -> Value {
    let kinds = if well { ["SuccessCriteriaMet", "Complete"] } else { ["FailureTarget", "Failed"] };
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let is = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Told", "message": "as the test says",
            "lastTransitionTime": now, "lastProbeTime": now})
    };
    let mut status = json!({"startTime": now, "conditions": kinds.map(is)});
    if well {
        status["completionTime"] = now.clone().into();
    }
    status
}

/// Deletes an object together with its dependents.
pub async fn clear(objects: &Api<DynamicObject>, name: &str) {
    let params =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    objects.delete(name, &params).await.unwrap();
    until("it is gone", async || objects.get_opt(name).await.unwrap().is_none().then_some(())).await;
}

/// A status with the condition Ready.
pub fn ready(status: &str, message: &str) -> Value {
    json!({"conditions": [{"type": "Ready", "status": status, "reason": "Told", "message": message}]})
}

/// A condition of a Sync.
pub async fn condition(scene: &Scene, sync: &str, type_: &str) -> Value {
    let conditions = scene.status(sync, "/conditions").await;
    let all = conditions.as_array().cloned().unwrap_or_default();
    all.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default()
}

/// Waits until the Healthy condition of a Sync has this status and reason; returns its message.
pub async fn until_healthy(scene: &Scene, sync: &str, status: &str, reason: &str) -> String {
    let what = format!("Healthy is {status} because of {reason}");
    let told = until(&what, async || {
        let told = condition(scene, sync, "Healthy").await;
        (told["status"] == status && told["reason"] == reason).then_some(told)
    });
    told.await["message"].as_str().unwrap().to_owned()
}

/// Creates a Sync that waits for the health of its objects, as it does by default.
pub async fn waiting(scene: &Scene, name: &str, spec: Value) {
    let mut whole = json!({"interval": "1h", "health": {}});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    scene.sync(name, whole).await;
}

/// Creates the Sync `shop` with one object of a kind that is Ready; returns its API, a daemon and
/// the commit.
pub async fn healthy(scene: &Scene, kind: &str) -> (Api<DynamicObject>, Daemon, String) {
    let objects = define(scene, kind).await;
    let (commit, daemon) = (scene.push(&[object(kind, "one")]), scene.daemon());
    waiting(scene, "shop", json!({})).await;
    until("it is there", async || objects.get_opt("one").await.unwrap()).await;
    report(&objects, "one", ready("True", "")).await;
    scene.until_ready("shop", &commit).await;
    (objects, daemon, commit)
}
