//! An upgrade and a downgrade: what another version left in the cluster is neither written again nor lost.
//!
//! In: `left_by/VERSION/`, the objects of a Sync as the daemon of that version left them, with their uids, field managers and
//! proofs. They are put into etcd as they are. Out: the daemon of today serves the Sync, and writes no object that need not be.
//!
//! `MOORLINE_RECORD_UPGRADE=1 cargo test --test cluster_survive upgrade::` records what this version leaves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::downgrade::{assert_newer_definition, bring_newer_definition};
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map, text};

/// Kinds that are recorded: path of the API, resource, and prefix of the keys in etcd.
const KINDS: [(&str, &str, &str); 4] = [
    ("/api/v1", "configmaps", "/registry/configmaps"),
    ("/api/v1", "secrets", "/registry/secrets"),
    ("/apis/apps/v1", "deployments", "/registry/deployments"),
    ("/apis/moorline.dev/v1alpha1", "syncs", "/registry/moorline.dev/syncs"),
];
/// Namespace of the recorded objects. Their proofs hold in it alone.
const NAMESPACE: &str = "left-by-an-earlier-version";
const SYNC: &str = "shop";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster_survive/left_by")
}

/// Versions that are recorded.
fn versions() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("something is recorded");
    let mut versions: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    versions.sort();
    versions
}

/// The repository at the time of the recording, and after it.
fn files() -> Vec<(String, String)> {
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}},
    });
    vec![
        text("web.json", &deployment.to_string()),
        text("settings.json", &config_map("settings", "one")),
        text("going.json", &config_map("going", "one")),
    ]
}

/// Scene in the namespace of the recorded objects.
async fn scene() -> Option<Scene> {
    let mut scene = Scene::new("upgrade").await?;
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    send_request(&scene.admin, "POST", "/api/v1/namespaces", body).await.expect("a namespace");
    scene.namespace = NAMESPACE.into();
    Some(scene)
}

/// Objects of a kind in the namespace by name. Those that every namespace has are left out.
async fn objects(scene: &Scene, api: &str, resource: &str) -> BTreeMap<String, Value> {
    let path = format!("{api}/namespaces/{NAMESPACE}/{resource}");
    let list = send_request(&scene.admin, "GET", &path, Value::Null).await.expect("a list");
    let (kind, version) =
        (list["kind"].as_str().unwrap_or_default().trim_end_matches("List"), &list["apiVersion"]);
    let items = list["items"].as_array().expect("items").iter().map(|item| {
        let mut item = item.clone();
        item["kind"] = kind.into();
        item["apiVersion"] = version.clone();
        (item["metadata"]["name"].as_str().expect("a name").to_owned(), item)
    });
    items.filter(|(name, _)| name != "kube-root-ca.crt").collect()
}

/// Uid and version of every object that the Sync manages.
async fn identities(scene: &Scene) -> BTreeMap<String, (Value, Value)> {
    let mut identities = BTreeMap::new();
    for (api, resource) in
        [("/api/v1", "configmaps"), ("/apis/apps/v1", "deployments"), ("/api/v1", "secrets")]
    {
        for (name, object) in objects(scene, api, resource).await {
            let metadata = &object["metadata"];
            identities.insert(
                format!("{resource}/{name}"),
                (metadata["uid"].clone(), metadata["resourceVersion"].clone()),
            );
        }
    }
    identities
}

#[tokio::test]
async fn neither_an_upgrade_nor_a_downgrade_writes_an_object_that_need_not_be_written() {
    let Some(scene) = scene().await else { return };
    if std::env::var_os("MOORLINE_RECORD_UPGRADE").is_some_and(|value| value == "1") {
        return record(&scene).await;
    }
    for version in versions() {
        serve(&scene, &folder().join(&version)).await;
    }
    // The same objects below the definition of a newer version, with a status that has more.
    bring_newer_definition(&scene).await;
    for version in versions() {
        serve(&scene, &folder().join(&version)).await;
    }
    assert_newer_definition(&scene).await;
}

/// Serves what one version left.
async fn serve(scene: &Scene, left: &Path) {
    for (_, resource, prefix) in KINDS {
        let entries = fs::read_dir(left.join(resource)).unwrap_or_else(|error| panic!("{resource}: {error}"));
        for entry in entries {
            let text = fs::read_to_string(entry.expect("an entry").path()).expect("an object");
            let mut object: Value = serde_json::from_str(&text).expect("JSON");
            if resource == "syncs" {
                object["spec"]["source"]["git"]["url"] = scene.git.url("repository.git").into();
                // Below a definition that does not have the field, the API server drops it.
                object["status"]["future"] = "on".into();
            }
            let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
            scene.plane.put_object(&format!("{prefix}/{NAMESPACE}/{name}"), &object);
        }
    }
    until("the API server has seen all objects", async || (identities(scene).await.len() == 4).then_some(()))
        .await;
    store_as_the_server_does(scene).await;
    let before = identities(scene).await;
    let commit = scene.push(&files());
    let daemon = scene.daemon();
    scene.until_ready(SYNC, &commit).await;
    scene.settle().await;
    // Each object is verified once by an apply that changes nothing, so its version stays.
    let found = identities(scene).await;
    assert_eq!(found, before, "{}\n{}", left.display(), daemon.log());

    // Objects with a proof of an earlier version are pruned without a question.
    let commit = scene.remove(&["going.json"]);
    scene.nudge(SYNC, "prune").await;
    scene.until_ready(SYNC, &commit).await;
    let mut rest = before;
    rest.remove("configmaps/going").expect("it was there");
    assert_eq!(identities(scene).await, rest);
    scene.delete_sync(SYNC).await;
    drop(daemon);
}

/// Lets the API server store each object in its own encoding. It takes a write that changes nothing
/// for a change while the stored bytes are others.
async fn store_as_the_server_does(scene: &Scene) {
    for (api, resource, _) in &KINDS[..3] {
        for (name, object) in objects(scene, api, resource).await {
            let path = format!("{api}/namespaces/{NAMESPACE}/{resource}/{name}");
            send_request(&scene.admin, "PUT", &path, object).await.expect("the same object");
        }
    }
}

/// Writes what the daemon of this version leaves.
async fn record(scene: &Scene) {
    let commit = scene.push(&files());
    let daemon = scene.daemon();
    scene.sync(SYNC, json!({})).await;
    scene.until_ready(SYNC, &commit).await;
    scene.settle().await;
    drop(daemon);
    let left = folder().join(env!("CARGO_PKG_VERSION"));
    _ = fs::remove_dir_all(&left);
    for (api, resource, _) in KINDS {
        fs::create_dir_all(left.join(resource)).expect("a folder");
        for (name, object) in objects(scene, api, resource).await {
            let text = serde_json::to_string_pretty(&object).expect("JSON") + "\n";
            fs::write(left.join(resource).join(format!("{name}.json")), text).expect("a file");
        }
    }
}
