//! Guards that keep a Sync from deleting wrong objects, on a real API server: the proofs that each deletion needs, and
//! what happens where one of them is missing at the last moment.

mod commits;
mod containers;
mod leaving;
mod unheard;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::audit::{AuditMark, Request};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{Scene, many};

/// Long enough for a person to come between two requests.
const MEANWHILE: Duration = Duration::from_secs(2);

/// Returns the daemon's deletions since the mark.
async fn deletions(mark: &AuditMark) -> Vec<Request> {
    mark.requests().await.by_user(MOORLINE).filter(|it| it.verb == "delete").as_slice().to_vec()
}

/// The names of all objects that the daemon asked to be deleted since the mark.
async fn deleted(mark: &AuditMark) -> Vec<String> {
    deletions(mark).await.into_iter().map(|it| it.name).collect()
}

/// Waits until the status names an object and says this of it.
async fn until_told(scene: &Scene, object: &str, reason: &str) -> Value {
    until(&format!("{reason} is said of {object}"), async || {
        let problems = scene.status("shop", "/problems").await;
        let is_meant = |it: &&Value| {
            it["reason"] == reason && it["object"].as_str().is_some_and(|it| it.ends_with(object))
        };
        problems.as_array()?.iter().find(is_meant).cloned()
    })
    .await
}

/// Waits until a request was made.
async fn until_asked(scene: &Scene, what: &str, is: impl Fn(&RecordedRequest) -> bool) -> RecordedRequest {
    until(what, async || scene.proxy.take_requests().into_iter().find(&is)).await
}

#[tokio::test]
async fn an_object_that_is_made_anew_while_its_deletion_is_on_its_way_stays() {
    let Some(scene) = Scene::new("anew").await else { return };
    let commit = scene.push(&many(6, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let is_deletion = |asked: &RecordedRequest| asked.method == "DELETE" && asked.path.ends_with("/a-5");
    let (mark, old) = (AuditMark::set(&scene.plane).await, scene.maps().get("a-5").await.unwrap());
    scene.proxy.take_requests();
    scene.proxy.first(1, is_deletion, Fate::Delay(MEANWHILE));
    let commit = scene.remove(&["a-5.json"]);
    scene.nudge("shop", "less").await;
    let deletion = until_asked(&scene, "its deletion is on its way", is_deletion).await;
    let options: Value = serde_json::from_slice(&deletion.body).unwrap();
    let meant = json!({"uid": old.metadata.uid, "resourceVersion": old.metadata.resource_version});
    assert_eq!(options["preconditions"], meant, "either of them alone would do here");

    // A person who creates it again copies all of the old one, with its label and its annotations.
    let mut copy: ConfigMap = ConfigMap { data: old.data, ..ConfigMap::default() };
    copy.metadata.name = Some("a-5".to_owned());
    copy.metadata.labels = old.metadata.labels;
    copy.metadata.annotations = old.metadata.annotations;
    scene.maps().delete("a-5", &DeleteParams::default()).await.unwrap();
    let new = scene.maps().create(&PostParams::default(), &copy).await.unwrap().metadata.uid;
    assert_ne!(new, old.metadata.uid);

    until("the deletion is answered", async || (deletions(&mark).await.len() == 1).then_some(())).await;
    until_told(&scene, "/a-5", "NotAppliedByUs").await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("once it is somebody else's").await;
    assert_eq!(scene.maps().get("a-5").await.unwrap().metadata.uid, new, "the new one stays who it is");
    let codes: Vec<u16> = deletions(&mark).await.iter().map(|it| it.code).collect();
    assert_eq!(codes, [409], "it is asked for once, with the uid of the old one");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn an_object_that_is_to_be_kept_at_the_last_moment_is_kept() {
    let Some(scene) = Scene::new("last-moment").await else { return };
    let commit = scene.push(&many(6, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let is_look = |asked: &RecordedRequest| asked.method == "GET" && asked.path.ends_with("/a-4");
    let (mark, before) = (AuditMark::set(&scene.plane).await, scene.versions().await);
    scene.proxy.take_requests();
    scene.proxy.first(1, is_look, Fate::Delay(MEANWHILE));
    let commit = scene.remove(&["a-4.json"]);
    scene.nudge("shop", "less").await;
    until_asked(&scene, "it is looked at before it is deleted", is_look).await;
    let annotate = async |value: Value| {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"moorline.dev/prune": value}}}));
        scene.maps().patch("a-4", &PatchParams::default(), &patch).await.unwrap();
    };
    annotate(json!("disabled")).await;

    until_told(&scene, "/a-4", "PruneDisabled").await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("while it is kept").await;
    assert_eq!(deleted(&mark).await, Vec::<String>::new());
    assert_eq!(scene.versions().await["a-4"].0, before["a-4"].0);

    annotate(Value::Null).await;
    let mut left = many(6, "one");
    left.remove(4);
    scene.until_values(&left, "it goes").await;
    assert_eq!(deleted(&mark).await, ["a-4"]);
    scene.delete_sync("shop").await;
}
