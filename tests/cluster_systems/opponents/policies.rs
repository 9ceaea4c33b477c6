//! Policies: those that say no, those that are not there to be asked, and those that change what is written.

use std::time::{Duration, Instant};

use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::ground::{
    Opponent, asked_within, assert_repaired, everywhere, file, map, quiet_after, web, writes,
};
use super::webhook::{Decision, Webhook};
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::RecordedRequest;
use moorline_test_support::scene::Scene;
use moorline_test_support::status::{until_healthy, waiting};
use moorline_test_support::under_load::under_load;

const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// The problem that is reported for an object.
async fn until_problem(scene: &Scene, object: &str, reason: &str) -> String {
    until(&format!("{reason} is said of {object}"), async || {
        let problems = scene.status("shop", "/problems").await;
        let mut all = problems.as_array()?.iter();
        let found = all.find(|it| it["reason"] == reason && it["object"].to_string().contains(object))?;
        found["message"].as_str().map(str::to_owned)
    })
    .await
}

/// Waits until a ConfigMap of this name is refused, or accepted.
async fn until_refused(scene: &Scene, name: &str, refused: bool) {
    let by = PatchParams { dry_run: true, ..PatchParams::apply("tests").force() };
    let maps = scene.dynamic("", "v1", "ConfigMap");
    until("the policy is in force", async || {
        let tried = maps.patch(name, &by, &Patch::Apply(&map(name, json!({})))).await;
        (tried.is_err() == refused).then_some(())
    })
    .await;
}

fn owned(name: &str, value: &str) -> Value {
    let mut map = map(name, json!({"key": value}));
    map["metadata"]["labels"] = json!({"owner": "team"});
    map
}

/// A policy of the API server itself.
async fn server_policy(scene: &Scene) {
    let group = "admissionregistration.k8s.io";
    let name = format!("must-have-team.{}", scene.namespace);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"],
            }]},
            "validations": [{"expression": "'team' in object.metadata.?labels.orValue({})", "message": "name your team"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}},
        },
    });
    let by = PatchParams::apply("tests").force();
    for (kind, body) in [("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)]
    {
        everywhere(scene, group, "v1", kind).patch(&name, &by, &Patch::Apply(&body)).await.unwrap();
    }
    let deployments = scene.dynamic("apps", "v1", "Deployment");
    let by = PatchParams { dry_run: true, ..by };
    until("the policy is in force", async || {
        deployments.patch("probe", &by, &Patch::Apply(&web("probe", json!({})))).await.is_err().then_some(())
    })
    .await;
}

#[tokio::test]
async fn policies_that_deny_are_quoted_and_not_asked_again() {
    let Some(scene) = Scene::new("gatekeeper").await else { return };
    let webhook = Webhook::start(&scene, |request| {
        match request["object"]["metadata"]["labels"]["owner"].is_string() {
            true => Decision::Allow,
            false => Decision::Deny("[must-have-owner] you must provide labels: {\"owner\"}"),
        }
    });
    webhook.intercepts(&scene, VALIDATING, "validation.gatekeeper.sh", "", &["configmaps"]).await;
    until_refused(&scene, "probe", true).await;
    server_policy(&scene).await;
    let _daemon = scene.daemon();
    scene.push(&[file(&owned("good", "1")), file(&map("bad", json!({}))), file(&web("web", json!({})))]);
    scene.sync("shop", json!({})).await;
    let said = until_problem(&scene, "/bad", "WebhookDenied").await;
    let quoted = "admission webhook \"validation.gatekeeper.sh\" denied the request: [must-have-owner] you must provide labels";
    assert!(said.contains(quoted), "{said}");
    let said = until_problem(&scene, "/web", "PolicyDenied").await;
    assert!(said.contains("must-have-team") && said.contains("name your team"), "{said}");
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "ApplyFailed");
    quiet_after(&scene, Instant::now(), "denied").await;
    let asked = asked_within(&scene, Duration::from_secs(4)).await;
    assert_eq!(asked.len(), 0, "ten minutes or new input: {asked:?}");
    let maps = scene.dynamic("", "v1", "ConfigMap");
    assert_eq!(Opponent::new(&maps, "nobody").live("good").await["data"]["key"], "1", "peers are not held");

    let mut named = web("web", json!({}));
    named["metadata"]["labels"] = json!({"team": "shop"});
    let commit = scene.push(&[file(&owned("bad", "1")), file(&named)]);
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    quiet_after(&scene, Instant::now(), "mended").await;
}

#[tokio::test]
async fn a_webhook_that_is_down_holds_what_it_intercepts_and_is_named() {
    let Some(scene) = Scene::new("down").await else { return };
    let webhook = Webhook::start(&scene, |_| Decision::Allow);
    webhook.goes_down();
    webhook.intercepts(&scene, VALIDATING, "check.policies.example.com", "", &["configmaps"]).await;
    until_refused(&scene, "probe", true).await;
    let _daemon = scene.daemon();
    let commit = scene.push(&[file(&map("held", json!({"key": "1"}))), file(&web("web", json!({})))]);
    scene.sync("shop", json!({})).await;
    let said = until_problem(&scene, "/held", "WebhookFailed").await;
    assert!(said.contains("failed calling webhook \"check.policies.example.com\""), "{said}");
    let web = Opponent::new(&scene.dynamic("apps", "v1", "Deployment"), "nobody");
    until("the rest goes on", async || web.objects.get_opt("web").await.unwrap()).await;
    let asked = asked_within(&scene, Duration::from_secs(4)).await;
    let tried = writes(&asked, "held");
    assert!((1..=10).contains(&tried), "{tried} attempts with pauses of a second at most");
    assert_eq!(writes(&asked, "web"), 0);
    let is_status = |one: &&RecordedRequest| one.path.ends_with("/status");
    assert!(asked.iter().filter(is_status).count() <= 1, "no status for each attempt");

    webhook.comes_back();
    let back = Instant::now();
    scene.until_ready("shop", &commit).await;
    assert!(back.elapsed() < under_load(Duration::from_secs(5)), "within the pause: {:?}", back.elapsed());
    quiet_after(&scene, back, "it is back").await;
}

#[tokio::test]
async fn a_policy_that_sets_defaults_at_every_write_is_left_alone() {
    let Some(scene) = Scene::new("kyverno").await else { return };
    let webhook = Webhook::start(&scene, |request| {
        let object = &request["object"];
        let label = match object["metadata"]["labels"].is_object() {
            true => json!({"op": "add", "path": "/metadata/labels/policy", "value": "default"}),
            false => json!({"op": "add", "path": "/metadata/labels", "value": {"policy": "default"}}),
        };
        let steps = match object["kind"] == "ConfigMap" {
            true => json!([label, {"op": "add", "path": "/data/region", "value": "north"}]),
            false => json!([label, {"op": "add", "path": "/spec/revisionHistoryLimit", "value": 3}]),
        };
        Decision::Change(steps)
    });
    let mutating = "MutatingWebhookConfiguration";
    webhook
        .intercepts(&scene, mutating, "mutate.kyverno.svc-fail", "*", &["configmaps", "deployments"])
        .await;
    let maps = scene.dynamic("", "v1", "ConfigMap");
    let by = PatchParams { dry_run: true, ..PatchParams::apply("tests").force() };
    until("the policy is in force", async || {
        let tried = maps.patch("probe", &by, &Patch::Apply(&map("probe", json!({"a": "1"})))).await.unwrap();
        (tried.data["data"]["region"] == "north").then_some(())
    })
    .await;
    // One of these values is Git's as well, and the policy sets another.
    let files = [
        file(&map("map", json!({"a": "1"}))),
        file(&map("other", json!({"a": "1", "region": "south"}))),
        file(&web("web", json!({"minReadySeconds": 3}))),
    ];
    let (_daemon, _) = scene.applied(&files, json!({"drift": {"extraFields": "Remove"}})).await;
    let asked = quiet_after(&scene, Instant::now(), "defaults").await;
    for name in ["map", "other", "web"] {
        assert_eq!(writes(&asked, name), 1, "{name}: its creation");
    }
    assert_repaired(&scene, &maps, "other", json!({"data": {"a": "2"}}), "data.a").await;
    assert_repaired(&scene, &maps, "map", json!({"data": {"a": "2"}}), "data.a").await;
    let deployments = scene.dynamic("apps", "v1", "Deployment");
    assert_repaired(
        &scene,
        &deployments,
        "web",
        json!({"spec": {"minReadySeconds": 9}}),
        "spec.minReadySeconds",
    )
    .await;
    assert_eq!(Opponent::new(&maps, "nobody").live("other").await["data"]["region"], "north");
    assert_eq!(scene.status("shop", "/contested").await, Value::Null);
}

#[tokio::test]
async fn a_namespace_that_refuses_pods_makes_the_sync_degraded() {
    let Some(scene) = Scene::new("restricted").await else { return };
    let namespaces = everywhere(&scene, "", "v1", "Namespace");
    let restricted = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    namespaces.patch(&scene.namespace, &PatchParams::default(), &Patch::Merge(&restricted)).await.unwrap();
    let _daemon = scene.daemon();
    let rolling = json!({"paused": false});
    scene.push(&[file(&web("web", rolling.clone()))]);
    waiting(&scene, "shop", json!({"interval": "5s"})).await;
    let said = until_healthy(&scene, "shop", "False", "Degraded").await;
    assert!(said.contains("violates PodSecurity") && said.contains("restricted"), "{said}");
    let warned = scene.status("shop", "/problems").await.to_string();
    assert!(warned.contains("would violate PodSecurity"), "{warned}");
    quiet_after(&scene, Instant::now(), "refused").await;

    let mut sound = web("web", rolling);
    let template = &mut sound["spec"]["template"]["spec"];
    template["securityContext"] = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    template["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    scene.push(&[file(&sound)]);
    scene.nudge("shop", "again").await;
    let pods = scene.dynamic("", "v1", "Pod");
    until("a Pod is there", async || pods.list(&ListParams::default()).await.unwrap().items.pop()).await;
    until("it is not degraded any more", async || {
        let healthy = moorline_test_support::status::condition(&scene, "shop", "Healthy").await;
        (healthy["reason"] == "Progressing").then_some(())
    })
    .await;
    let warned = scene.status("shop", "/problems").await.to_string();
    assert!(!warned.contains("PodSecurity"), "{warned}");
}
