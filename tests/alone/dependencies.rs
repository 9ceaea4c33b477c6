//! Syncs that depend on Syncs: one after the other, and the other way round when they go.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use serde_json::{Value, json};

/// A folder for each Sync, with one ConfigMap.
fn folders(count: usize, value: &str) -> Vec<(String, String)> {
    (0..count).map(|at| (format!("s-{at}/a.json"), config_map(&format!("a-{at}"), value))).collect()
}

/// The names of ConfigMaps in the order in which the daemon did something to them.
async fn order(mark: &AuditMark, verb: &str) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE);
    let requests = requests.filter(|it| it.verb == verb && it.resource == "configmaps");
    requests.as_slice().iter().map(|it| it.name.clone()).collect()
}

fn names(range: impl Iterator<Item = usize>) -> Vec<String> {
    range.map(|at| format!("a-{at}")).collect()
}

const LENGTH: usize = 20;

#[tokio::test]
async fn a_chain_comes_and_goes_one_after_the_other() {
    let Some(scene) = Scene::new("chain").await else { return };
    let commit = scene.push(&folders(LENGTH, "one"));
    let _daemon = scene.daemon();
    let mark = AuditMark::set(&scene.plane).await;
    let begun = Instant::now();
    // The last one first: it has to wait for all others.
    for at in (0..LENGTH).rev() {
        let on: Vec<Value> =
            at.checked_sub(1).map(|on| json!({"name": format!("s-{on}")})).into_iter().collect();
        let spec =
            json!({"path": format!("s-{at}"), "dependsOn": on, "deletionPolicy": "Delete", "interval": "1h"});
        scene.sync(&format!("s-{at}"), spec).await;
    }
    scene.until_ready(&format!("s-{}", LENGTH - 1), &commit).await;
    let took = begun.elapsed();
    assert_eq!(order(&mark, "patch").await, names(0..LENGTH));
    assert!(took < Duration::from_secs(5), "{took:?}");
    println!("a chain of {LENGTH} settles in {took:?}");
    scene.assert_calm("with all of them").await;

    // A commit goes the same way.
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&folders(LENGTH, "two"));
    scene.nudge(&format!("s-{}", LENGTH - 1), "two").await;
    scene.until_ready(&format!("s-{}", LENGTH - 1), &commit).await;
    assert_eq!(order(&mark, "patch").await, names(0..LENGTH));

    let mark = AuditMark::set(&scene.plane).await;
    for at in 0..LENGTH {
        scene.syncs().delete(&format!("s-{at}"), &DeleteParams::default()).await.unwrap();
    }
    until("all are gone", async || {
        scene.syncs().list(&Default::default()).await.unwrap().items.is_empty().then_some(())
    })
    .await;
    assert_eq!(order(&mark, "delete").await, names((0..LENGTH).rev()));
    assert!(scene.values().await.is_empty());
}

#[tokio::test]
async fn who_waits_says_for_whom_and_holds_what_it_has() {
    let Some(scene) = Scene::new("waits").await else { return };
    let first = scene.push(&folders(2, "one"));
    let _daemon = scene.daemon();
    let on = |name: &str| json!([{"name": name}]);
    let message = async |name: &str| scene.status(name, "/conditions/0/message").await;
    scene.sync("s-1", json!({"path": "s-1", "dependsOn": on("s-0"), "interval": "1h"})).await;
    scene.until_reason("s-1", "DependencyNotReady").await;
    let told = format!(
        "it waits for the Sync {}/s-0, which does not exist, or is served by another daemon",
        scene.namespace
    );
    assert_eq!(message("s-1").await, told);
    tokio::time::sleep(QUIET_TIME).await;
    assert!(scene.values().await.is_empty(), "nothing of it is applied");
    scene.sync("s-0", json!({"path": "s-0", "interval": "1h"})).await;
    scene.until_ready("s-1", &first).await;

    // The next commit cannot be applied in the first, so that the second goes on with what it has.
    let broken = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-0"}, "data": {"key": {"a": 1}}});
    scene.push(&[
        ("s-0/a.json".to_owned(), broken.to_string()),
        ("s-1/a.json".to_owned(), config_map("a-1", "two")),
    ]);
    scene.nudge("s-1", "two").await;
    scene.until_reason("s-1", "DependencyNotReady").await;
    scene.edit("a-1", "by hand").await;
    until("an edit is repaired meanwhile", async || {
        (scene.values().await.get("a-1").map(String::as_str) == Some("one")).then_some(())
    })
    .await;
    let last = scene.push(&folders(2, "three"));
    scene.nudge("s-0", "three").await;
    scene.until_ready("s-1", &last).await;

    // In a circle nobody could begin.
    scene.patch_sync("s-0", json!({"spec": {"dependsOn": on("s-1")}})).await;
    let next = scene.push(&folders(2, "four"));
    scene.nudge("s-1", "four").await;
    scene.until_reason("s-1", "DependencyCycle").await;
    let (zero, one) = (format!("{}/s-0", scene.namespace), format!("{}/s-1", scene.namespace));
    let told = format!(
        "it waits for itself: {one} -> {zero} -> {one}; remove one of them from spec.dependsOn; main@{last} stays applied"
    );
    assert_eq!(message("s-1").await, told);
    scene.patch_sync("s-0", json!({"spec": {"dependsOn": []}})).await;
    scene.until_ready("s-1", &next).await;
    scene.until_ready("s-0", &next).await;
    scene.assert_calm("after it").await;
    scene.delete_sync("s-1").await;
    scene.delete_sync("s-0").await;
}
