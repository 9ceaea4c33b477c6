//! The API server's treatment of objects that few expect, and what follows from it: zero values that are claimed, an
//! object that is deleted while it is wanted or after its end, writes that change nothing of ours, and fields that
//! nobody asks us to look at.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use moorline_test_support::audit::{AuditMark, Request};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map, many};
use serde_json::{Value, json};

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
    let (_daemon, _) = scene.applied(&[deployment(&nothing)], json!({})).await;
    scene.assert_calm("with claims that the server does not show").await;
    let web = format!("/apis/apps/v1/namespaces/{}/deployments/web", scene.namespace);
    let pods = async || {
        let live = send_request(&scene.admin, "GET", &web, Value::Null).await.unwrap();
        live["spec"]["template"]["spec"].clone()
    };
    for (field, value) in [
        ("hostNetwork", json!(true)),
        ("tolerations", json!([{"operator": "Exists"}])),
        ("hostPID", json!(true)),
    ] {
        let edit = json!({"spec": {"template": {"spec": {field: value}}}});
        send_request(&scene.admin, "PATCH", &format!("{web}?fieldManager=kubectl-edit"), &edit)
            .await
            .unwrap();
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
    let (_daemon, commit) =
        scene.applied(&[many(2, "one"), vec![("ours.json".to_owned(), ours)]].concat(), json!({})).await;
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
    let asked =
        mark.requests().await.by_user(MOORLINE).filter(|it| it.name == "ours" && it.verb != "get").tally();
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
    let (_daemon, _) =
        scene.applied(&[deployment(&json!({}))], json!({"drift": {"extraFields": "Keep"}})).await;
    let web = format!("/apis/apps/v1/namespaces/{}/deployments/web", scene.namespace);
    let more = json!({"spec": {"template": {"spec": {"hostNetwork": true}}}});
    send_request(&scene.admin, "PATCH", &format!("{web}?fieldManager=kubectl-edit"), &more).await.unwrap();
    scene.settle().await;
    scene.assert_calm("with the addition").await;
    let live = send_request(&scene.admin, "GET", &web, Value::Null).await.unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["hostNetwork"], true);
    assert_eq!(scene.status("shop", "/problems").await, Value::Null);

    // The same is reported, or taken away, where that is asked for.
    scene.patch_sync("shop", json!({"spec": {"drift": {"extraFields": "Report"}}})).await;
    until("it is reported", async || {
        let problem = scene.status("shop", "/problems/0/message").await;
        problem.as_str().is_some_and(|it| it.contains("hostNetwork")).then_some(())
    })
    .await;
    scene.patch_sync("shop", json!({"spec": {"drift": {"extraFields": "Remove"}}})).await;
    until("it is taken away", async || {
        let live = send_request(&scene.admin, "GET", &web, Value::Null).await.unwrap();
        live["spec"]["template"]["spec"]["hostNetwork"].is_null().then_some(())
    })
    .await;
    scene.assert_calm("after that").await;
    scene.delete_sync("shop").await;
}

/// The repairs that Events tell of and that are counted, as texts.
async fn repairs(scene: &Scene, daemon: &Daemon) -> Vec<String> {
    let uri = format!("/apis/events.k8s.io/v1/namespaces/{}/events", scene.namespace);
    let events = send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap();
    let events = events["items"].as_array().unwrap().iter().filter(|it| it["reason"] == "DriftRepaired");
    let events = events.map(|it| it["note"].to_string());
    let metrics = daemon.get("/metrics").unwrap();
    let counted = metrics.lines().filter(|line| line.starts_with("moorline_drift_repaired_total"));
    events.chain(counted.map(str::to_owned)).collect()
}

/// Somebody writes to an object, which is looked at this often for it and stays as it was written.
async fn assert_looks(
    scene: &Scene,
    (api, name): (&Api<DynamicObject>, &str),
    by: &PatchParams,
    patch: Patch<Value>,
    looks: usize,
) {
    let (mark, before) = (AuditMark::set(&scene.plane).await, api.get(name).await.unwrap());
    let version = api.patch(name, by, &patch).await.unwrap().metadata.resource_version;
    assert_ne!(version, before.metadata.resource_version, "{patch:?} writes something");
    let asked = async || {
        let about = |it: &Request| it.name == name && it.verb != "watch" && !it.reads_status();
        let asked = mark.requests().await.by_user(MOORLINE).filter(about);
        asked.as_slice().len()
    };
    until("it is looked at", async || (asked().await >= looks).then_some(())).await;
    scene.assert_calm(&format!("after {patch:?}")).await;
    assert_eq!(asked().await, looks, "{patch:?}");
    assert_eq!(api.get(name).await.unwrap().metadata.resource_version, version, "{patch:?}");
}

#[tokio::test]
async fn writes_of_others_that_change_nothing_of_ours_are_no_drift() {
    let Some(scene) = Scene::new("no-drift").await else { return };
    let (daemon, _) = scene.applied(&many(2, "one"), json!({})).await;
    let maps = scene.dynamic("", "v1", "ConfigMap");
    let robot = PatchParams { field_manager: Some("robot".to_owned()), ..PatchParams::default() };
    let label = Patch::Merge(json!({"metadata": {"labels": {"robot": "here"}}}));
    assert_looks(&scene, (&maps, "a-0"), &robot, label, 1).await;
    let same = Patch::Apply(serde_json::from_str(&config_map("a-0", "one")).unwrap());
    assert_looks(&scene, (&maps, "a-0"), &PatchParams::apply("helm"), same, 1).await;
    assert_eq!(repairs(&scene, &daemon).await, [""; 0]);

    // The report if there is something to report.
    scene.edit("a-1", "by hand").await;
    let told = until("it is reported", async || {
        let told = repairs(&scene, &daemon).await;
        (told.len() > 1).then_some(told)
    })
    .await;
    assert!(told[0].contains("a-1") && told[1].ends_with(" 1") && told.len() == 2, "{told:?}");
    scene.delete_sync("shop").await;
}

/// If a definition has no status subresource, a write of the status writes the object, and its generation moves.
#[tokio::test]
async fn a_status_that_is_written_as_any_other_field_is_no_drift() {
    let Some(scene) = Scene::new("status").await else { return };
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.rows.example.com"},
        "spec": {"group": "rows.example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    });
    let boat = json!({"apiVersion": "rows.example.com/v1", "kind": "Boat", "metadata": {"name": "mine"},
        "spec": {"sails": 2}});
    let files = [("definition.json", definition), ("mine.json", boat)];
    let files = files.map(|(path, body)| (path.to_owned(), body.to_string()));
    let (daemon, _) = scene.applied(&files, json!({})).await;
    let boats = scene.dynamic("rows.example.com", "v1", "Boat");
    let generation = async || boats.get("mine").await.unwrap().metadata.generation;
    let (before, by) = (generation().await, PatchParams::default());
    let status = Patch::Merge(json!({"status": {"afloat": true}}));
    assert_looks(&scene, (&boats, "mine"), &by, status, 1).await;
    assert!(generation().await > before);
    let label = Patch::Merge(json!({"metadata": {"labels": {"harbour": "home"}}}));
    assert_looks(&scene, (&boats, "mine"), &by, label, 0).await;
    assert_eq!(boats.get("mine").await.unwrap().data["status"]["afloat"], true);
    assert_eq!(repairs(&scene, &daemon).await, [""; 0]);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_pod_that_ended_and_was_deleted_is_made_anew_only_by_a_commit() {
    let Some(scene) = Scene::new("pod").await else { return };
    let file = |image: &str| {
        let spec = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "task"}, "spec": spec});
        [("task.json".to_owned(), pod.to_string())]
    };
    let (mut daemon, _) =
        scene.applied(&[&many(1, "one")[..], &file("example.com/a:1")].concat(), json!({})).await;
    let pods: Api<Pod> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let at_once = DeleteParams::default().grace_period(0);
    let uid = async || pods.get_opt("task").await.unwrap()?.metadata.uid;
    let first = uid().await;
    pods.delete("task", &at_once).await.unwrap();
    until("one that had not ended is there again", async || {
        uid().await.filter(|uid| Some(uid) != first.as_ref())
    })
    .await;
    scene.assert_calm("with the second").await;

    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status("task", &PatchParams::default(), &ended).await.unwrap();
    let finished = async || scene.status("shop", "/finished/0/object").await;
    until("its end is written down", async || finished().await.is_string().then_some(())).await;
    pods.delete("task", &at_once).await.unwrap();
    scene.assert_calm("without it").await;
    assert_eq!(uid().await, None);
    daemon.terminate();
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    let commit = scene.push(&many(1, "two"));
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(1, "two"), "the next daemon is at work").await;
    scene.assert_calm("after the restart").await;
    assert_eq!((uid().await, finished().await), (None, json!(format!("/Pod|{}/task", scene.namespace))));

    let commit = scene.push(&file("example.com/a:2"));
    scene.nudge("shop", "changed").await;
    scene.until_ready("shop", &commit).await;
    assert_ne!(uid().await, None, "another is made");
    scene.delete_sync("shop").await;
}
