//! Effort of a version `v1` of Syncs, rehearsed with the definition of today: both versions are served, `v1` is stored, and
//! every Sync is stored once more. A daemon that knows `v1alpha1` serves on, and writes to none of its objects meanwhile.

use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, many};
use serde_json::{Value, json};

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";

/// The definition that the program prints, with a second version of the same schema, which is the one that is stored.
fn promoted() -> Value {
    let mut definition = moorline::api::definition().expect("the definition is JSON");
    // A daemon leaves the definition of a newer one alone.
    definition["metadata"]["annotations"]["moorline.dev/version"] = "99.0.0".into();
    let mut stable = definition["spec"]["versions"][0].clone();
    stable["name"] = "v1".into();
    definition["spec"]["versions"][0]["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().expect("versions").push(stable);
    definition
}

/// Stores every Sync of the scene as it is, in the version that is stored now.
async fn store_anew(scene: &Scene) -> Vec<(Value, Value)> {
    let all = format!("/apis/moorline.dev/v1/namespaces/{}/syncs", scene.namespace);
    let list =
        until("v1 is served", async || send_request(&scene.admin, "GET", &all, Value::Null).await.ok()).await;
    let mut versions = Vec::new();
    for sync in list["items"].as_array().expect("Syncs") {
        let path = format!("{all}/{}", sync["metadata"]["name"].as_str().expect("a name"));
        let stored = send_request(&scene.admin, "PUT", &path, sync.clone())
            .await
            .expect("a write that changes nothing");
        let version = |sync: &Value| sync["metadata"]["resourceVersion"].clone();
        versions.push((version(sync), version(&stored)));
    }
    versions
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_of_today_serves_on_while_syncs_become_v1() {
    let Some(scene) = Scene::new("promotion").await else { return };
    let (mut daemon, _) = scene.applied(&many(4, "one"), json!({"interval": "1h"})).await;
    scene.settle().await;
    let before = scene.versions().await;
    scene.proxy.take_requests();

    let live = send_request(&scene.admin, "GET", DEFINITION, Value::Null).await.expect("the definition");
    let mut next = promoted();
    next["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    send_request(&scene.admin, "PUT", DEFINITION, next).await.expect("both versions are served");
    let stored = store_anew(&scene).await;
    assert!(stored.len() == 1 && stored.iter().all(|(old, new)| old != new), "it is stored anew: {stored:?}");
    let mut live = send_request(&scene.admin, "GET", DEFINITION, Value::Null).await.expect("the definition");
    assert_eq!(live["status"]["storedVersions"], json!(["v1alpha1", "v1"]));
    live["status"]["storedVersions"] = json!(["v1"]);
    send_request(&scene.admin, "PUT", &format!("{DEFINITION}/status"), live)
        .await
        .expect("nothing is stored as v1alpha1");

    tokio::time::sleep(QUIET_TIME).await;
    let written = scene.proxy.take_requests().into_iter().filter(|one| one.method != "GET");
    let written: Vec<String> = written.map(|one| format!("{} {}", one.method, one.path)).collect();
    assert!(written.is_empty(), "nothing had to be written: {written:?}");
    assert_eq!(scene.versions().await, before);

    // It follows Git as before, and so does one that begins now.
    let second = scene.push(&many(4, "two"));
    scene.nudge("shop", "second").await;
    scene.until_ready("shop", &second).await;
    daemon.terminate();
    let _later = scene.daemon();
    let third = scene.push(&many(4, "three"));
    scene.nudge("shop", "third").await;
    scene.until_ready("shop", &third).await;
    let live = send_request(&scene.admin, "GET", DEFINITION, Value::Null).await.expect("the definition");
    assert_eq!(live["spec"]["versions"].as_array().map(Vec::len), Some(2), "it stays as it is");
    scene.delete_sync("shop").await;
}
