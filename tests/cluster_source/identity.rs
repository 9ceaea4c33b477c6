//! As whom a Sync acts may change: what it sees, and what it repairs, goes on.

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};

async fn create(scene: &Scene, group: &str, kind: &str, object: Value) {
    let api: Api<DynamicObject> = scene.dynamic(group, "v1", kind);
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// An edit by hand is repaired, with no help from the repository.
async fn assert_repairs(scene: &Scene, what: &str) {
    let edit = Patch::Merge(json!({"data": {"key": what}}));
    let written = scene.maps().patch("map", &PatchParams::default(), &edit).await.unwrap();
    assert_eq!(written.data.unwrap()["key"], what);
    until(what, async || (scene.values().await["map"] == "one").then_some(())).await;
}

#[tokio::test]
async fn edits_are_repaired_whoever_a_sync_acts_as() {
    let Some(scene) = Scene::new("identity").await else { return };
    for name in ["nobody", "tenant"] {
        create(&scene, "", "ServiceAccount", json!({"metadata": {"name": name}})).await;
    }
    let binding = json!({
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": scene.namespace}],
    });
    create(&scene, "rbac.authorization.k8s.io", "RoleBinding", binding).await;
    let commit = scene.push(&[("map.json".to_owned(), config_map("map", "one"))]);
    let _daemon = scene.daemon();
    // One that sees nothing, so that nothing that it is given helps those that come after it.
    scene.sync("shop", json!({"interval": "1h", "serviceAccountName": "nobody"})).await;
    scene.until_reason("shop", "RightsMissing").await;
    for (account, what) in [(json!("tenant"), "as the account"), (Value::Null, "as the daemon")] {
        scene.patch_sync("shop", json!({"spec": {"serviceAccountName": account}})).await;
        scene.until_ready("shop", &commit).await;
        scene.assert_calm(what).await;
        assert_repairs(&scene, what).await;
    }
    scene.delete_sync("shop").await;
}
