//! `moorline sync` while a hook runs: the Sync progresses, and the command waits for the end of the hook.

use std::time::Duration;

use super::support::person::Going;
use super::support::scene::Scene;
use super::support::status::{condition, until_healthy, waiting};
use super::{end, hook, map, uid, until_waits, value};
use serde_json::json;

#[tokio::test]
async fn a_sync_that_is_asked_for_waits_for_a_running_hook() {
    let Some(scene) = Scene::new("hook-asked-for").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    scene.push(&[hook("migrate", "up", "before"), map("app", "1")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let first = uid(&jobs, "migrate", "").await;
    until_waits(&scene, "/app", &format!("Job.batch {}/migrate", scene.namespace)).await;
    let shown = condition(&scene, "shop", "Ready").await;
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("False"), &json!("Progressing")), "{shown}");

    let mut sync = Going::start(&scene, &["sync", "shop", "--timeout", "60"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(sync.code(), None, "a running hook is no end");
    end(&jobs, "migrate", true).await;
    assert_eq!(sync.ended().await, Some(0), "{:?}", sync.lines());
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"));

    // A hook that fails is an end.
    scene.push(&[hook("migrate", "break", "before"), map("app", "2")]);
    let mut sync = Going::start(&scene, &["sync", "shop", "--timeout", "60"]);
    uid(&jobs, "migrate", &first).await;
    end(&jobs, "migrate", false).await;
    assert_eq!(sync.ended().await, Some(1), "{:?}", sync.lines());
    until_healthy(&scene, "shop", "False", "Degraded").await;
    assert_eq!(condition(&scene, "shop", "Ready").await["reason"], "ObjectsHeld");
}
