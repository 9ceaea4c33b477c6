//! Webhooks that belong to another Sync, or to nobody: what they guard waits for their Service, but not for ever.
//!
//! In: a webhook in the cluster that fails closed and has no backend, and a Sync whose objects it guards. Out: the Sync says
//! `Progressing` and the object `Waits`, until the webhook answers, or for a minute.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::backend::{Backend, WEBHOOKS, files, pods_are_ready, reasons, until_waits};
use super::{KINDS, Operator};
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;
use moorline_test_support::under_load::under_load;

/// The sentence of an object that waits for a Service.
fn waits_for(namespace: &str, webhook: &str) -> String {
    format!(
        "it waits for Service {namespace}/webhook, which serves the webhook {webhook}, and which the API server cannot reach yet"
    )
}

#[tokio::test]
async fn a_resource_waits_for_the_webhook_of_another_sync() {
    let Some(scene) = Scene::new("others").await else { return };
    let (operator, backend) = (Operator::new(&scene, "a"), Backend::start(&scene));
    let objects = [
        operator.namespace(),
        operator.service(),
        operator.deployment(),
        operator.webhook(),
        operator.definition(KINDS[0]),
    ];
    let resource = operator.resource(KINDS[0], "one", "a");
    let commit = scene.push(&[files("operator", &objects), files("user", &[resource])].concat());
    let _daemon = scene.daemon();
    scene.sync("operator", json!({"path": "operator"})).await;
    scene.until_ready("operator", &commit).await;

    scene.sync("user", json!({"path": "user"})).await;
    let problems = until_waits(&scene, "user", 1).await;
    let webhook = format!("validate.{}", operator.group);
    assert_eq!(problems[0]["message"], waits_for(&operator.namespace, &webhook));
    assert_eq!(scene.status("user", "/conditions/0/reason").await, "Progressing");

    backend.answers.store(true, Ordering::Relaxed);
    backend.stands_for(&scene, &operator.webhook()).await;
    pods_are_ready(&scene, &operator.namespace, "app=webhook").await;
    let told = reasons(&scene, "user", &commit).await;
    assert!(!told.contains("ApplyFailed"), "{told:?}");
    scene.assert_calm("once all of it is applied").await;
    for name in ["user", "operator"] {
        scene.delete_sync(name).await;
    }
    operator.leaves(&scene).await;
}

#[tokio::test]
async fn a_webhook_of_nobody_is_waited_for_for_a_minute() {
    let Some(scene) = Scene::new("nobodys").await else { return };
    let webhook = format!("check.{}.example.com", scene.namespace);
    // The Secret of the daemon has no such label.
    let guarded = json!({"guarded": "yes"});
    let metadata = |name: &str| json!({"name": name, "labels": guarded});
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": scene.namespace},
        "webhooks": [{
            "name": webhook, "failurePolicy": "Fail", "timeoutSeconds": 1,
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
            "objectSelector": {"matchLabels": guarded},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps", "secrets"]}],
            "clientConfig": {"service": {"name": "webhook", "namespace": scene.namespace}},
        }],
    });
    send_request(&scene.admin, "POST", WEBHOOKS, configuration).await.unwrap();
    let maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    // A webhook that was just configured is asked a moment later.
    until("the webhook is asked", async || {
        let probe = json!({"metadata": metadata("probe")});
        let asked = send_request(&scene.admin, "POST", &format!("{maps}?dryRun=All"), probe).await;
        asked.is_err().then_some(())
    })
    .await;
    let objects = ["ConfigMap", "Secret"]
        .map(|kind| json!({"apiVersion": "v1", "kind": kind, "metadata": metadata(&kind.to_lowercase())}));
    scene.push(&files("shop", &objects));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"path": "shop"})).await;
    let problems = until_waits(&scene, "shop", 2).await;
    let begun = Instant::now();
    for problem in problems.as_array().unwrap() {
        assert_eq!(problem["message"], waits_for(&scene.namespace, &webhook));
    }
    let reason = async || scene.status("shop", "/conditions/0/reason").await;
    while begun.elapsed() < Duration::from_secs(50) {
        assert_eq!(reason().await, "Progressing", "after {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    until("that is a failure", async || (reason().await == "ApplyFailed").then_some(())).await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(70)), "{:?}", begun.elapsed());
    let problems = until("both have failed", async || {
        let problems = scene.status("shop", "/problems").await;
        let all = problems.as_array()?;
        all.iter().all(|it| it["reason"] == "WebhookFailed").then(|| problems.clone())
    })
    .await;
    assert!(problems[0]["message"].as_str().unwrap().contains(&webhook), "{problems}");
    send_request(&scene.admin, "DELETE", &format!("{WEBHOOKS}/{}", scene.namespace), Value::Null)
        .await
        .unwrap();
    scene.delete_sync("shop").await;
}
