//! The way back to what somebody has signed, also by a daemon that restarts.

use serde_json::json;

use super::{fail_and_return, report, until_rolled_back, until_size, widget};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene};
use moorline_test_support::signers::{key, sign, spec, trust};
use moorline_test_support::status::{define, ready, waiting};

/// A version that is good, one that fails, a restart, and one that mends it.
async fn goes_back_to_a_signed_tag(purpose: &str, mode: &str) {
    let Some(scene) = Scene::new(purpose).await else { return };
    let Some(ann) = key(&scene, "ann") else { return };
    scene.work.git(&["config", "user.name", "Ann"]);
    scene.work.git(&["config", "user.email", "ann@example.com"]);
    trust(&scene, &[&ann]).await;
    sign(&scene, Some(&ann));
    let release = |name: &str, size: u8| {
        let commit = scene.push(&[widget("one", size)]);
        scene.work.git(&["tag", "-s", "-m", name, name]);
        scene.work.git(&["push", "-q", "origin", name]);
        commit
    };
    let widgets = define(&scene, "Widget").await;
    let good = release("v1.0.0", 1);
    let daemon = scene.daemon();
    let mut asked = spec(&scene, mode, json!({"semver": "1.x"}));
    asked["rollback"] = json!({"onFailure": true});
    waiting(&scene, "shop", asked).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &good).await;
    let bad = release("v1.1.0", 2);
    scene.nudge("shop", "bad").await;
    fail_and_return(&scene, &widgets, &bad, &good).await;
    scene.settle().await;
    drop(daemon);

    // A new daemon has only the status to tell which tag it was.
    let _daemon = scene.daemon();
    scene.nudge("shop", "again").await;
    tokio::time::sleep(QUIET_TIME).await;
    until_rolled_back(&scene, &bad, &good).await;
    let by_hand = kube::api::Patch::Merge(json!({"spec": {"size": 9}}));
    widgets.patch("one", &kube::api::PatchParams::default(), &by_hand).await.unwrap();
    until_size(&widgets, "one", 1).await;
    let better = release("v1.2.0", 3);
    scene.nudge("shop", "better").await;
    until_size(&widgets, "one", 3).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &better).await;
    until("the tag object of the one that is healthy is reported", async || {
        let (tag, healthy) =
            (scene.status("shop", "/revision/tag").await, scene.status("shop", "/revision/healthyTag").await);
        (tag.is_string() && tag == healthy).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_signed_tag_is_gone_back_to_also_after_a_restart() {
    goes_back_to_a_signed_tag("rollback-to-a-tag", "Tag").await;
}

#[tokio::test]
async fn so_is_one_whose_commit_is_signed_as_well() {
    goes_back_to_a_signed_tag("rollback-to-both", "TagAndHEAD").await;
}
