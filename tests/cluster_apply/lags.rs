//! Lags of a server are no failures, and a person who asks again gets another try.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::under_load::under_load;

fn file(path: &str, value: &str) -> (String, String) {
    let name = path.rsplit('/').next().unwrap_or(path);
    (format!("{path}.json"), config_map(name, value))
}

/// All reasons that a Sync gives for its readiness until it is ready.
async fn reasons(scene: &Scene, name: &str) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    until(&format!("{name} is ready"), async || {
        let ready = scene.status(name, "/conditions/0").await;
        told.extend(ready["reason"].as_str().map(str::to_owned));
        (ready["status"] == "True").then_some(())
    })
    .await;
    told
}

#[tokio::test]
async fn a_person_who_asks_has_every_refused_object_tried_again() {
    let Some(scene) = Scene::new("asks-again").await else { return };
    let (_daemon, _) = scene.applied(&[file("a", "one"), file("b", "one")], json!({})).await;
    let is_write = |name: &'static str| move |path: &str| path.ends_with(&format!("/configmaps/{name}"));
    let (on_a, writes_a) = (is_write("a"), is_write("a"));
    // The server says that only another manifest can help, so that nobody tries again for ten minutes.
    scene.proxy.rule(move |asked| match asked.writes() && on_a(&asked.path) {
        true => Fate::Answer(422, None),
        false => Fate::Pass,
    });
    let commit = scene.push(&[file("a", "two"), file("b", "two")]);
    scene.nudge("shop", "denied").await;
    scene.until_reason("shop", "ApplyFailed").await;
    scene.settle().await;
    scene.proxy.heal();
    scene.proxy.take_requests();
    let begun = Instant::now();
    scene.nudge("shop", "allowed").await;
    scene.until_ready("shop", &commit).await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(10)), "{:?}", begun.elapsed());
    let asked = scene.proxy.take_requests();
    let tries = asked.iter().filter(|one| one.writes() && writes_a(&one.path)).count();
    assert_eq!(tries, 1, "the refused object, once");
    assert_eq!(asked.iter().filter(|one| one.writes_object()).count(), 1, "and no other");
    assert_eq!(scene.status("shop", "/lastHandledRequest").await, "allowed");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_path_that_was_just_pushed_is_looked_for_before_it_is_missed() {
    let Some(scene) = Scene::new("just-pushed").await else { return };
    let commit = scene.push(&[file("one/a", "one")]);
    let _daemon = scene.daemon();
    scene.sync("one", json!({"path": "one", "interval": "60s"})).await;
    scene.until_ready("one", &commit).await;
    scene.push(&[file("two/b", "one")]);
    scene.sync("two", json!({"path": "two", "interval": "60s"})).await;
    let told = reasons(&scene, "two").await;
    assert!(!told.contains("PathNotFound"), "{told:?}");
    // A path that is missing is reported all the same.
    scene.sync("three", json!({"path": "three", "interval": "60s"})).await;
    scene.until_reason("three", "PathNotFound").await;
    for name in ["one", "two", "three"] {
        scene.delete_sync(name).await;
    }
}

#[tokio::test]
async fn a_server_that_is_busy_for_a_moment_is_no_server_that_is_away() {
    let Some(scene) = Scene::new("busy").await else { return };
    let commit = scene.push(&[file("a", "one")]);
    let _daemon = scene.daemon();
    let until_then = Instant::now() + Duration::from_secs(4);
    scene.proxy.rule(move |asked| {
        let reads = asked.method == "GET" && asked.path.contains("/configmaps");
        if reads && Instant::now() < until_then { Fate::Answer(429, Some(1)) } else { Fate::Pass }
    });
    scene.sync("shop", json!({})).await;
    let told = reasons(&scene, "shop").await;
    assert!(!told.contains("ClusterUnreachable"), "{told:?}");
    scene.until_ready("shop", &commit).await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_server_that_is_busy_for_longer_than_half_a_minute_is_one_that_does_not_serve() {
    let Some(scene) = Scene::new("busy-long").await else { return };
    let commit = scene.push(&[file("a", "one")]);
    let _daemon = scene.daemon();
    scene.proxy.rule(|asked| {
        let reads = asked.method == "GET" && asked.path.contains("/configmaps");
        if reads { Fate::Answer(429, Some(1)) } else { Fate::Pass }
    });
    scene.sync("shop", json!({})).await;
    scene.until_reason("shop", "Progressing").await;
    let begun = Instant::now();
    until("it is told as unreachable", async || {
        let reason = scene.status("shop", "/conditions/0/reason").await;
        if begun.elapsed() < Duration::from_secs(25) {
            assert_eq!(reason, "Progressing", "after {:?}", begun.elapsed());
        }
        (reason == "ClusterUnreachable").then_some(())
    })
    .await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(45)), "{:?}", begun.elapsed());
    let message = scene.status("shop", "/conditions/0/message").await;
    assert!(message.as_str().is_some_and(|it| it.contains("planted by the test")), "{message}");
    scene.proxy.heal();
    scene.until_ready("shop", &commit).await;
    scene.delete_sync("shop").await;
}
