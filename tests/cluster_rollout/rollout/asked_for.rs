//! `moorline sync` while a hook or a wave runs: the Sync progresses, and the command waits for the end of it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{config_map, end, hook, in_wave, map, uid, until_waits, value};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::page_requests::get;
use moorline_test_support::person::{RunningCommand, moorline};
use moorline_test_support::scene::Scene;
use moorline_test_support::status::{condition, define, ready, report, until_healthy, waiting};

/// A daemon that shows its page.
fn with_page(scene: &Scene) -> Daemon {
    scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"])
}

/// The condition, the command line and the page say that the Sync is on its way; nobody says that it waits for a person.
async fn is_progress_everywhere(scene: &Scene, daemon: &Daemon) {
    let shown = condition(scene, "shop", "Ready").await;
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("False"), &json!("Progressing")), "{shown}");
    assert_eq!(condition(scene, "shop", "Reconciling").await["status"], "True");

    let line = moorline(scene, &["status"]);
    assert!(line.data.contains(" False  Progressing "), "{}", line.data);
    let whole = moorline(scene, &["status", "shop"]);
    assert!(whole.data.contains("False (Progressing)"), "{}", whole.data);

    let address = until("the page is there", async || daemon.page()).await;
    let path = format!("/syncs/{}/shop", scene.namespace);
    let told: Value = until("the page tells it", async || {
        let told: Value = serde_json::from_str(&get(&address, &format!("/api/v1{path}")).body).ok()?;
        (told["reason"] == "Progressing").then_some(told)
    })
    .await;
    assert_eq!((&told["state"], &told["message"]), (&json!("Progressing"), &shown["message"]));
    let page = get(&address, &path).body;
    assert!(page.contains("Progressing"), "{page}");
    assert!(!page.contains("Pending approval") && !page.contains("needs attention"), "{page}");
}

#[tokio::test]
async fn a_sync_that_is_asked_for_waits_for_a_running_hook() {
    let Some(scene) = Scene::new("hook-asked-for").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    scene.push(&[hook("migrate", "up", "before"), map("app", "1")]);
    let daemon = with_page(&scene);
    waiting(&scene, "shop", json!({})).await;
    let first = uid(&jobs, "migrate", "").await;
    until_waits(&scene, "/app", &format!("Job.batch {}/migrate", scene.namespace)).await;
    is_progress_everywhere(&scene, &daemon).await;

    let mut sync = RunningCommand::start(&scene, &["sync", "shop", "--timeout", "60"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(sync.code(), None, "a running hook is no end");
    end(&jobs, "migrate", true).await;
    assert_eq!(sync.ended().await, Some(0), "{:?}", sync.lines());
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"));

    // A hook that fails is an end.
    scene.push(&[hook("migrate", "break", "before"), map("app", "2")]);
    let mut sync = RunningCommand::start(&scene, &["sync", "shop", "--timeout", "60"]);
    uid(&jobs, "migrate", &first).await;
    end(&jobs, "migrate", false).await;
    assert_eq!(sync.ended().await, Some(1), "{:?}", sync.lines());
    until_healthy(&scene, "shop", "False", "Degraded").await;
    assert_eq!(condition(&scene, "shop", "Ready").await["reason"], "ObjectsHeld");
}

#[tokio::test]
async fn a_sync_that_is_asked_for_waits_for_a_running_wave() {
    let Some(scene) = Scene::new("wave-asked-for").await else { return };
    let widgets = define(&scene, "Widget").await;
    let mut later: Value = serde_json::from_str(&config_map("later", "1")).unwrap();
    later["metadata"]["annotations"] = json!({"moorline.dev/wave": "1"});
    scene.push(&[in_wave("Widget", "first", 0, 1), ("later.json".to_owned(), later.to_string())]);
    let daemon = with_page(&scene);
    waiting(&scene, "shop", json!({})).await;
    until("the first wave is there", async || widgets.get_opt("first").await.unwrap()).await;
    until_waits(&scene, "/later", &format!("Widget.ready.example {}/first", scene.namespace)).await;
    is_progress_everywhere(&scene, &daemon).await;

    let mut sync = RunningCommand::start(&scene, &["sync", "shop", "--timeout", "60"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(sync.code(), None, "a running wave is no end");
    report(&widgets, "first", ready("True", "")).await;
    assert_eq!(sync.ended().await, Some(0), "{:?}", sync.lines());
    assert_eq!(value(&scene, "later").await.as_deref(), Some("1"));
}
