//! The name of another Sync on an object, and whether it stops repairs: by a mark, a proof of before, or a field manager.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::proof::annotation;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::{send_request, tenant};
use moorline_test_support::scene::{Scene, config_map, many};

/// Writes the mark of another Sync on an object, with another hash and value: then it is not as this Sync applied it.
async fn name_another(scene: &Scene, name: &str, sync: &str, proof: Option<&str>) {
    let editor = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    let annotations = json!({
        "moorline.dev/id": format!("{sync}|/ConfigMap|{}/{name}", scene.namespace),
        "moorline.dev/spec-hash": format!("v1:{}", "a5".repeat(32)),
        "moorline.dev/proof": proof,
    });
    let patch = json!({"metadata": {"annotations": annotations}, "data": {"key": "hacked"}});
    scene.maps().patch(name, &editor, &Patch::Merge(&patch)).await.unwrap();
}

async fn until_repaired(scene: &Scene, name: &str, value: &str) {
    until(&format!("{name} is repaired"), async || {
        let map = scene.maps().get(name).await.unwrap();
        let identity = annotation(&map, "moorline.dev/id").unwrap_or_default();
        let is_ours = identity.starts_with(&format!("{}/shop|", scene.namespace));
        let data = map.data.unwrap_or_default();
        (is_ours && data.get("key").is_some_and(|it| it == value)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_name_of_a_sync_that_wants_the_object_or_renders_nothing_stops_no_repair() {
    let Some(scene) = Scene::new("proof-names").await else { return };
    let files = many(2, "one").into_iter().map(|(path, text)| (format!("main/{path}"), text));
    let files: Vec<_> = files.chain([("wants/a.json".to_owned(), config_map("a-0", "two"))]).collect();
    let (_daemon, _) = scene.applied(&files, json!({"path": "main"})).await;
    scene.sync("wants", json!({"path": "wants"})).await;
    scene.sync("never", json!({"path": "nowhere"})).await;
    let held = (format!("ConfigMap {}/a-0", scene.namespace), "OwnedBy".to_owned());
    until("the other Sync may not have it", async || {
        let problems = scene.status("wants", "/problems").await;
        let all = problems.as_array().cloned().unwrap_or_default();
        all.iter().any(|one| one["object"] == *held.0 && one["reason"] == *held.1).then_some(())
    })
    .await;
    until("the last one has nothing", async || {
        (scene.status("never", "/conditions/0/status").await == "False").then_some(())
    })
    .await;
    let namespace = scene.namespace.clone();
    let theirs = annotation(&scene.maps().get("a-0").await.unwrap(), "moorline.dev/proof");
    for (name, sync, proof) in [
        ("a-0", "wants", None),
        ("a-0", "wants", theirs.as_deref()),
        ("a-1", "never", None),
        ("a-1", "never", theirs.as_deref()),
    ] {
        name_another(&scene, name, &format!("{namespace}/{sync}"), proof).await;
        until_repaired(&scene, name, "one").await;
    }
}

#[tokio::test]
async fn a_proof_of_before_a_move_stops_no_repair() {
    let Some(scene) = Scene::new("proof-old").await else { return };
    let files = [
        ("main/b.json".to_owned(), config_map("b", "one")),
        ("other/a.json".to_owned(), config_map("a", "one")),
    ];
    let (_daemon, _) = scene.applied(&files, json!({"path": "main"})).await;
    scene.sync("other", json!({"path": "other", "deletionPolicy": "Orphan"})).await;
    let old = until("the other Sync has applied it", async || {
        annotation(&scene.maps().get_opt("a").await.unwrap()?, "moorline.dev/proof")
    })
    .await;
    // It moves, and the other one goes on without it.
    scene.work.git(&["mv", "other/a.json", "main/a.json"]);
    scene.push(&[("other/c.json".to_owned(), config_map("c", "one"))]);
    until_repaired(&scene, "a", "one").await;
    until("the other one has let go", async || scene.maps().get_opt("c").await.unwrap().map(drop)).await;
    scene.settle().await;
    name_another(&scene, "a", &format!("{}/other", scene.namespace), Some(&old)).await;
    until_repaired(&scene, "a", "one").await;
}

/// A user who may own one Sync, and patch an object of another, applies it as his own.
#[tokio::test]
async fn the_field_manager_of_a_sync_that_never_had_the_object_stops_no_repair() {
    let Some(scene) = Scene::new("proof-managers").await else { return };
    let elsewhere = scene.plane.namespace("proof-tenant").await;
    tenant(&scene.admin, &elsewhere, &["get", "list", "watch", "create", "patch", "delete"]).await;
    let files = [
        ("main/a.json".to_owned(), config_map("a", "one")),
        ("other/b.json".to_owned(), config_map("b", "one")),
    ];
    let (_daemon, commit) = scene.applied(&files, json!({"path": "main"})).await;
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "his"},
        "spec": {"source": {"git": {"url": scene.git.url("repository.git")}}, "path": "other", "interval": "5s",
            "serviceAccountName": "tenant"},
    });
    let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{elsewhere}/syncs");
    send_request(&scene.admin, "POST", &path, sync).await.unwrap();
    until("his Sync is ready", async || {
        let sync = send_request(&scene.admin, "GET", &format!("{path}/his"), Value::Null).await.unwrap();
        sync["status"]["revision"]["applied"].as_str()?.ends_with(&commit).then_some(())
    })
    .await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "hacked"},
        "metadata": {
            "name": "a", "labels": {"moorline.dev/sync": format!("{elsewhere}.his")},
            "annotations": {"moorline.dev/id": format!("{elsewhere}/his|/ConfigMap|{}/a", scene.namespace)},
        },
    });
    let as_his = PatchParams::apply(&format!("moorline/{elsewhere}/his")).force();
    scene.maps().patch("a", &as_his, &Patch::Apply(&map)).await.unwrap();
    until_repaired(&scene, "a", "one").await;
}
