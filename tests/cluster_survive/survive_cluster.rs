//! Fate of a cluster under a Sync: its API server goes and comes, its history is lost, namespaces and
//! definitions are deleted, objects never end; and nothing secret is ever reported.

mod told;

use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{install, until};
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, many};

#[tokio::test]
async fn an_api_server_is_restarted_in_the_middle_of_a_sync_and_its_history_is_lost() {
    let Some(scene) = Scene::new("restart").await else { return };
    let commit = scene.push(&many(12, "one"));
    scene.proxy.rule(|asked| match asked.writes_object() {
        true => Fate::Delay(Duration::from_millis(300)),
        false => Fate::Pass,
    });
    let _daemon = scene.daemon_with(&["--leader-election=false", "--concurrency", "2"]);
    scene.sync("shop", json!({})).await;
    until("it has begun", async || (scene.values().await.len() >= 2).then_some(())).await;
    scene.plane.restart_api_server(async || tokio::time::sleep(Duration::from_secs(1)).await).await;
    scene.proxy.heal();
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(12, "one"), "all are created").await;
    scene.assert_calm("after the restart").await;

    // While nothing is watched, things happen that the restarted server does not remember.
    scene.proxy.rule(|asked| if asked.is_watch() { Fate::Drop } else { Fate::Pass });
    scene.proxy.cut_watches();
    let edit = json!({"data": {"key": "by hand"}});
    scene.maps().patch("a-1", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    scene.maps().delete("a-2", &DeleteParams::default()).await.unwrap();
    scene.plane.restart_api_server(async || {}).await;
    for at in 0..5 {
        let other = json!({"data": {"at": at.to_string()}});
        scene.maps().patch("kube-root-ca.crt", &PatchParams::default(), &Patch::Merge(&other)).await.unwrap();
    }
    let expired = scene.proxy.expired();
    scene.proxy.heal();
    scene.until_values(&many(12, "one"), "what happened meanwhile is repaired").await;
    until("the server has said that it forgot", async || (scene.proxy.expired() > expired).then_some(()))
        .await;
    scene.assert_calm("after the loss of history").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn our_entry_in_the_managed_fields_is_wiped_and_comes_back() {
    let Some(scene) = Scene::new("wiped").await else { return };
    let (_daemon, _) = scene.applied(&many(2, "one"), json!({})).await;
    let wipe = json!({"metadata": {"managedFields": [{}]}, "data": {"key": "by hand"}});
    scene.maps().patch("a-1", &PatchParams::default(), &Patch::Merge(&wipe)).await.unwrap();
    scene.until_values(&many(2, "one"), "the edit is repaired").await;
    let manager = format!("moorline/{}/shop", scene.namespace);
    until("our entry is back", async || {
        let entries = scene.maps().get("a-1").await.unwrap().metadata.managed_fields.unwrap_or_default();
        entries.iter().any(|entry| entry.manager.as_ref() == Some(&manager)).then_some(())
    })
    .await;
    let commit = scene.remove(&["a-1.json"]);
    scene.nudge("shop", "gone").await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(1, "one"), "it is pruned as any other").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn an_object_whose_finalizer_never_ends_keeps_nobody_else() {
    let Some(scene) = Scene::new("finalizer").await else { return };
    scene.push(&many(3, "one"));
    let stuck =
        config_map("stuck", "x").replace("\"name\"", "\"finalizers\":[\"example.com/never\"],\"name\"");
    let (_daemon, _) = scene.applied(&[("stuck.json".to_owned(), stuck)], json!({"timeout": "5s"})).await;
    scene.remove(&["stuck.json"]);
    let commit = scene.push(&many(3, "two"));
    scene.nudge("shop", "gone").await;
    let held = [many(3, "two"), vec![(String::new(), config_map("stuck", "x"))]].concat();
    scene.until_values(&held, "the others go on").await;
    let stuck = async || scene.maps().get("stuck").await.unwrap().metadata.deletion_timestamp;
    until("it is being deleted", async || stuck().await).await;
    let problem = async || scene.status("shop", "/problems/0/message").await;
    let told = "it is being deleted, and waits for the finalizer example.com/never";
    until("it is told for what it waits", async || (problem().await == told).then_some(())).await;
    scene.until_reason("shop", "ApplyFailed").await;
    assert_eq!(problem().await, format!("{told} for more than 5 s"));
    let conditions = scene.status("shop", "/conditions").await;
    let is = |kind: &str| {
        conditions.as_array().unwrap().iter().find(|it| it["type"] == kind).map(|it| it["status"] == "True")
    };
    assert_eq!(
        (is("Stalled"), is("Reconciling")),
        (Some(true), None),
        "it is for a person now: {conditions}"
    );
    scene.assert_calm("while it is stuck").await;
    let free = json!({"metadata": {"finalizers": null}});
    scene.maps().patch("stuck", &PatchParams::default(), &Patch::Merge(&free)).await.unwrap();
    scene.until_values(&many(3, "two"), "it is gone").await;
    scene.until_ready("shop", &commit).await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_namespace_goes_and_comes_under_its_objects() {
    let Some(scene) = Scene::new("going").await else { return };
    let inner = scene.plane.namespace("going-inner").await;
    let there = config_map("there", "x").replace("\"name\"", &format!("\"namespace\":\"{inner}\",\"name\""));
    let (_daemon, commit) =
        scene.applied(&[many(2, "one"), vec![("there.json".to_owned(), there)]].concat(), json!({})).await;
    let uri = format!("/api/v1/namespaces/{inner}");
    send_request(&scene.admin, "DELETE", &uri, json!({})).await.unwrap();
    until("the namespace is gone", async || send_request(&scene.admin, "GET", &uri, json!({})).await.err())
        .await;
    // The others are held to Git all the same.
    scene.maps().delete("a-1", &DeleteParams::default()).await.unwrap();
    scene.until_values(&many(2, "one"), "it is there again").await;
    assert_eq!(scene.status("shop", "/conditions/0/status").await, "False");
    let body = json!({"metadata": {"name": inner}});
    send_request(&scene.admin, "POST", "/api/v1/namespaces", body).await.unwrap();
    scene.until_ready("shop", &commit).await;
    send_request(&scene.admin, "GET", &format!("{uri}/configmaps/there"), json!({})).await.unwrap();
    scene.delete_sync("shop").await;
}

fn definition() -> String {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.survive.example.com"},
        "spec": {"group": "survive.example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
    .to_string()
}

#[tokio::test]
async fn a_definition_is_removed_under_its_resources_and_comes_back_with_them() {
    let Some(scene) = Scene::new("definition").await else { return };
    let widget = json!({"apiVersion": "survive.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 1});
    let files = [("definition.json", definition()), ("widget.json", widget.to_string())];
    let (_daemon, commit) =
        scene.applied(&files.map(|(path, text)| (path.to_owned(), text)), json!({})).await;
    let widgets = scene.dynamic("survive.example.com", "v1", "Widget");
    let before = widgets.get("w").await.unwrap().metadata.uid;
    let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.survive.example.com";
    send_request(&scene.admin, "DELETE", uri, json!({})).await.unwrap();
    until("a new resource is there", async || {
        widgets.get_opt("w").await.ok().flatten().filter(|widget| widget.metadata.uid != before)
    })
    .await;
    scene.until_ready("shop", &commit).await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_group_whose_backend_is_down_holds_up_nobody() {
    let Some(scene) = Scene::new("backend").await else { return };
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.down.example.com"},
        "spec": {"group": "down.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"namespace": scene.namespace, "name": "nobody"}},
    });
    let uri = "/apis/apiregistration.k8s.io/v1/apiservices";
    send_request(&scene.admin, "POST", uri, service).await.unwrap();
    scene.push(&many(3, "one"));
    let commit = scene.remove(&["a-2.json"]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let commit = scene.remove(&["a-1.json"]);
    scene.nudge("shop", "prune").await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(1, "one"), "what left Git is pruned").await;
    send_request(&scene.admin, "DELETE", &format!("{uri}/v1.down.example.com"), json!({})).await.unwrap();
    scene.delete_sync("shop").await;
}

/// Everything of our own in the namespace goes with it, and nothing is stuck.
#[tokio::test]
async fn the_namespace_of_a_sync_is_deleted() {
    let Some(scene) = Scene::new("doomed").await else { return };
    let commit = scene.push(&many(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"deletionPolicy": "Delete"})).await;
    scene.sync("other", json!({"path": "nowhere"})).await;
    scene.until_ready("shop", &commit).await;
    let uri = format!("/api/v1/namespaces/{}", scene.namespace);
    send_request(&scene.admin, "DELETE", &uri, json!({})).await.unwrap();
    until("the namespace is gone", async || send_request(&scene.admin, "GET", &uri, json!({})).await.err())
        .await;
    tokio::time::sleep(QUIET_TIME).await;
    assert!(scene.syncs().list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn the_definition_of_syncs_is_deleted_with_syncs_left() {
    let Some(scene) = Scene::new("undefined").await else { return };
    let (_daemon, _) = scene.applied(&many(3, "one"), json!({"render": {"plain": {"recurse": false}}})).await;
    // One that would take its objects along, were it deleted for itself.
    let more = [("more/b.json".to_owned(), config_map("b-0", "one"))];
    let commit = scene.push(&more);
    scene.sync("more", json!({"path": "more", "deletionPolicy": "Delete"})).await;
    scene.until_ready("more", &commit).await;
    let before = scene.versions().await;
    let mark = AuditMark::set(&scene.plane).await;
    let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";
    send_request(&scene.admin, "DELETE", uri, json!({})).await.unwrap();
    until("the definition is gone", async || send_request(&scene.admin, "GET", uri, json!({})).await.err())
        .await;
    tokio::time::sleep(QUIET_TIME).await;
    let deletes = mark.requests().await.by_user(MOORLINE).filter(|request| request.verb == "delete");
    assert!(deletes.as_slice().is_empty(), "{:?}", deletes.as_slice());
    assert_eq!(scene.versions().await, before);
    // Installed again, it goes on without a restart.
    install(&scene.plane).await;
    // Another Sync of the same name: what it wants is proven again, and pruned as any other from then on.
    scene.sync("shop", json!({"render": {"plain": {"recurse": false}}})).await;
    scene.until_ready("shop", &commit).await;
    let commit = scene.remove(&["a-2.json"]);
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    let mut left = many(2, "one");
    left.extend(more);
    scene.until_values(&left, "and knows what it owned").await;
    scene.delete_sync("shop").await;
}
