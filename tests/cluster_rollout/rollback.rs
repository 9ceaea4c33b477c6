//! A commit whose objects do not become well is given up for the last one whose did, where the Sync asks for that. The
//! controller of the objects is the test.

mod ask_first;
mod beside;
mod by_hand;
mod refused;
mod signed;

use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::status::{condition, define, ready, report as report_status, waiting};
use serde_json::{Value, json};

/// A widget of some size, as a file.
fn widget(name: &str, size: u8) -> (String, String) {
    let body = json!({"apiVersion": "ready.example/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}});
    (format!("{name}.json"), body.to_string())
}

fn failed() -> Value {
    json!({"conditions": [
        {"type": "Stalled", "status": "True", "reason": "Full", "message": "the disk is too small"},
    ]})
}

/// Reports a status of the newest generation, as a good controller does. Without its number, the
/// status of before would count for a commit whose widgets nobody has looked at yet.
async fn report(widgets: &Api<DynamicObject>, name: &str, mut status: Value) {
    let widget = widgets.get(name).await.unwrap();
    status["observedGeneration"] = widget.metadata.generation.into();
    report_status(widgets, name, status).await;
}

async fn until_size(widgets: &Api<DynamicObject>, name: &str, size: u8) {
    until(&format!("{name} has the size {size}"), async || {
        let found = widgets.get_opt(name).await.unwrap()?;
        (found.data["spec"]["size"] == size).then_some(())
    })
    .await;
}

/// Waits until the Sync holds one revision instead of another; its sentence.
async fn until_rolled_back(scene: &Scene, rejected: &str, instead: &str) -> String {
    until("the Sync has rolled back", async || {
        let ready = condition(scene, "shop", "Ready").await;
        let revision = scene.status("shop", "/revision").await;
        let is = |field: &str, commit: &str| revision[field].as_str().is_some_and(|it| it.ends_with(commit));
        let told = ready["reason"] == "RolledBack" && ready["status"] == "False";
        (told && is("rejected", rejected) && is("applied", instead) && is("healthy", instead))
            .then(|| ready["message"].as_str().unwrap().to_owned())
    })
    .await
}

/// The widget of a commit that makes it larger fails, and is well again as it was before.
async fn fail_and_return(scene: &Scene, widgets: &Api<DynamicObject>, bad: &str, good: &str) {
    until_size(widgets, "one", 2).await;
    report(widgets, "one", failed()).await;
    until_rolled_back(scene, bad, good).await;
    until_size(widgets, "one", 1).await;
    report(widgets, "one", ready("True", "")).await;
}

#[tokio::test]
async fn a_commit_that_fails_is_given_up_until_a_newer_one_comes() {
    let Some(scene) = Scene::new("rollback").await else { return };
    let widgets = define(&scene, "Widget").await;
    let good = scene.push(&[widget("one", 1), widget("lame", 1)]);
    let daemon = scene.daemon();
    let spec = json!({"rollback": {"onFailure": true}});
    waiting(&scene, "shop", spec).await;
    for name in ["one", "lame"] {
        until("it is there", async || widgets.get_opt(name).await.unwrap()).await;
        report(&widgets, name, ready("True", "")).await;
    }
    scene.until_ready("shop", &good).await;

    let bad = scene.push(&[widget("one", 2), ("new.json".into(), config_map("new", "1"))]);
    scene.nudge("shop", "bad").await;
    until_size(&widgets, "one", 2).await;
    report(&widgets, "one", failed()).await;
    let message = until_rolled_back(&scene, &bad, &good).await;
    assert!(
        message.contains("Widget.ready.example") && message.contains("the disk is too small"),
        "{message}"
    );
    until_size(&widgets, "one", 1).await;
    until("what came with it is gone", async || scene.values().await.is_empty().then_some(())).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.settle().await;
    scene.assert_calm("once it has rolled back").await;
    let history = scene.status("shop", "/history").await;
    let entry = history.as_array().unwrap().iter().find(|it| it["result"] == "RolledBack").unwrap();
    assert!(entry["revision"].as_str().unwrap().ends_with(&bad), "{history}");

    // Neither another look nor another daemon tries it again.
    scene.nudge("shop", "again").await;
    scene.settle().await;
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    scene.assert_calm("after a restart").await;
    until_size(&widgets, "one", 1).await;
    until_rolled_back(&scene, &bad, &good).await;

    let better = scene.push(&[widget("one", 3)]);
    scene.nudge("shop", "better").await;
    until_size(&widgets, "one", 3).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &better).await;
    assert_eq!(scene.status("shop", "/revision/rejected").await, Value::Null);
}

#[tokio::test]
async fn what_was_not_well_before_does_not_count_and_nobody_returns_unasked() {
    let Some(scene) = Scene::new("no-rollback").await else { return };
    let widgets = define(&scene, "Widget").await;
    let good = scene.push(&[widget("one", 1), widget("lame", 1)]);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({"rollback": {"onFailure": true}})).await;
    for name in ["one", "lame"] {
        until("it is there", async || widgets.get_opt(name).await.unwrap()).await;
        report(&widgets, name, ready("True", "")).await;
    }
    scene.until_ready("shop", &good).await;
    report(&widgets, "lame", failed()).await;
    moorline_test_support::status::until_healthy(&scene, "shop", "False", "Degraded").await;
    scene.push(&[widget("one", 2)]);
    scene.nudge("shop", "two").await;
    until_size(&widgets, "one", 2).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.settle().await;
    until_size(&widgets, "one", 2).await;
    assert_eq!(condition(&scene, "shop", "Ready").await["reason"], "Degraded");
    // Nor for a daemon that restarts.
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    until_size(&widgets, "one", 2).await;
    assert_eq!(condition(&scene, "shop", "Ready").await["reason"], "Degraded");

    // Without the switch a commit that fails stays.
    report(&widgets, "lame", ready("True", "")).await;
    moorline_test_support::status::until_healthy(&scene, "shop", "True", "Healthy").await;
    scene.patch_sync("shop", json!({"spec": {"rollback": {"onFailure": false}}})).await;
    scene.push(&[widget("one", 4)]);
    scene.nudge("shop", "four").await;
    until_size(&widgets, "one", 4).await;
    report(&widgets, "one", failed()).await;
    moorline_test_support::status::until_healthy(&scene, "shop", "False", "Degraded").await;
    scene.settle().await;
    until_size(&widgets, "one", 4).await;
}

#[tokio::test]
async fn what_only_goes_on_has_failed_when_its_time_is_over() {
    const PATIENCE: Duration = Duration::from_secs(5);
    let Some(scene) = Scene::new("rollback-of-the-late").await else { return };
    let widgets = define(&scene, "Widget").await;
    let good = scene.push(&[widget("one", 1)]);
    let _daemon = scene.daemon();
    let timeout = format!("{}s", PATIENCE.as_secs());
    waiting(&scene, "shop", json!({"rollback": {"onFailure": true}, "health": {"timeout": timeout}})).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &good).await;
    let bad = scene.push(&[widget("one", 2)]);
    scene.nudge("shop", "bad").await;
    until_size(&widgets, "one", 2).await;
    let since = Instant::now();
    report(&widgets, "one", ready("False", "it starts")).await;
    moorline_test_support::status::until_healthy(&scene, "shop", "Unknown", "Progressing").await;
    let message = until_rolled_back(&scene, &bad, &good).await;
    assert!(since.elapsed() >= PATIENCE, "{:?}", since.elapsed());
    assert!(message.contains("it starts"), "{message}");
    until_size(&widgets, "one", 1).await;
}

#[tokio::test]
async fn a_hook_that_fails_takes_its_commit_back() {
    let Some(scene) = Scene::new("rollback-of-a-hook").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let hook = |command: &str| {
        let containers = json!([{"name": "main", "image": "example.com/main:1", "command": [command]}]);
        let body = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "smoke", "annotations": {"moorline.dev/hook": "after"}},
            "spec": {"managedBy": "example.com/test",
                "template": {"spec": {"restartPolicy": "Never", "containers": containers}}},
        });
        ("smoke.json".to_owned(), body.to_string())
    };
    let good = scene.push(&[hook("one"), ("app.json".into(), config_map("app", "1"))]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({"rollback": {"onFailure": true}})).await;
    let first = until("the hook runs", async || jobs.get_opt("smoke").await.unwrap()?.metadata.uid).await;
    report(&jobs, "smoke", moorline_test_support::status::ended(true)).await;
    scene.until_ready("shop", &good).await;
    let bad = scene.push(&[("app.json".into(), config_map("app", "2"))]);
    scene.nudge("shop", "bad").await;
    until("the hook runs again", async || {
        let uid = jobs.get_opt("smoke").await.unwrap()?.metadata.uid?;
        (uid != first).then_some(())
    })
    .await;
    assert_eq!(scene.values().await["app"], "2");
    report(&jobs, "smoke", moorline_test_support::status::ended(false)).await;
    let message = until_rolled_back(&scene, &bad, &good).await;
    assert!(message.contains("Job.batch"), "{message}");
    assert_eq!(scene.values().await["app"], "1");
    scene.settle().await;
    scene.assert_calm_but_for_looks("once it has rolled back").await;
}
