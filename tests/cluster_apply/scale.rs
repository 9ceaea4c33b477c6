//! Objects that a HorizontalPodAutoscaler scales, on a real API server: their numbers never fall by our doing, and
//! everything else is held to Git.

mod without_a_sync;

use crate::conflicts::ground::{APPLY, Ground, MERGE, deployment, expect, moment};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::numbers::{Numbers, api, scaler, scalers};
use serde_json::{Value, json};

const GET_SCALER: &str = "get horizontalpodautoscalers.autoscaling";
const WATCH_SCALERS: &str = "watch horizontalpodautoscalers.autoscaling";

fn replicas_of(ground: &Ground) -> Numbers {
    Numbers::of(api(&ground.admin, &ground.target, "apps", "Deployment"), "web", "/spec/replicas")
}

fn on_web() -> Value {
    scaler("apps/v1", "Deployment", "web")
}

async fn scale(ground: &Ground, manager: &str, replicas: u8) {
    let path = format!("{}/scale", ground.deployment());
    ground.patch(manager, &path, MERGE, json!({"spec": {"replicas": replicas}})).await;
}

fn is_ours(live: &Value) -> bool {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array).expect("entries");
    entries.iter().any(|entry| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        manager.starts_with("moorline/") && entry.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    })
}

fn hash(live: &Value) -> String {
    live["metadata"]["annotations"]["moorline.dev/spec-hash"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn replicas_never_fall_when_a_scaler_appears() {
    let Some(ground) = Ground::new("appears").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3}))]);
    ground.sync(json!({"drift": {"extraFields": "Remove"}})).await;
    ground.ready(&first, "Applied").await;
    let path = ground.deployment();
    let before = hash(&ground.get(&path).await.expect("the Deployment"));
    let numbers = replicas_of(&ground);
    let mark = ground.mark().await;
    ground.create("kubectl-create", &scalers(&ground.target), on_web()).await;
    scale(&ground, "kube-controller-manager", 7).await;
    ground.until("the replicas are left to it", &path, |live| hash(live) != before).await;
    scale(&ground, "kubectl-scale", 9).await;

    for (word, replicas) in [("second", 4), ("third", 5)] {
        let commit = ground.push(&[deployment(json!({"replicas": replicas, "minReadySeconds": replicas}))]);
        ground.nudge(word).await;
        let committed = |live: &Value| live["spec"]["minReadySeconds"] == replicas;
        ground.until("the rest is applied", &path, committed).await;
        ground.ready(&commit, "Applied").await;
    }
    ground.patch("kubectl-edit", &path, MERGE, json!({"spec": {"minReadySeconds": 1}})).await;
    ground.until("the rest is healed", &path, |live| live["spec"]["minReadySeconds"] == 5).await;
    for count in 1..4 {
        let status = json!({"status": {"currentReplicas": count, "desiredReplicas": 9}});
        let status_path = format!("{}/web/status", scalers(&ground.target));
        ground.patch("kube-controller-manager", &status_path, MERGE, status).await;
        moment(1100).await;
    }
    assert_eq!(numbers.all().await, [3, 7, 9]);
    let reads = ground.tally(&mark).await.get(GET_SCALER).copied();
    assert_eq!(reads, Some(1), "a status is not read");

    ground.delete(&format!("{}/web", scalers(&ground.target))).await;
    ground.until("Git's number comes back", &path, |live| live["spec"]["replicas"] == 5).await;
    assert_eq!(numbers.all().await, [3, 7, 9, 5]);
}

#[tokio::test]
async fn the_number_is_handed_over_as_it_is_and_then_nothing_is_asked() {
    let Some(ground) = Ground::new("hands-over").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3}))]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    moment(500).await;
    assert_eq!(ground.tally(&mark).await, expect([("patch deployments.apps", 1), (WATCH_SCALERS, 1)]));

    let numbers = replicas_of(&ground);
    let mark = ground.mark().await;
    ground.create("kubectl-create", &scalers(&ground.target), on_web()).await;
    let live = ground.until("it is handed over", &ground.deployment(), |live| !is_ours(live)).await;
    assert_eq!(live["spec"]["replicas"], 3);
    moment(1500).await;
    let tally = [(GET_SCALER, 1), ("get deployments.apps", 1), ("patch deployments.apps", 2)];
    assert_eq!(ground.tally(&mark).await, expect(tally));
    let mark = ground.mark().await;
    scale(&ground, "kube-controller-manager", 8).await;
    moment(1500).await;
    let asked = ground.tally(&mark).await;
    assert!(asked.values().sum::<usize>() <= 1, "others scale it, and one look is enough: {asked:?}");
    let mark = ground.mark().await;
    moment(1500).await;
    assert_eq!(ground.tally(&mark).await, expect([]), "at rest");

    let other = json!({"spec": {"scaleTargetRef": {"name": "other"}}});
    let path = format!("{}/web", scalers(&ground.target));
    ground.patch("kubectl-edit", &path, MERGE, other).await;
    ground.until("it scales another now", &ground.deployment(), |live| live["spec"]["replicas"] == 3).await;
    assert_eq!(numbers.all().await, [3, 8, 3]);
}

#[tokio::test]
async fn what_git_scales_gets_its_number_when_it_is_created_and_never_again() {
    let Some(ground) = Ground::new("in-git").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3})), on_web()]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let numbers = replicas_of(&ground);
    let path = ground.deployment();
    moment(1000).await;
    let tally = [
        (GET_SCALER, 1),
        (WATCH_SCALERS, 1),
        ("get deployments.apps", 1),
        ("patch deployments.apps", 3),
        ("patch horizontalpodautoscalers.autoscaling", 1),
    ];
    assert_eq!(ground.tally(&mark).await, expect(tally));
    assert!(!is_ours(&ground.get(&path).await.expect("the Deployment")));

    scale(&ground, "kube-controller-manager", 6).await;
    let second = ground.push(&[deployment(json!({"replicas": 5, "minReadySeconds": 7})), on_web()]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
    assert_eq!(numbers.all().await, [3, 6]);

    let uid = ground.get(&path).await.expect("it")["metadata"]["uid"].clone();
    ground.delete(&path).await;
    let anew = |live: &Value| live["metadata"]["uid"] != uid && !is_ours(live);
    let live = ground.until("it is created anew", &path, anew).await;
    assert_eq!(live["spec"]["replicas"], 5);
    scale(&ground, "kube-controller-manager", 9).await;

    ground.work.git(&["rm", "-q", "HorizontalPodAutoscaler-web.json"]);
    ground.push(&[]);
    ground.nudge("third").await;
    ground.until("Git's number comes back", &path, |live| live["spec"]["replicas"] == 5).await;
    assert_eq!(numbers.all().await, [3, 6, 5, 9, 5]);
}

#[tokio::test]
async fn a_number_that_moves_from_the_manifest_to_a_scaler_stays() {
    let Some(ground) = Ground::new("moves").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3}))]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let numbers = replicas_of(&ground);
    let second = ground.push(&[deployment(json!({"minReadySeconds": 7})), on_web()]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
    let live = ground.get(&ground.deployment()).await.expect("the Deployment");
    assert_eq!((&live["spec"]["minReadySeconds"], is_ours(&live)), (&json!(7), false));
    assert_eq!(numbers.all().await, [3]);
}

#[tokio::test]
async fn one_that_is_there_already_keeps_its_number() {
    let Some(ground) = Ground::new("adopts").await else { return };
    let path = ground.deployment();
    ground.create("kubectl-create", &path.replace("/web", ""), deployment(json!({"replicas": 8}))).await;
    let numbers = replicas_of(&ground);
    let first = ground.push(&[deployment(json!({"replicas": 3, "minReadySeconds": 7})), on_web()]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    // It was ours all the time, and now it is not seen.
    let off = json!({"metadata": {"labels": {"moorline.dev/sync": null}}});
    ground.patch("kubectl-edit", &path, MERGE, off).await;
    let marked = |live: &Value| live["metadata"]["labels"].get("moorline.dev/sync").is_some();
    ground.until("it is adopted anew", &path, marked).await;
    assert_eq!(numbers.all().await, [8]);
}

#[tokio::test]
async fn a_custom_resource_keeps_its_number_where_its_definition_says() {
    let Some(ground) = Ground::new("custom").await else { return };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pools.scale.example.com"},
        "spec": {
            "group": "scale.example.com", "scope": "Namespaced",
            "names": {"kind": "Pool", "plural": "pools", "singular": "pool"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"spec": {
                        "type": "object",
                        "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}},
                    }},
                }},
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
            }],
        },
    });
    let place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pools.scale.example.com";
    ground.patch("tests", place, APPLY, definition).await;
    let collection = format!("/apis/scale.example.com/v1/namespaces/{}/pools", ground.target);
    until("pools are served", async || ground.get(&collection).await).await;
    let path = format!("{collection}/web");
    let pool = |size: u8, colour: &str| {
        json!({
            "apiVersion": "scale.example.com/v1", "kind": "Pool", "metadata": {"name": "web"},
            "spec": {"size": size, "colour": colour},
        })
    };
    let first = ground.push(&[pool(3, "red")]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let numbers =
        Numbers::of(api(&ground.admin, &ground.target, "scale.example.com", "Pool"), "web", "/spec/size");
    let before = hash(&ground.get(&path).await.expect("the Pool"));
    ground
        .create("kubectl-create", &scalers(&ground.target), scaler("scale.example.com/v1", "Pool", "web"))
        .await;
    ground.until("the size is left to it", &path, |live| hash(live) != before).await;
    let seven = json!({"spec": {"replicas": 7}});
    ground.patch("kube-controller-manager", &format!("{path}/scale"), MERGE, seven).await;
    let second = ground.push(&[pool(4, "blue")]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
    ground.patch("kubectl-edit", &path, MERGE, json!({"spec": {"colour": "green"}})).await;
    ground.until("the rest is healed", &path, |live| live["spec"]["colour"] == "blue").await;
    assert_eq!(numbers.all().await, [3, 7]);
    let definitions =
        mark.requests().await.by_user(MOORLINE).filter(|it| it.name == "pools.scale.example.com").tally();
    assert_eq!(definitions, expect([("get customresourcedefinitions.apiextensions.k8s.io", 1)]));
    ground.delete(&format!("{}/web", scalers(&ground.target))).await;
    ground.until("Git's size comes back", &path, |live| live["spec"]["size"] == 4).await;
}

#[tokio::test]
async fn without_a_number_in_git_nothing_is_asked() {
    let Some(ground) = Ground::new("no-number").await else { return };
    let first = ground.push(&[deployment(json!({"minReadySeconds": 7}))]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    moment(500).await;
    assert_eq!(ground.tally(&mark).await, expect([("patch deployments.apps", 1)]));
}
