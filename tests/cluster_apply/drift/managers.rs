//! Others under our name, and so many others that the API server forgets who is who.

use http::Method;
use serde_json::{Value, json};

use super::ground::Ground;
use super::place::{APPLY, MERGE, Place};

fn config_map() -> (&'static str, Value) {
    ("configmaps", json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x", "b": "y"}}))
}

#[tokio::test]
async fn who_applies_under_our_name_without_our_marks_is_noticed() {
    let Some(ground) = Ground::new().await else { return };
    let without = |mark: &'static str| {
        async move |it: &Place| {
            let mut body = it.body.clone();
            body["data"]["a"] = "z".into();
            body["metadata"]["annotations"].as_object_mut().expect("annotations").remove(mark);
            it.patch_at("?force=true", "moorline/ops/web", APPLY, body).await;
        }
    };
    for mark in ["moorline.dev/spec-hash", "moorline.dev/id"] {
        let expect = format!("?: metadata.annotations[\"{mark}\"]");
        ground.check(config_map(), without(mark), &expect).await;
    }
    // Nothing at all is a release.
    let nothing = async |it: &Place| {
        it.patch_at("?force=true", "moorline/ops/web", APPLY, it.part(json!({}))).await;
    };
    let (_, healed) = ground.healed(config_map(), nothing, "?: ").await;
    assert_eq!(healed.get().await["data"], json!({"a": "x", "b": "y"}));
}

/// The API server keeps the entries of ten who update, and makes one of the oldest.
#[tokio::test]
async fn more_managers_than_the_server_remembers_hide_no_field() {
    let Some(ground) = Ground::new().await else { return };
    let crowd = async |it: &Place| {
        for at in 0..14 {
            let labels = json!({"metadata": {"labels": {format!("l{at}"): "x"}}});
            it.patch(&format!("robot-{at}"), MERGE, labels).await;
        }
        let live = it.get().await;
        let entries = live["metadata"]["managedFields"].as_array().expect("entries").clone();
        let named = |name: &str| entries.iter().any(|entry| entry["manager"] == name);
        assert!(named("ancient-changes") && named("moorline/ops/web"), "{entries:?}");
    };
    ground.check(config_map(), crowd, "moved").await;
    let edit = async |it: &Place| {
        let key = json!({"data": {"a": "z"}});
        it.try_send(Method::PATCH, &it.path(), MERGE, "kubectl-edit", &key).await.expect("an edit");
        crowd(it).await;
    };
    ground.check(config_map(), edit, "ancient-changes: data.a").await;
}
