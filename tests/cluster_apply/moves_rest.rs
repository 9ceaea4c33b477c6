//! Objects that go to a Sync that does not take them yet: they stay where and who they are until it does.

use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{Scene, config_map};

/// Long enough for a commit to come between two requests.
const MEANWHILE: Duration = Duration::from_secs(4);

/// The uid of a ConfigMap, and whose it is.
async fn who(scene: &Scene, name: &str) -> (String, String) {
    let maps: Api<DynamicObject> = scene.dynamic("", "v1", "ConfigMap");
    let map = maps.get(name).await.unwrap();
    let identity = map.metadata.annotations.unwrap().remove("moorline.dev/id").unwrap();
    let owner = identity.split_once('|').unwrap().0.rsplit('/').next().unwrap().to_owned();
    (map.metadata.uid.unwrap(), owner)
}

async fn deletes(mark: &AuditMark) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).filter(|request| request.verb == "delete");
    requests.as_slice().iter().map(|request| request.uri.clone()).collect()
}

/// Waits until a Sync has seen a commit and holds something that another one claims.
async fn until_claimed(scene: &Scene, name: &str, commit: &str) {
    until(&format!("{name} holds what another claims at {commit}"), async || {
        let status = scene.status(name, "").await;
        let seen = status["revision"]["seen"].as_str().is_some_and(|seen| seen.ends_with(commit));
        (seen && status.to_string().contains("ClaimedBy")).then_some(())
    })
    .await;
}

fn file(path: &str, value: &str) -> (String, String) {
    let name = path.replace('/', "-");
    (format!("{path}.json"), config_map(&name, value))
}

#[tokio::test]
async fn an_object_that_moves_to_a_suspended_sync_waits_for_it() {
    let Some(scene) = Scene::new("moves-rest").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&[file("one/stays", "1"), file("two/stays", "1"), file("one/map", "1")]);
    let daemon = scene.daemon();
    for name in ["one", "two"] {
        scene.sync(name, json!({"path": name, "interval": "1h"})).await;
        scene.until_ready(name, &commit).await;
    }
    let (uid, owner) = who(&scene, "one-map").await;
    assert_eq!(owner, "one");
    scene.patch_sync("two", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("two", "Suspended").await;
    scene.assert_calm("while one is suspended").await;

    scene.work.git(&["mv", "one/map.json", "two/map.json"]);
    let commit = scene.push(&[]);
    scene.nudge("one", "moved").await;
    until_claimed(&scene, "one", &commit).await;
    scene.assert_calm("after the move").await;
    assert_eq!(who(&scene, "one-map").await, (uid.clone(), "one".to_owned()));

    // The next daemon has rendered neither when it begins.
    drop(daemon);
    let commit = scene.push(&[file("one/stays", "2")]);
    let _daemon = scene.daemon();
    until_claimed(&scene, "one", &commit).await;
    scene.assert_calm("after the restart").await;
    assert_eq!(who(&scene, "one-map").await, (uid.clone(), "one".to_owned()));
    assert_eq!(deletes(&mark).await, Vec::<String>::new());

    scene.patch_sync("two", json!({"spec": {"suspend": false}})).await;
    for name in ["two", "one"] {
        scene.until_ready(name, &commit).await;
    }
    assert_eq!(who(&scene, "one-map").await, (uid, "two".to_owned()));
    scene.assert_calm("after it goes on").await;
    assert_eq!(deletes(&mark).await, Vec::<String>::new());
    for name in ["one", "two"] {
        scene.delete_sync(name).await;
    }
}

#[tokio::test]
async fn an_object_does_not_move_to_what_another_sync_wanted_of_an_older_commit() {
    let Some(scene) = Scene::new("moves-broken").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let map = |folder: &str, value: &str| (format!("{folder}/map.json"), config_map("map", value));
    let commit =
        scene.push(&[file("one/stays", "1"), file("two/stays", "1"), map("one", "1"), map("two", "2")]);
    let _daemon = scene.daemon();
    scene.sync("one", json!({"path": "one", "interval": "1h"})).await;
    scene.until_ready("one", &commit).await;
    scene.sync("two", json!({"path": "two", "interval": "1h"})).await;
    scene.until_reason("two", "ObjectsHeld").await;
    let (uid, owner) = who(&scene, "map").await;
    assert_eq!(owner, "one");

    scene.push(&[("two/broken.yaml".into(), "kind: [".into())]);
    scene.nudge("two", "broken").await;
    until("two does not render", async || {
        let reason = scene.status("two", "/conditions/0/reason").await;
        (reason != "ObjectsHeld" && reason != "Progressing").then_some(())
    })
    .await;
    let commit = scene.remove(&["one/map.json"]);
    scene.nudge("one", "moved").await;
    until_claimed(&scene, "one", &commit).await;
    scene.assert_calm("while it does not render").await;
    assert_eq!(who(&scene, "map").await, (uid.clone(), "one".to_owned()));
    assert_eq!(scene.values().await["map"], "1");

    scene.work.git(&["rm", "-q", "two/broken.yaml"]);
    let commit = scene.push(&[map("two", "3")]);
    scene.nudge("two", "repaired").await;
    for name in ["two", "one"] {
        scene.until_ready(name, &commit).await;
    }
    assert_eq!(who(&scene, "map").await, (uid, "two".to_owned()));
    assert_eq!(scene.values().await["map"], "3");
    assert_eq!(deletes(&mark).await, Vec::<String>::new());
    for name in ["one", "two"] {
        scene.delete_sync(name).await;
    }
}

/// A Sync that hands an object over writes what the other wanted of it when that began; what came since is written after it.
#[tokio::test]
async fn what_is_given_in_an_older_commit_is_written_before_the_newer_one() {
    let Some(scene) = Scene::new("moves-slowly").await else { return };
    let map = |folder: &str, value: &str| (format!("{folder}/map.json"), config_map("map", value));
    let commit =
        scene.push(&[file("one/stays", "1"), file("two/stays", "1"), map("one", "1"), map("two", "2")]);
    let _daemon = scene.daemon();
    scene.sync("one", json!({"path": "one", "interval": "1h"})).await;
    scene.until_ready("one", &commit).await;
    scene.sync("two", json!({"path": "two", "interval": "1h"})).await;
    scene.until_reason("two", "ObjectsHeld").await;
    let (uid, _) = who(&scene, "map").await;
    // Only who gives it need not ask whose it is.
    let is_written = |one: &RecordedRequest, value: &str| {
        let is_forced =
            one.method == "PATCH" && one.query.contains("two") && one.query.contains("force=true");
        is_forced && one.text().contains(&format!("\"key\":\"{value}\""))
    };
    scene.proxy.first(1, move |one| is_written(one, "2"), Fate::Delay(MEANWHILE));
    scene.proxy.take_requests();
    scene.remove(&["one/map.json"]);
    for name in ["two", "one"] {
        scene.nudge(name, "moved").await;
    }
    let mut asked = Vec::new();
    let mut until_written = async |value: &str| {
        until(&format!("two is given {value}"), async || {
            asked.extend(scene.proxy.take_requests());
            asked.iter().find(|one| is_written(one, value)).map(|one| one.at)
        })
        .await
    };
    let older = until_written("2").await;
    // Without its label it is nobody's, so that the other one takes it by itself, too.
    let unlabel = json!({"metadata": {"labels": {"moorline.dev/sync": null}}});
    scene.maps().patch("map", &PatchParams::default(), &Patch::Merge(&unlabel)).await.unwrap();
    let commit = scene.push(&[map("two", "3")]);
    scene.nudge("two", "newer").await;
    let newer = until_written("3").await;
    assert!(newer >= older + MEANWHILE, "the older one arrived {:?} after it", older + MEANWHILE - newer);
    scene.until_ready("two", &commit).await;
    assert_eq!(who(&scene, "map").await, (uid, "two".to_owned()));
    assert_eq!(scene.values().await["map"], "3");
    for name in ["one", "two"] {
        scene.delete_sync(name).await;
    }
}
