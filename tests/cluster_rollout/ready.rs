//! When a Sync is ready: its objects are applied, and as they should be.

use std::time::{Duration, Instant};

use kube::api::ListParams;
use moorline_test_support::asked::RecordedRequest;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::status::{
    condition, define, deployment, healthy, object, ready, report, until_healthy, waiting,
};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

fn reads(scene: &Scene, name: &str) -> usize {
    let end = format!("/{name}");
    scene.proxy.take_requests().iter().filter(|one| one.method == "GET" && one.path.ends_with(&end)).count()
}

#[tokio::test]
async fn a_sync_is_ready_once_its_objects_are() {
    let Some(scene) = Scene::new("ready").await else { return };
    let gadgets = define(&scene, "Gadget").await;
    // Another object of the kind reports, so that this one is known to have to.
    let commit = scene.push(&[
        object("Gadget", "one"),
        object("Gadget", "two"),
        ("a.json".into(), config_map("a", "1")),
    ]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let message = until_healthy(&scene, "shop", "Unknown", "Progressing").await;
    assert!(message.contains("its controller has not reported a status yet (and 1 more)"), "{message}");
    let told = condition(&scene, "shop", "Ready").await;
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("Progressing")), "{told}");
    assert_eq!(condition(&scene, "shop", "Reconciling").await["status"], "True");
    assert!(scene.status("shop", "/revision/applied").await.as_str().unwrap().ends_with(&commit));
    assert_eq!(scene.status("shop", "/revision/healthy").await, Value::Null);

    report(&gadgets, "one", ready("True", "")).await;
    report(&gadgets, "two", ready("False", "its disk is full")).await;
    until("the other one is waited for", async || {
        let told = condition(&scene, "shop", "Ready").await;
        told["message"].as_str().unwrap().contains("its disk is full").then_some(())
    })
    .await;
    report(&gadgets, "two", ready("True", "")).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(
        until_healthy(&scene, "shop", "True", "Healthy").await,
        "all objects that report health are healthy"
    );
    assert!(scene.status("shop", "/revision/healthy").await.as_str().unwrap().ends_with(&commit));
    assert_eq!(condition(&scene, "shop", "Reconciling").await, Value::Null);
    scene.assert_calm("while nothing changes").await;

    let mut failed = ready("False", "");
    failed["conditions"][0] =
        json!({"type": "Failed", "status": "True", "reason": "Broken", "message": "no more disks"});
    report(&gadgets, "two", failed).await;
    let message = until_healthy(&scene, "shop", "False", "Degraded").await;
    assert!(message.contains("shop/two") || message.contains("/two:"), "{message}");
    assert!(message.contains("no more disks"), "{message}");
    let told = condition(&scene, "shop", "Ready").await;
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("Degraded")));
    assert_eq!(scene.status("shop", "/problems/0/file").await, "two.json:1");
    assert_eq!(condition(&scene, "shop", "Reconciling").await, Value::Null, "nothing is being done about it");
    report(&gadgets, "two", ready("True", "")).await;
    scene.until_ready("shop", &commit).await;
    let history = scene.status("shop", "/history").await;
    assert_eq!(history.as_array().unwrap().len(), 1, "one commit, one entry: {history}");
    assert_eq!(history[0]["result"], "Applied");
}

#[tokio::test]
async fn a_status_is_judged_at_once_and_read_once_a_second() {
    let Some(scene) = Scene::new("judged").await else { return };
    let (gauges, _daemon, commit) = healthy(&scene, "Gauge").await;
    let mut took = Vec::new();
    for round in 0..5 {
        tokio::time::sleep(QUIET_TIME).await;
        scene.proxy.take_requests();
        let (value, begun) = (if round % 2 == 0 { "False" } else { "True" }, Instant::now());
        report(&gauges, "one", ready(value, "")).await;
        let said = until("it is judged", async || {
            let said = |one: &RecordedRequest| one.writes() && one.path.ends_with("/syncs/shop/status");
            scene.proxy.take_requests().into_iter().find(said)
        })
        .await;
        let healthy = said.text().contains(r#""reason":"Healthy""#);
        assert_eq!(healthy, value == "True", "{}", said.text());
        took.push(said.at - begun);
    }
    println!("from a status to the condition: {took:?}");
    took.sort();
    // If other tests run beside this, single ones may take longer, so that the slowest of the five does not count.
    assert!(took[3] < under_load(Duration::from_millis(200)), "{took:?}");

    tokio::time::sleep(QUIET_TIME).await;
    scene.proxy.take_requests();
    let begun = Instant::now();
    let mut writes = 0;
    while begun.elapsed() < Duration::from_secs(4) {
        report(&gauges, "one", ready("False", &format!("{writes} of many"))).await;
        writes += 1;
    }
    let reads = reads(&scene, "one");
    assert!(writes > 50 && (3..=5).contains(&reads), "{reads} reads of {writes} statuses in 4 s");
    report(&gauges, "one", ready("True", "")).await;
    scene.until_ready("shop", &commit).await;
}

#[tokio::test]
async fn what_lies_beneath_is_named() {
    let Some(scene) = Scene::new("beneath").await else { return };
    let commit = scene.push(&[deployment("web", "registry.example/web:1", 1)]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    until_healthy(&scene, "shop", "Unknown", "Progressing").await;
    let pods = scene.dynamic("", "v1", "Pod");
    let pod =
        until("there is a Pod", async || pods.list(&ListParams::default()).await.unwrap().items.pop()).await;
    let name = pod.metadata.name.unwrap();
    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}});
    let container =
        json!({"name": "web", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": waits});
    report(&pods, &name, json!({"phase": "Pending", "containerStatuses": [container]})).await;
    let message = until("the cause is reported", async || {
        let told = condition(&scene, "shop", "Ready").await;
        let message = told["message"].as_str().unwrap_or_default().to_owned();
        message.contains(&name).then_some(message)
    })
    .await;
    assert!(message.contains("ImagePullBackOff"), "{message}");
    println!("{message}");
    let running = json!({"name": "web", "image": "", "imageID": "", "ready": true, "restartCount": 0, "started": true,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
    let up = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    report(&pods, &name, json!({"phase": "Running", "conditions": up, "containerStatuses": [running]})).await;
    scene.until_ready("shop", &commit).await;
    // Nothing is asked any more.
    scene.settle().await;
    scene.assert_calm("while nothing changes").await;
}

#[tokio::test]
async fn a_rule_of_the_sync_decides() {
    let Some(scene) = Scene::new("rules").await else { return };
    let engines = define(&scene, "Engine").await;
    let commit = scene.push(&[object("Engine", "one")]);
    let _daemon = scene.daemon();
    let rule =
        |healthy: &str| json!({"rules": [{"group": "ready.example", "kind": "Engine", "healthy": healthy}]});
    waiting(&scene, "shop", json!({"health": rule("object.status.speed >")})).await;
    scene.until_reason("shop", "SpecInvalid").await;
    let told = condition(&scene, "shop", "Stalled").await["message"].as_str().unwrap().to_owned();
    assert!(told.contains("spec.health.rules[0] (Engine.ready.example) healthy:1:"), "{told}");
    scene.patch_sync("shop", json!({"spec": {"health": rule("object.status.speed > 10")}})).await;
    until_healthy(&scene, "shop", "Unknown", "Progressing").await;
    report(&engines, "one", json!({"speed": 5})).await;
    until("the rule is asked", async || {
        let told = condition(&scene, "shop", "Healthy").await;
        told["message"].as_str().unwrap_or_default().contains("the rule's healthy is not true").then_some(())
    })
    .await;
    report(&engines, "one", json!({"speed": 50})).await;
    scene.until_ready("shop", &commit).await;
    // A Sync that does not wait gets the report all the same.
    report(&engines, "one", json!({"speed": 5})).await;
    scene.until_reason("shop", "Progressing").await;
    let mut without = rule("object.status.speed > 10");
    without["wait"] = false.into();
    scene.patch_sync("shop", json!({"spec": {"health": without}})).await;
    scene.until_ready("shop", &commit).await;
    until_healthy(&scene, "shop", "Unknown", "Progressing").await;
}

#[tokio::test]
async fn who_depends_on_a_sync_waits_until_it_is_healthy_and_a_restart_keeps_what_is_known() {
    let Some(scene) = Scene::new("after").await else { return };
    let gates = define(&scene, "Gate").await;
    let folder = |name: &str, (file, text): (String, String)| (format!("{name}/{file}"), text);
    let commit = scene.push(&[
        folder("first", object("Gate", "one")),
        folder("second", ("a.json".into(), config_map("a", "1"))),
    ]);
    let daemon = scene.daemon();
    waiting(&scene, "second", json!({"path": "second", "dependsOn": [{"name": "first"}]})).await;
    waiting(&scene, "first", json!({"path": "first"})).await;
    until_healthy(&scene, "first", "Unknown", "Progressing").await;
    scene.until_reason("second", "DependencyNotReady").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert!(scene.values().await.is_empty(), "the first one is not healthy");
    report(&gates, "one", ready("True", "")).await;
    scene.until_ready("second", &commit).await;
    restarts_quietly(&scene, daemon, &commit).await;
}

/// A new daemon finds everything as it was, and writes no status.
async fn restarts_quietly(scene: &Scene, daemon: Daemon, commit: &str) {
    drop(daemon);
    let version = async || scene.syncs().get("first").await.unwrap().metadata.resource_version;
    let before = version().await;
    let _daemon = scene.daemon();
    scene.settle().await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(version().await, before, "nothing is said anew");
    scene.until_ready("first", commit).await;
}
