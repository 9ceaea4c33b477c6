//! `moorline adopt --apply` where Git has more than the old tool held: a hook and a wave that take their time.
//!
//! In: an Application of three ConfigMaps, and a commit with a hook before them and a wave after them. Out: the command ends with 0, and not before
//! the hook and the wave have ended.

use std::time::Duration;

use serde_json::{Value, json};

use super::{map, push, three, uids, until_held};
use moorline_test_support::daemon::until;
use moorline_test_support::gitops_tools::{Part, Robot, application, install};
use moorline_test_support::person::RunningCommand;
use moorline_test_support::scene::Scene;
use moorline_test_support::status::{condition, define, ended, ready, report};

/// A Job that only the test brings to its end, and that runs before everything else.
fn hook() -> Value {
    let containers = json!([{"name": "main", "image": "example.com/main:1"}]);
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "migrate", "annotations": {"moorline.dev/hook": "before"}},
        "spec": {"managedBy": "example.com/test",
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}}},
    })
}

/// Waits until the Sync is on its way and this object waits for that one.
async fn until_waits(scene: &Scene, waits: &str, blocker: &str) {
    until(&format!("{waits} waits for {blocker}"), async || {
        let problems = scene.status("shop", "/problems").await;
        let expect = format!("it waits for {blocker}");
        let is_it = |one: &Value| {
            one["object"].as_str().is_some_and(|it| it.ends_with(waits)) && one["message"] == *expect
        };
        problems.as_array()?.iter().any(is_it).then_some(())
    })
    .await;
    let shown = condition(scene, "shop", "Ready").await;
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("False"), &json!("Progressing")), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adoption_waits_for_a_running_hook_and_a_running_wave() {
    let Some(scene) = Scene::new("adopt-rolling-out").await else { return };
    install(&scene).await;
    let (jobs, widgets) = (scene.dynamic("batch", "v1", "Job"), define(&scene, "Widget").await);
    let part = Part::ArgoCd;
    let _robot = Robot::start(&scene, part, three());
    application(&scene, json!({"selfHeal": true})).await;
    let before = until_held(&scene, part, 3).await;
    let mut in_git = three();
    in_git.push(hook());
    in_git.push(json!({"apiVersion": "ready.example/v1", "kind": "Widget",
        "metadata": {"name": "first"}, "spec": {"size": 1}}));
    let mut later = map("later", json!({"key": "one"}));
    later["metadata"]["annotations"] = json!({"moorline.dev/wave": "1"});
    in_git.push(later);
    let commit = push(&scene, &in_git);
    let _daemon = scene.daemon();

    let words = ["adopt", "application/shop", "--sync-namespace", &scene.namespace];
    let mut adopts = RunningCommand::start(&scene, &[&words[..], &["--apply", "--timeout", "60"]].concat());
    until("the hook runs", async || jobs.get_opt("migrate").await.unwrap()).await;
    let namespace = &scene.namespace;
    until_waits(&scene, "/first", &format!("Job.batch {namespace}/migrate")).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(adopts.code(), None, "a running hook is no end");

    report(&jobs, "migrate", ended(true)).await;
    until_waits(&scene, "/later", &format!("Widget.ready.example {namespace}/first")).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(adopts.code(), None, "a running wave is no end");

    report(&widgets, "first", ready("True", "")).await;
    assert_eq!(adopts.ended().await, Some(0), "{:?}", adopts.lines());
    scene.until_ready("shop", &commit).await;
    assert_eq!(uids(&scene).await, before);
    scene.delete_sync("shop").await;
}
