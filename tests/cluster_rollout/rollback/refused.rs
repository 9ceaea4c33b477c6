//! Commits of which the API server takes an object not at all.

use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::until_rolled_back;
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::status::{condition, waiting};

/// So long others may deny an object in these tests.
const PATIENCE: Duration = Duration::from_secs(6);

/// Returns the spec of a Sync that rolls back failures.
fn spec() -> Value {
    json!({"rollback": {"onFailure": true}, "health": {"timeout": format!("{}s", PATIENCE.as_secs())}})
}

fn map(name: &str, value: &str) -> (String, String) {
    (format!("{name}.json"), config_map(name, value))
}

/// Webhook that decides about ConfigMaps of a scene.
struct Gate {
    api: Api<DynamicObject>,
    scene: String,
}

impl Gate {
    fn new(client: &Client, kind: &str, scene: &Scene) -> Self {
        let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let api = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
        Self { api, scene: scene.namespace.clone() }
    }

    async fn says(&self, kind: &str, rest: Value) {
        let mut body = rest;
        body["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        body["kind"] = kind.into();
        body["metadata"] = json!({"name": self.scene});
        self.api
            .patch(&self.scene, &PatchParams::apply("tests").force(), &Patch::Apply(&body))
            .await
            .unwrap();
    }

    async fn goes(&self) {
        self.api.delete(&self.scene, &DeleteParams::default()).await.unwrap();
    }
}

fn only_here(scene: &Scene) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}})
}

fn configmaps() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}])
}

/// Waits until ConfigMaps with this value are refused, or taken.
async fn until_refused(scene: &Scene, value: &str, refused: bool) {
    let dry = PatchParams { dry_run: true, ..PatchParams::apply("tests").force() };
    let body: Value = serde_json::from_str(&config_map("probe", value)).unwrap();
    let maps = scene.dynamic("", "v1", "ConfigMap");
    until("the gate is as it is meant", async || {
        let tried = maps.patch("probe", &dry, &Patch::Apply(&body)).await;
        (tried.is_err() == refused).then_some(())
    })
    .await;
}

/// Denies ConfigMaps with the value `denied`, until the binding goes.
async fn deny(scene: &Scene) -> Gate {
    const POLICY: &str = "ValidatingAdmissionPolicy";
    const BINDING: &str = "ValidatingAdmissionPolicyBinding";
    let policy = Gate::new(&scene.admin, POLICY, scene);
    let says =
        json!([{"expression": "object.data.?key.orValue('') != 'denied'", "message": "not this value"}]);
    let rules = json!({"matchConstraints": {"resourceRules": configmaps()}, "validations": says});
    policy.says(POLICY, json!({"spec": rules})).await;
    let binding = Gate::new(&scene.admin, BINDING, scene);
    let here = json!({"namespaceSelector": only_here(scene)});
    let bound = json!({"policyName": scene.namespace, "validationActions": ["Deny"], "matchResources": here});
    binding.says(BINDING, json!({"spec": bound})).await;
    until_refused(scene, "denied", true).await;
    binding
}

/// Waits until the Sync says that an object cannot be applied.
async fn until_failed(scene: &Scene, commit: &str) -> Instant {
    until("an object is refused", async || {
        let attempted = scene.status("shop", "/revision/attempted").await;
        let ready = condition(scene, "shop", "Ready").await;
        (ready["reason"] == "ApplyFailed" && attempted.as_str()?.ends_with(commit)).then(Instant::now)
    })
    .await
}

#[tokio::test]
async fn what_the_server_refuses_by_itself_is_given_up_at_once() {
    let Some(scene) = Scene::new("rollback-of-invalid").await else { return };
    let good = scene.push(&[map("a", "1")]);
    let daemon = scene.daemon();
    // Nothing is waited for that could come to its end in this test.
    waiting(&scene, "shop", json!({"rollback": {"onFailure": true}, "health": {"timeout": "1h"}})).await;
    scene.until_ready("shop", &good).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad"}, "spec": {"ports": [{"port": 99999}]},
    });
    let bad = scene.push(&[map("a", "2"), ("bad.json".into(), service.to_string())]);
    scene.nudge("shop", "bad").await;
    until_failed(&scene, &bad).await;
    let message = until_rolled_back(&scene, &bad, &good).await;
    assert!(message.contains("Service") && message.contains("99999"), "{message}");
    assert_eq!(scene.values().await["a"], "1");
    scene.settle().await;
    scene.assert_calm("once it has rolled back").await;
    drop(daemon);
    let _daemon = scene.daemon();
    scene.nudge("shop", "again").await;
    tokio::time::sleep(QUIET_TIME).await;
    until_rolled_back(&scene, &bad, &good).await;
    assert_eq!(scene.values().await["a"], "1");
    let better = scene.remove(&["bad.json"]);
    scene.nudge("shop", "better").await;
    scene.until_ready("shop", &better).await;
    assert_eq!(scene.values().await["a"], "2");
}

#[tokio::test]
async fn what_somebody_denies_has_until_the_deadline() {
    let Some(scene) = Scene::new("rollback-of-denied").await else { return };
    let first = scene.push(&[map("a", "1")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", spec()).await;
    scene.until_ready("shop", &first).await;
    let binding = deny(&scene).await;
    // The webhook changes its answer in time: it is tried once more before it would be given up.
    let second = scene.push(&[map("a", "2"), map("b", "denied")]);
    scene.nudge("shop", "second").await;
    until_failed(&scene, &second).await;
    binding.goes().await;
    scene.until_ready("shop", &second).await;

    let binding = deny(&scene).await;
    let third = scene.push(&[map("a", "3"), map("c", "denied")]);
    scene.nudge("shop", "third").await;
    let since = until_failed(&scene, &third).await;
    let message = until_rolled_back(&scene, &third, &second).await;
    // Two seconds are for the status to be read and written.
    assert!(since.elapsed() + Duration::from_secs(2) > PATIENCE, "{:?}", since.elapsed());
    assert!(message.contains("shop/c") || message.contains("/c: "), "{message}");
    assert!(message.contains("not this value"), "{message}");
    assert_eq!(scene.values().await["a"], "2");

    // An object that is refused already when a commit comes does not speak against it.
    scene.maps().delete("b", &DeleteParams::default()).await.unwrap();
    scene.until_reason("shop", "ApplyFailed").await;
    let fourth = {
        scene.work.git(&["rm", "-q", "--", "c.json"]);
        scene.push(&[map("a", "4")])
    };
    scene.nudge("shop", "fourth").await;
    until("it is taken up", async || (scene.values().await["a"] == "4").then_some(())).await;
    tokio::time::sleep(PATIENCE + QUIET_TIME).await;
    assert_eq!(scene.values().await["a"], "4");
    assert_eq!(scene.status("shop", "/revision/rejected").await, Value::Null);
    binding.goes().await;
    until_refused(&scene, "denied", false).await;
    scene.patch_sync("shop", json!({"spec": {"interval": "59m"}})).await;
    scene.until_ready("shop", &fourth).await;
}

#[tokio::test]
async fn an_outage_is_no_failure_of_a_commit() {
    const WEBHOOKS: &str = "ValidatingWebhookConfiguration";
    let Some(scene) = Scene::new("rollback-and-outage").await else { return };
    let first = scene.push(&[map("a", "1")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", spec()).await;
    scene.until_ready("shop", &first).await;
    // Nobody listens there.
    let webhook = json!({
        "name": "away.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": configmaps(), "timeoutSeconds": 5,
        "namespaceSelector": only_here(&scene),
    });
    let gate = Gate::new(&scene.admin, WEBHOOKS, &scene);
    gate.says(WEBHOOKS, json!({"webhooks": [webhook]})).await;
    until_refused(&scene, "any", true).await;
    // Neither is a kind that nobody has defined yet, nor a namespace that is not there.
    let unknown = json!({"apiVersion": "later.example/v1", "kind": "Later", "metadata": {"name": "later"}});
    let homeless = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x", "namespace": "not-there"},
    });
    let second = scene.push(&[
        map("a", "2"),
        ("later.json".into(), unknown.to_string()),
        ("homeless.json".into(), homeless.to_string()),
    ]);
    scene.nudge("shop", "second").await;
    until_failed(&scene, &second).await;
    tokio::time::sleep(PATIENCE + QUIET_TIME).await;
    assert_eq!(scene.status("shop", "/revision/rejected").await, Value::Null);
    gate.goes().await;
    until("the commit is applied", async || (scene.values().await["a"] == "2").then_some(())).await;
    assert_eq!(scene.status("shop", "/revision/rejected").await, Value::Null);
}
