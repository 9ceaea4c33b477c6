//! An adoption of a Kustomization whose manifests have variables.

use serde_json::{Value, json};

use crate::adopt::{adopt, assert_nothing_deleted, map, push, until_held};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::gitops_tools::{Part, Robot, install, kustomization, path};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn the_variables_of_a_kustomization_go_with_it() {
    let Some(scene) = Scene::new("adopt-variables").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::Flux, FaultProxy::start(&scene.plane));
    let settings = json!({"metadata": {"name": "settings"}, "data": {"PLACE": "north"}});
    let held = map("a-0", json!({"key": "shop in north", "mode": "none"}));
    let _robot = Robot::start(&scene, part, vec![held]);
    kustomization(&scene).await;
    let build =
        json!({"substitute": {"APP": "shop"}, "substituteFrom": [{"kind": "ConfigMap", "name": "settings"}]});
    let change = json!({"spec": {"postBuild": build}});
    send_request(&scene.admin, "PATCH", &path(part, &scene.namespace), change).await.unwrap();
    let before = until_held(&scene, part, 1).await;
    let commit = push(&scene, &[map("a-0", json!({"key": "${APP} in ${PLACE}", "mode": "${MODE:=none}"}))]);
    let _daemon = scene.daemon();

    let missing = adopt(&scene, &proxy, part, &["--apply"]);
    assert_eq!(missing.code, 1, "{}", missing.data);
    let told = missing.data + &missing.words;
    assert!(told.contains("there is no ConfigMap settings"), "{told}");
    let maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    send_request(&scene.admin, "POST", &maps, settings).await.unwrap();

    let mark = AuditMark::set(&scene.plane).await;
    let applied = adopt(&scene, &proxy, part, &["--apply"]);
    let told = applied.data + &applied.words;
    assert_eq!(applied.code, 0, "{told}");
    assert!(told.contains("a variable without a value is an error here"), "{told}");
    scene.until_ready("shop", &commit).await;
    let sync = scene.syncs().get("shop").await.unwrap();
    let from = json!([{"kind": "ConfigMap", "name": "settings", "optional": false}]);
    let expect = json!({"vars": {"APP": "shop"}, "from": from});
    assert_eq!(sync.data["spec"]["render"]["substitute"], expect);
    let uid = async || -> Value {
        let uri = format!("{maps}/a-0");
        let found = send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap();
        assert_eq!(found["data"], json!({"key": "shop in north", "mode": "none"}));
        found["metadata"]["uid"].clone()
    };
    assert_eq!(uid().await, before["a-0"].as_str());
    assert_nothing_deleted(&scene, &mark).await;
    scene.delete_sync("shop").await;
}
