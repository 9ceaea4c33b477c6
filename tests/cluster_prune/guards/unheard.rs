//! The Sync itself is looked at once more before something is deleted: the watch that tells of it may be late, and a commit may
//! come before what was said earlier.

use serde_json::json;

use super::{deleted, until_asked, until_told};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{Scene, many};

#[tokio::test]
async fn who_has_said_that_nothing_is_pruned_loses_nothing_by_a_watch_that_is_late() {
    let Some(scene) = Scene::new("unheard").await else { return };
    let commit = scene.push(&many(6, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let mark = AuditMark::set(&scene.plane).await;
    let tells = |one: &RecordedRequest| one.method == "GET" && one.path.ends_with("/syncs");
    scene.proxy.rule(move |one| if tells(one) { Fate::Answer(500, None) } else { Fate::Pass });
    scene.proxy.cut_watches();
    let prunes = |enabled: bool| json!({"spec": {"prune": {"enabled": enabled}}});
    scene.patch_sync("shop", prunes(false)).await;
    scene.proxy.take_requests();
    let commit = scene.remove(&["a-5.json"]);
    let asks = |one: &RecordedRequest| one.method == "GET" && one.path.ends_with("/syncs/shop");
    until_asked(&scene, "the Sync is looked at", asks).await;
    until_told(&scene, "/a-5", "SyncChanged").await;
    assert_eq!(deleted(&mark).await, Vec::<String>::new());

    scene.proxy.heal();
    until_told(&scene, "/a-5", "PruneDisabled").await;
    scene.until_ready("shop", &commit).await;
    scene.proxy.take_requests();
    scene.assert_calm("while it is kept").await;
    assert_eq!(deleted(&mark).await, Vec::<String>::new());
    scene.patch_sync("shop", prunes(true)).await;
    let mut left = many(6, "one");
    left.truncate(5);
    scene.until_values(&left, "it goes").await;
    assert_eq!(deleted(&mark).await, ["a-5"]);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_sync_that_asks_for_the_same_in_other_words_prunes_on() {
    let Some(scene) = Scene::new("reworded").await else { return };
    let commit = scene.push(&many(6, "one"));
    let _daemon = scene.daemon();
    let synced = scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    // A value that is the default changes what stands there, and nothing of what is meant.
    scene.patch_sync("shop", json!({"spec": {"timeout": "300s"}})).await;
    let said = scene.until_ready("shop", &commit).await;
    assert!(said.metadata.generation > synced.metadata.generation);
    let mark = AuditMark::set(&scene.plane).await;
    scene.proxy.take_requests();
    let commit = scene.remove(&["a-4.json", "a-5.json"]);
    scene.until_ready("shop", &commit).await;
    assert_eq!(deleted(&mark).await.len(), 2);
    let asks = |one: &&RecordedRequest| one.method == "GET" && one.path.ends_with("/syncs/shop");
    assert_eq!(scene.proxy.take_requests().iter().filter(asks).count(), 1, "it is asked once for both");
    scene.delete_sync("shop").await;
}
