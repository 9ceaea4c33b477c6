//! Objects that somebody has touched go from one Sync to another all the same: without their label, and with a port that has
//! another number.

mod support;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;

use support::daemon::until;
use support::scene::{Scene, config_map};

/// Under another number it keeps the name that Git gives to ours, and both cannot be in one Service: no apply goes through.
#[tokio::test]
async fn a_named_port_is_ours_again_whoever_gave_it_another_number() {
    let Some(scene) = Scene::new("ports").await else { return };
    let service = |port: u16| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "web", "port": port}]},
        })
        .to_string()
    };
    let services: Api<DynamicObject> = scene.dynamic("", "v1", "Service");
    let until_only = async |port: u16| {
        until(&format!("its only port is {port}"), async || {
            let live = services.get("web").await.unwrap();
            let ports = live.data["spec"]["ports"].as_array()?.clone();
            (ports.len() == 1 && ports[0]["port"] == port && ports[0]["name"] == "web").then_some(())
        })
        .await;
    };
    let commit = scene.push(&[
        ("one/web.json".to_owned(), service(80)),
        ("two/map.json".to_owned(), config_map("map", "x")),
    ]);
    let _daemon = scene.daemon();
    for name in ["one", "two"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &commit).await;
    }
    let uid = services.get("web").await.unwrap().metadata.uid;
    let edit = json!({"spec": {"ports": [{"name": "web", "port": 81, "protocol": "TCP"}]}});
    let by = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    services.patch("web", &by, &Patch::Merge(&edit)).await.unwrap();
    until_only(80).await;
    scene.until_ready("one", &commit).await;

    // A commit that changes the number, and one that gives it to another Sync under a third.
    let commit = scene.push(&[("one/web.json".to_owned(), service(82))]);
    scene.until_ready("one", &commit).await;
    until_only(82).await;
    scene.work.git(&["rm", "-q", "one/web.json"]);
    let commit = scene.push(&[
        ("one/map.json".to_owned(), config_map("one", "x")),
        ("two/web.json".to_owned(), service(83)),
    ]);
    for name in ["one", "two"] {
        scene.until_ready(name, &commit).await;
    }
    until_only(83).await;
    assert_eq!(services.get("web").await.unwrap().metadata.uid, uid);
    scene.assert_calm("after that").await;
    for name in ["one", "two"] {
        scene.delete_sync(name).await;
    }
}

/// Without its label the Sync that lets go of it cannot see it, and would never release it.
#[tokio::test]
async fn an_object_whose_label_somebody_took_off_moves_all_the_same() {
    let Some(scene) = Scene::new("unlabelled").await else { return };
    let file = |path: &str, name: &str, value: &str| (path.to_owned(), config_map(name, value));
    let commit = scene.push(&[
        file("from/a.json", "a", "x"),
        file("from/b.json", "b", "x"),
        file("to/c.json", "c", "x"),
    ]);
    let _daemon = scene.daemon();
    for name in ["from", "to"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &commit).await;
    }
    let uid = scene.maps().get("b").await.unwrap().metadata.uid;
    // Nobody puts it on again meanwhile.
    scene.patch_sync("from", json!({"spec": {"suspend": true}})).await;
    scene.settle().await;
    let bare = json!({"metadata": {"labels": {"moorline.dev/sync": null}}});
    scene.maps().patch("b", &PatchParams::default(), &Patch::Merge(&bare)).await.unwrap();
    scene.work.git(&["rm", "-q", "from/b.json"]);
    let commit = scene.push(&[file("to/b.json", "b", "y")]);
    scene.patch_sync("from", json!({"spec": {"suspend": false}})).await;
    for name in ["from", "to"] {
        scene.nudge(name, "moved").await;
        scene.until_ready(name, &commit).await;
    }
    let moved = scene.maps().get("b").await.unwrap();
    assert_eq!(moved.metadata.uid, uid);
    assert_eq!(moved.data.unwrap()["key"], "y");
    for name in ["from", "to"] {
        scene.delete_sync(name).await;
    }
}
