//! What the API server does with objects that few expect, and what follows from it: zero values that are claimed, an
//! object that is deleted while it is wanted, and fields that nobody asks us to look at.

mod support;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use support::audit::AuditMark;
use support::credentials::MOORLINE;
use support::daemon::until;
use support::rest::ask;
use support::scene::{Scene, config_map, many};

/// A Deployment that runs nothing, with these fields in the spec of its Pods.
fn deployment(pods: &Value) -> (String, String) {
    let labels = json!({"app": "web"});
    let mut spec = json!({"containers": [{"name": "web", "image": "example.com/web:1"}]});
    for (field, value) in pods.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}});
    ("web.json".to_owned(), web.to_string())
}

#[tokio::test]
async fn a_value_of_nothing_in_git_is_a_claim_as_well() {
    let Some(scene) = Scene::new("zero").await else { return };
    let nothing = json!({"hostNetwork": false, "tolerations": [], "hostPID": false});
    let commit = scene.push(&[deployment(&nothing)]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("with claims that the server does not show").await;
    let web = format!("/apis/apps/v1/namespaces/{}/deployments/web", scene.namespace);
    let pods = async || {
        let live = ask(&scene.admin, "GET", &web, Value::Null).await.unwrap();
        live["spec"]["template"]["spec"].clone()
    };
    for (field, value) in [
        ("hostNetwork", json!(true)),
        ("tolerations", json!([{"operator": "Exists"}])),
        ("hostPID", json!(true)),
    ] {
        let edit = json!({"spec": {"template": {"spec": {field: value}}}});
        ask(&scene.admin, "PATCH", &format!("{web}?fieldManager=kubectl-edit"), &edit).await.unwrap();
        until(&format!("{field} is taken back"), async || {
            let live = pods().await;
            let none = live[field].is_null() || live[field] == false || live[field] == json!([]);
            none.then_some(())
        })
        .await;
    }
    scene.assert_calm("after the repairs").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_wanted_object_that_is_being_deleted_is_not_applied_and_keeps_its_finalizer() {
    let Some(scene) = Scene::new("wanted").await else { return };
    let ours =
        config_map("ours", "one").replace("\"name\"", "\"finalizers\":[\"example.com/ours\"],\"name\"");
    let commit = scene.push(&[many(2, "one"), vec![("ours.json".to_owned(), ours)]].concat());
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let mark = AuditMark::set(&scene.plane).await;
    let uid = async || scene.maps().get("ours").await.unwrap().metadata.uid;
    let before = uid().await;
    scene.maps().delete("ours", &DeleteParams::default()).await.unwrap();
    scene.until_reason("shop", "ObjectsHeld").await;
    let told = "it is being deleted, and waits for the finalizer example.com/ours";
    assert_eq!(scene.status("shop", "/problems/0/message").await, told);
    scene.assert_calm("while it goes").await;
    let live = scene.maps().get("ours").await.unwrap().metadata;
    assert_eq!((live.uid, live.finalizers), (before.clone(), Some(vec!["example.com/ours".to_owned()])));
    let asked = mark.requests().await.of(MOORLINE).only(|it| it.name == "ours" && it.verb != "get").tally();
    assert_eq!(asked, [].into(), "an apply would let go of the finalizer");

    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    scene.maps().patch("ours", &PatchParams::default(), &free).await.unwrap();
    scene.until_ready("shop", &commit).await;
    assert_ne!(uid().await, before, "it is made anew");
    scene.delete_sync("shop").await;
    scene.maps().patch("ours", &PatchParams::default(), &free).await.unwrap();
}

#[tokio::test]
async fn fields_that_others_add_are_kept_without_a_word_where_that_is_asked_for() {
    let Some(scene) = Scene::new("keep").await else { return };
    let commit = scene.push(&[deployment(&json!({}))]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"drift": {"extraFields": "Keep"}})).await;
    scene.until_ready("shop", &commit).await;
    let web = format!("/apis/apps/v1/namespaces/{}/deployments/web", scene.namespace);
    let more = json!({"spec": {"template": {"spec": {"hostNetwork": true}}}});
    ask(&scene.admin, "PATCH", &format!("{web}?fieldManager=kubectl-edit"), &more).await.unwrap();
    scene.settle().await;
    scene.assert_calm("with the addition").await;
    let live = ask(&scene.admin, "GET", &web, Value::Null).await.unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["hostNetwork"], true);
    assert_eq!(scene.status("shop", "/problems").await, Value::Null);

    // The same is told, or taken away, where that is asked for.
    scene.patch_sync("shop", json!({"spec": {"drift": {"extraFields": "Report"}}})).await;
    until("it is told", async || {
        let problem = scene.status("shop", "/problems/0/message").await;
        problem.as_str().is_some_and(|it| it.contains("hostNetwork")).then_some(())
    })
    .await;
    scene.patch_sync("shop", json!({"spec": {"drift": {"extraFields": "Remove"}}})).await;
    until("it is taken away", async || {
        let live = ask(&scene.admin, "GET", &web, Value::Null).await.unwrap();
        live["spec"]["template"]["spec"]["hostNetwork"].is_null().then_some(())
    })
    .await;
    scene.assert_calm("after that").await;
    scene.delete_sync("shop").await;
}
