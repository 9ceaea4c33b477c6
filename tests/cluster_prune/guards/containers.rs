//! Kinds that take others with them when they are deleted: definitions and volumes.

use serde_json::{Value, json};

use super::{deleted, until_told};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The definition of a kind of this scene's own.
fn definition(scene: &Scene, scope: &str) -> Value {
    let kind = json!({"plural": "boats", "singular": "boat", "kind": "Boat"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let group = group(scene);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {"group": group, "scope": scope, "names": kind,
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

fn group(scene: &Scene) -> String {
    format!("{}.example.com", scene.namespace)
}

fn boat(scene: &Scene, name: &str) -> Value {
    json!({"apiVersion": format!("{}/v1", group(scene)), "kind": "Boat", "metadata": {"name": name}})
}

fn file(name: &str, body: &Value) -> (String, String) {
    (format!("{name}.json"), body.to_string())
}

#[tokio::test]
async fn a_definition_of_whose_kind_others_have_objects_is_not_pruned() {
    let Some(scene) = Scene::new("definition").await else { return };
    let commit = scene.push(&[
        file("definition", &definition(&scene, "Namespaced")),
        file("mine", &boat(&scene, "mine")),
        ("stays.json".to_owned(), config_map("stays", "x")),
    ]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let boats = format!("/apis/{}/v1/namespaces/{}/boats", group(&scene), scene.namespace);
    send_request(&scene.admin, "POST", &boats, boat(&scene, "foreign")).await.unwrap();
    let mark = AuditMark::set(&scene.plane).await;

    // The definition waits for a person, who approves, and does not know of the other object.
    scene.remove(&["definition.json", "mine.json"]);
    scene.nudge("shop", "less").await;
    let approval = until("an approval is asked for", async || {
        scene.status("shop", "/approval/hash").await.as_str().map(str::to_owned)
    })
    .await;
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": approval}}})).await;
    let name = format!("boats.{}", group(&scene));
    let told = until_told(&scene, &name, "NotEmpty").await;
    let message = told["message"].as_str().unwrap();
    assert!(message.contains(&format!("{}/foreign", scene.namespace)), "{message}");
    scene.assert_calm("while others have objects of the kind").await;
    let uri = format!("{DEFINITIONS}/{name}");
    let live = send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap();
    assert!(live["metadata"].get("deletionTimestamp").is_none(), "{live}");
    send_request(&scene.admin, "GET", &format!("{boats}/foreign"), Value::Null).await.expect("it stays");
    assert_eq!(deleted(&mark).await, ["mine"], "what is this Sync's alone is gone");

    send_request(&scene.admin, "DELETE", &format!("{boats}/foreign"), Value::Null).await.unwrap();
    scene.push(&[("stays.json".to_owned(), config_map("stays", "y"))]);
    scene.nudge("shop", "empty").await;
    until("the definition is gone", async || {
        send_request(&scene.admin, "GET", &uri, Value::Null).await.err()
    })
    .await;
    assert_eq!(deleted(&mark).await, ["mine".to_owned(), name]);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_definition_and_a_volume_are_never_recreated_whoever_asks() {
    let Some(scene) = Scene::new("never-anew").await else { return };
    let volume = |path: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": scene.namespace},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": path}}})
    };
    let asked = |mut object: Value| {
        object["metadata"]["annotations"] = json!({"moorline.dev/recreate": "enabled"});
        object
    };
    let volumes = format!("/api/v1/persistentvolumes/{}", scene.namespace);
    let definitions = format!("{DEFINITIONS}/boats.{}", group(&scene));
    let uids = async || {
        let mut uids = Vec::new();
        for uri in [&volumes, &definitions] {
            let live = send_request(&scene.admin, "GET", uri, Value::Null).await.unwrap();
            assert!(live["metadata"].get("deletionTimestamp").is_none(), "{live}");
            uids.push(live["metadata"]["uid"].clone());
        }
        uids
    };
    let commit = scene.push(&[
        file("definition", &asked(definition(&scene, "Namespaced"))),
        file("volume", &asked(volume("/srv/one"))),
        ("a-0.json".to_owned(), config_map("a-0", "one")),
    ]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let (mark, before) = (AuditMark::set(&scene.plane).await, uids().await);

    scene.push(&[
        file("definition", &asked(definition(&scene, "Cluster"))),
        file("volume", &asked(volume("/srv/two"))),
        ("a-0.json".to_owned(), config_map("a-0", "two")),
    ]);
    scene.nudge("shop", "changed").await;
    scene.until_reason("shop", "ApplyFailed").await;
    for object in [scene.namespace.clone(), format!("boats.{}", group(&scene))] {
        let told = until_told(&scene, &object, "Immutable").await;
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("delete it by hand"), "{message}");
    }
    assert_eq!(scene.values().await["a-0"], "two", "a peer is applied");
    scene.assert_calm("with what cannot change").await;
    assert_eq!((deleted(&mark).await, uids().await), (Vec::new(), before));

    scene.delete_sync("shop").await;
    for uri in [&volumes, &definitions] {
        send_request(&scene.admin, "DELETE", uri, Value::Null).await.unwrap();
    }
}
