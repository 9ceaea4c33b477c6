//! The way back beside others: Syncs of the same repository, Syncs that wait for it, and the brake on deletions.

use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{fail_and_return, failed, report, until_rolled_back, until_size, widget};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::status::{condition, define, ready, waiting};

fn within(folder: &str, (name, text): (String, String)) -> (String, String) {
    (format!("{folder}/{name}"), text)
}

fn map(name: &str, value: &str) -> (String, String) {
    (format!("{name}.json"), config_map(name, value))
}

#[tokio::test]
async fn a_neighbour_takes_the_commit_that_another_has_given_up() {
    let Some(scene) = Scene::new("rollback-neighbour").await else { return };
    let widgets = define(&scene, "Widget").await;
    let good = scene.push(&[
        within("shop", widget("one", 1)),
        within("beside", map("b", "1")),
        within("beside", map("old", "1")),
    ]);
    let _daemon = scene.daemon();
    let on_failure = json!({"onFailure": true});
    waiting(&scene, "shop", json!({"path": "shop", "rollback": on_failure})).await;
    waiting(&scene, "beside", json!({"path": "beside", "rollback": on_failure})).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &good).await;
    scene.until_ready("beside", &good).await;

    // The other one looks only when the first has gone back, and releases what has left it.
    scene.patch_sync("beside", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("beside", "Suspended").await;
    scene.work.git(&["rm", "-q", "--", "beside/old.json"]);
    let bad = scene.push(&[
        within("shop", widget("one", 2)),
        within("shop", map("new", "1")),
        within("beside", map("b", "2")),
    ]);
    scene.nudge("shop", "bad").await;
    fail_and_return(&scene, &widgets, &bad, &good).await;
    scene.patch_sync("beside", json!({"spec": {"suspend": false}})).await;
    scene.until_ready("beside", &bad).await;
    let expect = [map("b", "2")];
    scene.until_values(&expect, "each has what it holds, and nothing is left over").await;
    until_rolled_back(&scene, &bad, &good).await;
    scene.settle().await;
    scene.assert_calm("side by side").await;
    scene.until_ready("beside", &bad).await;
}

#[tokio::test]
async fn whoever_waits_for_it_takes_up_the_next_commit_and_keeps_nobody_waiting() {
    let Some(scene) = Scene::new("rollback-dependents").await else { return };
    let widgets = define(&scene, "Widget").await;
    let files = |size: u8, value: &str| {
        [within("base", widget("one", size)), within("shop", map("b", value))].to_vec()
    };
    let good = scene.push(&files(1, "1"));
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({"path": "base", "rollback": {"onFailure": true}})).await;
    waiting(&scene, "dependent", json!({"path": "shop", "dependsOn": [{"name": "shop"}]})).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("dependent", &good).await;

    let mut next = files(2, "2");
    next.push(within("base", map("new", "1")));
    let bad = scene.push(&next);
    scene.nudge("shop", "bad").await;
    scene.nudge("dependent", "bad").await;
    fail_and_return(&scene, &widgets, &bad, &good).await;
    // Objects that came with it go, although the one that waits has not read that commit.
    scene.until_values(&[map("b", "1")], "all is as it was").await;
    scene.until_reason("dependent", "DependencyNotReady").await;
    scene.nudge("dependent", "again").await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.until_values(&[map("b", "1")], "what was given up is not taken up by others").await;
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    scene.until_values(&[map("b", "1")], "nor after a restart").await;
    scene.until_reason("dependent", "DependencyNotReady").await;

    scene.work.git(&["rm", "-q", "--", "base/new.json"]);
    let better = scene.push(&files(3, "3"));
    scene.nudge("shop", "better").await;
    until_size(&widgets, "one", 3).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &better).await;
    scene.until_ready("dependent", &better).await;
    scene.until_values(&[map("b", "3")], "both have the next one").await;
}

#[tokio::test]
async fn objects_that_a_rollback_may_not_delete_are_reported_and_deleted_after_approval() {
    let Some(scene) = Scene::new("rollback-budget").await else { return };
    let widgets = define(&scene, "Widget").await;
    let gone = ["x-0", "x-1", "x-2"];
    let mut files: Vec<_> = gone.iter().map(|name| map(name, "1")).collect();
    files.push(widget("one", 1));
    let good = scene.push(&files);
    let _daemon = scene.daemon();
    let spec = json!({"rollback": {"onFailure": true}, "prune": {"enabled": true, "budget": {"count": 3}}});
    waiting(&scene, "shop", spec).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &good).await;
    // It takes three away, which may go, and brings four.
    scene.work.git(&["rm", "-q", "--", "x-0.json", "x-1.json", "x-2.json"]);
    let mut files: Vec<_> = (0..4).map(|at| map(&format!("y-{at}"), "1")).collect();
    files.push(widget("one", 2));
    let bad = scene.push(&files);
    scene.nudge("shop", "bad").await;
    until_size(&widgets, "one", 2).await;
    until("three are gone", async || scene.maps().get_opt("x-2").await.unwrap().is_none().then_some(()))
        .await;
    report(&widgets, "one", failed()).await;
    until_rolled_back(&scene, &bad, &good).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    for name in gone {
        until("what it took away is back", async || scene.maps().get_opt(name).await.unwrap()).await;
    }
    let approval = until("it is asked", async || {
        let approval = scene.status("shop", "/approval").await;
        (approval["objects"] == 4).then(|| approval["hash"].as_str().unwrap().to_owned())
    })
    .await;
    let message = condition(&scene, "shop", "Ready").await["message"].as_str().unwrap().to_owned();
    assert!(message.contains("4") && message.contains(&approval), "{message}");
    assert_eq!(condition(&scene, "shop", "Ready").await["reason"], "RolledBack");
    scene.settle().await;
    scene.assert_calm("while a person is asked").await;
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": approval}}})).await;
    let expect: Vec<_> = gone.iter().map(|name| map(name, "1")).collect();
    scene.until_values(&expect, "what it brought is gone").await;
    // The status is written after the last deletion.
    until("nobody is asked any more", async || {
        let ready = condition(&scene, "shop", "Ready").await;
        let asks = ready["message"].as_str().unwrap().contains("moorline.dev/approve");
        (!asks && scene.status("shop", "/approval").await == Value::Null).then_some(())
    })
    .await;
    until_rolled_back(&scene, &bad, &good).await;
    scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn what_was_taken_over_from_another_is_not_deleted_on_the_way_back() {
    let Some(scene) = Scene::new("rollback-moved").await else { return };
    let widgets = define(&scene, "Widget").await;
    let moved = map("moved", "1");
    let good = scene.push(&[within("shop", widget("one", 1)), within("beside", moved.clone())]);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({"path": "shop", "rollback": {"onFailure": true}})).await;
    waiting(&scene, "beside", json!({"path": "beside"})).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    scene.until_ready("shop", &good).await;
    scene.until_ready("beside", &good).await;
    let uid = async || scene.maps().get_opt("moved").await.unwrap().and_then(|it| it.metadata.uid);
    let before = uid().await;
    // So that it is older than whatever is written next, as the API server counts: in seconds.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;

    scene.work.git(&["rm", "-q", "--", "beside/moved.json"]);
    let bad = scene.push(&[
        within("shop", widget("one", 2)),
        within("shop", moved.clone()),
        within("shop", map("new", "1")),
        within("beside", map("b", "2")),
    ]);
    scene.nudge("shop", "bad").await;
    scene.nudge("beside", "bad").await;
    scene.until_ready("beside", &bad).await;
    until_size(&widgets, "one", 2).await;
    let is_shops = async || {
        let held = scene.maps().get("moved").await.unwrap();
        let id = held.metadata.annotations.unwrap_or_default().remove("moorline.dev/id")?;
        id.contains("/shop|").then_some(())
    };
    until("it is taken over", is_shops).await;
    report(&widgets, "one", failed()).await;
    until_rolled_back(&scene, &bad, &good).await;
    until_size(&widgets, "one", 1).await;
    report(&widgets, "one", ready("True", "")).await;
    // Objects that came with the commit go; those that were there before waits for a person, also after a restart.
    let left = [moved, map("b", "2")];
    scene.until_values(&left, "only what came with it goes").await;
    drop(daemon);
    let _daemon = scene.daemon();
    tokio::time::sleep(QUIET_TIME).await;
    scene.settle().await;
    assert_eq!(uid().await, before);
    let approval = until("it is asked", async || {
        let approval = scene.status("shop", "/approval").await;
        (approval["objects"] == 1).then(|| approval["hash"].as_str().unwrap().to_owned())
    })
    .await;
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": approval}}})).await;
    until("it goes when that is wanted", async || uid().await.is_none().then_some(())).await;
}
