//! A Sync that only reports drift: a deleted object is drift, the Sync is not Ready with it, and only a commit or mode
//! `Repair` creates it again.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;

use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};

/// The time in which a daemon that repairs would have created a deleted object.
const QUIET: Duration = Duration::from_secs(2);

async fn names(scene: &Scene) -> Vec<String> {
    let values: BTreeMap<String, String> = scene.values().await;
    values.into_keys().filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test]
async fn a_deleted_object_is_reported_and_created_by_the_next_commit() {
    let Some(scene) = Scene::new("report-mode").await else { return };
    let first =
        scene.push(&[("a.json".into(), config_map("a", "x")), ("b.json".into(), config_map("b", "x"))]);
    let mut daemon = scene.daemon();
    scene.sync("shop", json!({"drift": {"mode": "Report"}})).await;
    scene.until_ready("shop", &first).await;
    until("it stands in the status", async || {
        scene.status("shop", "/revision/appliedDigest").await.is_string().then_some(())
    })
    .await;
    scene.maps().delete("a", &DeleteParams::default()).await.unwrap();
    scene.until_reason("shop", "FieldsDiffer").await;
    assert_eq!(scene.status("shop", "/conditions/0/status").await, "False");
    assert_eq!(scene.status("shop", "/objects/drifted").await, 1);
    assert_eq!(scene.status("shop", "/problems/0/reason").await, "Deleted");
    tokio::time::sleep(QUIET).await;
    assert_eq!(names(&scene).await, ["b"], "Report creates nothing");

    daemon.terminate();
    let version = scene.status("shop", "").await;
    let _daemon = scene.daemon();
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!(names(&scene).await, ["b"], "a restart creates nothing");
    let after = scene.status("shop", "").await;
    assert_eq!(after["conditions"], version["conditions"], "a restart finds nothing new to say");

    scene.patch_sync("shop", json!({"spec": {"drift": {"mode": "Ignore"}}})).await;
    scene.nudge("shop", "ignored").await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(names(&scene).await, ["b"], "Ignore creates nothing");
    scene.until_reason("shop", "FieldsDiffer").await;

    let second = scene.push(&[("b.json".into(), config_map("b", "y"))]);
    scene.nudge("shop", "second").await;
    scene.until_ready("shop", &second).await;
    assert_eq!(names(&scene).await, ["a", "b"], "a commit creates it");

    scene.maps().delete("b", &DeleteParams::default()).await.unwrap();
    scene.until_reason("shop", "FieldsDiffer").await;
    scene.patch_sync("shop", json!({"spec": {"drift": {"mode": "Repair"}}})).await;
    scene.until_ready("shop", &second).await;
    until("it is created", async || (names(&scene).await == ["a", "b"]).then_some(())).await;
    scene.delete_sync("shop").await;
}
