//! A commit goes from one Sync to the next after a time of health: `dependsOn` with `healthyFor`.

use std::time::{Duration, Instant};

use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::status::{condition, define, object, ready, report, until_healthy, waiting};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

/// The time for which a commit has to be healthy.
const SOAK: Duration = Duration::from_secs(8);

fn within(folder: &str, (file, text): (String, String)) -> (String, String) {
    (format!("{folder}/{file}"), text)
}

fn map(folder: &str, name: &str, value: &str) -> (String, String) {
    (format!("{folder}/{name}.json"), config_map(name, value))
}

async fn message(scene: &Scene) -> String {
    condition(scene, "prod", "Ready").await["message"].as_str().unwrap_or_default().to_owned()
}

async fn until_message(scene: &Scene, part: &str) {
    until(&format!("the message has {part:?}"), async || message(scene).await.contains(part).then_some(()))
        .await;
}

async fn value(scene: &Scene) -> Option<String> {
    scene.values().await.remove("p")
}

/// Waits until prod has this value; returns the time since a moment.
async fn until_value(scene: &Scene, expect: &str, since: Instant) -> Duration {
    until(&format!("prod has {expect}"), async || (value(scene).await? == expect).then(|| since.elapsed()))
        .await
}

fn prod(more: Value) -> Value {
    let mut spec = json!({"path": "prod", "dependsOn": [{"name": "staging", "healthyFor": "8s"}]});
    more.as_object().unwrap().iter().for_each(|(field, value)| spec[field] = value.clone());
    spec
}

#[tokio::test]
async fn a_commit_is_promoted_once_it_was_healthy_for_the_whole_time() {
    let Some(scene) = Scene::new("promotion").await else { return };
    let phases = define(&scene, "Phase").await;
    let first = scene.push(&[within("staging", object("Phase", "one")), map("prod", "p", "1")]);
    let daemon = scene.daemon();
    waiting(&scene, "prod", prod(json!({}))).await;
    waiting(&scene, "staging", json!({"path": "staging"})).await;
    until_healthy(&scene, "staging", "Unknown", "Progressing").await;
    scene.until_reason("prod", "DependencyNotReady").await;

    // An interruption begins the time again.
    report(&phases, "one", ready("True", "")).await;
    until_message(&scene, "it waits until 20").await;
    tokio::time::sleep(SOAK / 2).await;
    report(&phases, "one", ready("False", "its disk is full")).await;
    until_message(&scene, "whose newest commit is not applied yet").await;
    let healthy = Instant::now();
    report(&phases, "one", ready("True", "")).await;
    let took = until_value(&scene, "1", healthy).await;
    assert!(took >= SOAK, "{took:?}");
    scene.until_ready("prod", &first).await;
    scene.assert_calm("after a promotion").await;

    // A restart in the middle loses no time, and prod is repaired meanwhile.
    let pushed = Instant::now();
    let second = scene.push(&[map("staging", "s", "2"), map("prod", "p", "2")]);
    scene.nudge("staging", "second").await;
    scene.nudge("prod", "second").await;
    scene.until_ready("staging", &second).await;
    until_message(&scene, "it waits until 20").await;
    tokio::time::sleep(SOAK * 3 / 4).await;
    drop(daemon);
    let daemon = scene.daemon();
    scene.edit("p", "by hand").await;
    until_value(&scene, "1", pushed).await;
    let took = until_value(&scene, "2", pushed).await;
    // Times of a status have whole seconds.
    assert!(took >= SOAK && took < under_load(SOAK + Duration::from_secs(6)), "{took:?}");
    scene.until_ready("prod", &second).await;

    // A commit that changes nothing of staging is promoted at once.
    let pushed = Instant::now();
    scene.push(&[map("prod", "p", "3")]);
    scene.nudge("staging", "third").await;
    scene.nudge("prod", "third").await;
    let took = until_value(&scene, "3", pushed).await;
    assert!(took < under_load(SOAK), "{took:?}");
    drop(daemon);
}

#[tokio::test]
async fn a_refused_commit_of_another_branch_promotes_nothing() {
    let Some(scene) = Scene::new("promotion-branches").await else { return };
    let first = scene.push(&[map("staging", "s", "1"), map("prod", "p", "1")]);
    scene.work.git(&["push", "-q", "origin", "HEAD:refs/heads/prod"]);
    let _daemon = scene.daemon();
    let url = scene.git.url("repository.git");
    let source = json!({"git": {"url": url, "ref": {"branch": "prod"}}});
    waiting(&scene, "staging", json!({"path": "staging"})).await;
    waiting(&scene, "prod", prod(json!({"source": source}))).await;
    scene.until_ready("prod", &first).await;

    // Staging keeps the first commit, which has been healthy for long enough.
    scene.push(&[("staging/s.json".to_owned(), "{".to_owned()), map("prod", "p", "2")]);
    scene.nudge("staging", "broken").await;
    until("the commit is refused", async || {
        (condition(&scene, "staging", "Ready").await["status"] == "False").then_some(())
    })
    .await;
    scene.work.git(&["push", "-q", "origin", "HEAD:refs/heads/prod"]);
    scene.nudge("prod", "second").await;
    until_message(&scene, "whose newest commit is not applied yet").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("1"));
    let mended = scene.push(&[map("staging", "s", "3")]);
    scene.nudge("staging", "mended").await;
    scene.until_ready("staging", &mended).await;
    until_value(&scene, "2", Instant::now()).await;
}
