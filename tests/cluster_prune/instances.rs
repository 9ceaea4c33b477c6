//! Daemons that serve different Syncs of one cluster: what one does not serve is not gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::scene::{Scene, many};
use moorline_test_support::under_load::under_load;

/// Returns the identity of each object.
async fn owners(scene: &Scene) -> Vec<String> {
    let maps = scene.maps().list(&kube::api::ListParams::default()).await.unwrap();
    let identities =
        maps.items.into_iter().filter_map(|map| map.metadata.annotations?.remove("moorline.dev/id"));
    identities.filter_map(|text| Some(text.split_once('|')?.0.to_owned())).collect()
}

/// A Sync that wants the same objects takes none of them.
async fn assert_keeps(scene: &Scene, owner: &str) {
    let before = scene.versions().await;
    scene.sync("late", json!({})).await;
    scene.until_reason("late", "ObjectsHeld").await;
    scene.assert_calm("while two claim the same").await;
    let problems = scene.status("late", "/problems").await;
    let reasons: Vec<&Value> = problems.as_array().unwrap().iter().map(|it| &it["reason"]).collect();
    assert_eq!(reasons, ["OwnedBy", "OwnedBy"]);
    assert_eq!(owners(scene).await, vec![format!("{}/{owner}", scene.namespace); 2]);
    assert_eq!(scene.versions().await, before);
    scene.delete_sync("late").await;
}

#[tokio::test]
async fn a_sync_of_another_instance_keeps_its_objects() {
    let Some(scene) = Scene::new("instances").await else { return };
    let commit = scene.push(&many(2, "one"));
    let proxy = FaultProxy::start(&scene.plane);
    let _blue = scene.daemon_at(&proxy, "blue", &["--leader-election=false", "--instance", "blue"]);
    scene.sync("blue", json!({})).await;
    scene.patch_sync("blue", json!({"metadata": {"labels": {"moorline.dev/instance": "blue"}}})).await;
    scene.until_ready("blue", &commit).await;
    let _daemon = scene.daemon();
    assert_keeps(&scene, "blue").await;
    scene.delete_sync("blue").await;
}

/// Gives a Sync to another instance, and waits until that one has applied a new commit and is named in the status.
async fn moves_to_blue(scene: &Scene, begun: Instant) {
    let commit = scene.push(&many(2, "two"));
    scene.patch_sync("shop", json!({"metadata": {"labels": {"moorline.dev/instance": "blue"}}})).await;
    scene.until_ready("shop", &commit).await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(15)), "{:?}", begun.elapsed());
    let held_by = scene.status("shop", "/heldBy").await;
    assert!(held_by.as_str().is_some_and(|lease| lease.ends_with("moorline-blue")), "{held_by}");
}

#[tokio::test]
async fn a_sync_that_changes_its_instance_is_taken_over_within_seconds() {
    let Some(scene) = Scene::new("instance-changes").await else { return };
    let commit = scene.push(&many(2, "one"));
    let proxy = FaultProxy::start(&scene.plane);
    let _blue = scene.daemon_at(&proxy, "blue", &["--instance", "blue"]);
    let _first = scene.daemon_with(&[]);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    moves_to_blue(&scene, Instant::now()).await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_sync_that_left_while_its_daemon_was_down_is_taken_over_as_well() {
    let Some(scene) = Scene::new("instance-left").await else { return };
    let commit = scene.push(&many(2, "one"));
    scene.sync("shop", json!({})).await;
    let first = scene.daemon_with(&[]);
    scene.until_ready("shop", &commit).await;
    drop(first);
    scene.patch_sync("shop", json!({"metadata": {"labels": {"moorline.dev/instance": "blue"}}})).await;
    // The same Lease is held again, and the status names it.
    let _first = scene.daemon_with(&[]);
    until("the Lease is held again", async || {
        scene.proxy.take_requests().iter().any(|one| one.is_watch()).then_some(())
    })
    .await;
    let proxy = FaultProxy::start(&scene.plane);
    let _blue = scene.daemon_at(&proxy, "blue", &["--instance", "blue"]);
    moves_to_blue(&scene, Instant::now()).await;
    scene.delete_sync("shop").await;
}

/// A Sync goes to another instance while an object leaves Git: with one key for both the other one may delete it without asking.
#[tokio::test]
async fn instances_that_share_a_key_believe_each_other_and_others_ask() {
    for (keys, is_shared) in [(["blue-and-green"; 2], true), (["green-key", "blue-key"], false)] {
        let Some(scene) = Scene::new("instance-keys").await else { return };
        let commit = scene.push(&many(3, "one"));
        let mut first = scene.daemon_with(&["--key-secret", keys[0]]);
        scene.sync("shop", json!({})).await;
        scene.until_ready("shop", &commit).await;
        first.terminate();
        drop(first);
        scene.remove(&["a-2.json"]);
        scene.patch_sync("shop", json!({"metadata": {"labels": {"moorline.dev/instance": "blue"}}})).await;
        let proxy = FaultProxy::start(&scene.plane);
        let _blue = scene.daemon_at(&proxy, "blue", &["--instance", "blue", "--key-secret", keys[1]]);
        until("the other instance decides about the object", async || {
            let is_gone = scene.maps().get_opt("a-2").await.unwrap().is_none();
            let asks = scene.status("shop", "/problems").await.to_string().contains("Unproven");
            (if is_shared { is_gone } else { asks }).then_some(())
        })
        .await;
        assert_eq!(scene.values().await.len(), if is_shared { 2 } else { 3 });
        scene.delete_sync("shop").await;
    }
}

#[tokio::test]
async fn a_run_without_a_sync_keeps_its_objects() {
    let Some(scene) = Scene::new("runs").await else { return };
    scene.push(&many(2, "one"));
    let (proxy, url) = (FaultProxy::start(&scene.plane), scene.git.url("repository.git"));
    let _run = scene.daemon_at(&proxy, "run", &["--url", &url, "--name", "alone"]);
    until("the run has applied it", async || (scene.values().await.len() == 2).then_some(())).await;
    let _daemon = scene.daemon();
    assert_keeps(&scene, "alone").await;
}
