//! Objects of a namespace that is not there, or is going.

use serde_json::json;

use super::ground::{Ground, config_map, moment};
use moorline_test_support::credentials::MOORLINE;

fn three() -> [serde_json::Value; 3] {
    ["a", "b", "c"].map(|name| config_map(name, json!({})))
}

#[tokio::test]
async fn objects_wait_for_their_namespace() {
    let Some(ground) = Ground::without_namespace("awaited").await else { return };
    let mark = ground.mark().await;
    let first = ground.push(&three());
    ground.sync(json!({})).await;
    let status = ground.ready(&first, "ObjectsHeld").await;
    assert_eq!((&status["objects"]["held"], &status["objects"]["failed"]), (&json!(3), &json!(0)));
    moment(2500).await;
    assert_eq!(ground.tally(&mark).await.get("patch configmaps"), Some(&3), "each is tried once");
    let mark = ground.mark().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ground.target}});
    ground.create("tests", "/api/v1/namespaces", namespace).await;
    ground.ready(&first, "Applied").await;
    assert_eq!(ground.tally(&mark).await.get("patch configmaps"), Some(&3), "and once more");
}

#[tokio::test]
async fn a_namespace_is_created_where_that_is_asked_for_and_again_when_it_was_deleted() {
    let Some(ground) = Ground::without_namespace("made").await else { return };
    let mark = ground.mark().await;
    let first = ground.push(&three());
    ground.sync(json!({"createNamespace": true})).await;
    ground.ready(&first, "Applied").await;
    let path = format!("/api/v1/namespaces/{}", ground.target);
    let namespace = ground.get(&path).await.expect("the namespace");
    assert!(!namespace["metadata"].to_string().contains("moorline.dev"), "nobody owns it");
    let requests = mark.requests().await.by_user(MOORLINE);
    let made = requests.clone().filter(|it| it.resource == "namespaces" && it.verb == "create");
    assert_eq!(made.as_slice().len(), 1);
    assert_eq!(requests.in_namespace(&ground.target).tally().get("patch configmaps"), Some(&3));

    let mark = ground.mark().await;
    ground.delete(&path).await;
    let uid = namespace["metadata"]["uid"].clone();
    let anew = |live: &serde_json::Value| live["metadata"]["uid"] != uid;
    ground.until("the namespace is there again", &path, anew).await;
    ground.until("and what is in it", &format!("{}/c", ground.maps()), |_| true).await;
    ground.ready(&first, "Applied").await;
    let tally = ground.tally(&mark).await;
    let patches = tally.get("patch configmaps").copied().unwrap_or_default();
    assert!(patches <= 9, "{tally:?}: while it goes, each object is tried at most twice");
}
