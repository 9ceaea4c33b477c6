//! Service meshes: webhooks that put a container and an annotation into what is written.

use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::ground::{IMAGE, Opponent, assert_repaired, deployments, file, quiet_after, web, writes};
use super::webhook::{Decision, Webhook};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::Scene;

/// A proxy beside each container, once, and an annotation. `place` is where the Pod's metadata and spec are.
fn inject(request: &Value, place: &str) -> Decision {
    let pod = request["object"].pointer(place).unwrap();
    let containers = pod["spec"]["containers"].as_array().unwrap();
    if containers.iter().any(|container| container["name"] == "mesh-proxy") {
        return Decision::Allow;
    }
    let proxy = json!({"name": "mesh-proxy", "image": "example.com/proxy:1"});
    let mut steps = vec![json!({"op": "add", "path": format!("{place}/spec/containers/-"), "value": proxy})];
    if pod["metadata"]["annotations"].is_null() {
        steps.push(json!({"op": "add", "path": format!("{place}/metadata/annotations"), "value": {}}));
    }
    let key = format!("{place}/metadata/annotations/mesh.example.com~1status");
    steps.push(json!({"op": "add", "path": key, "value": "injected"}));
    Decision::Change(steps.into())
}

/// Waits until writes are intercepted, by writes that change nothing.
async fn until_in_force(scene: &Scene, body: &Value, is: impl Fn(&Value) -> bool) {
    let objects = scene.dynamic(
        body["apiVersion"].as_str().unwrap().split_once('/').map_or("", |(group, _)| group),
        "v1",
        body["kind"].as_str().unwrap(),
    );
    let by = PatchParams { dry_run: true, ..PatchParams::apply("tests").force() };
    until("the webhook is called", async || {
        let tried = objects.patch("probe", &by, &Patch::Apply(body)).await;
        let tried = tried.map(|live| serde_json::to_value(live).unwrap()).ok()?;
        is(&tried).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_a_mesh_injects_into_pods_is_no_drift() {
    let Some(scene) = Scene::new("mesh-pods").await else { return };
    let webhook = Webhook::start(&scene, |request| inject(request, ""));
    webhook.intercepts(&scene, "MutatingWebhookConfiguration", "pods.mesh.example.com", "", &["pods"]).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
        "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]},
    });
    until_in_force(&scene, &pod, |live| live["spec"]["containers"][1]["name"] == "mesh-proxy").await;
    let mut own = pod.clone();
    own["metadata"]["name"] = "own".into();
    let files = [file(&own), file(&web("web", json!({"paused": false})))];
    let (_daemon, _) = scene.applied(&files, json!({"drift": {"extraFields": "Remove"}})).await;
    let pods = scene.dynamic("", "v1", "Pod");
    let both = until("both Pods are there", async || {
        let all = pods.list(&ListParams::default()).await.unwrap().items;
        (all.len() == 2).then_some(all)
    })
    .await;
    for pod in both {
        assert_eq!(pod.data["spec"]["containers"][1]["name"], "mesh-proxy");
    }
    let asked = quiet_after(&scene, std::time::Instant::now(), "injected").await;
    assert_eq!(writes(&asked, "own"), 1, "its creation");
    let mesh = Opponent::new(&pods, "mesh-controller");
    mesh.merges("own", json!({"metadata": {"labels": {"mesh.example.com/rev": "2"}}})).await;
    let asked = quiet_after(&scene, mesh.moved(), "labelled").await;
    assert_eq!(writes(&asked, "own"), 0);
    assert_eq!(scene.status("shop", "/contested").await, Value::Null);
}

#[tokio::test]
async fn what_a_mesh_injects_into_templates_is_left_whatever_is_asked() {
    let Some(scene) = Scene::new("mesh").await else { return };
    let webhook = Webhook::start(&scene, |request| inject(request, "/spec/template"));
    let deployment = "MutatingWebhookConfiguration";
    webhook.intercepts(&scene, deployment, "templates.mesh.example.com", "apps", &["deployments"]).await;
    let injected = |live: &Value| {
        let names = live.pointer("/spec/template/spec/containers").and_then(Value::as_array).unwrap();
        names.iter().any(|container| container["name"] == "mesh-proxy")
    };
    until_in_force(&scene, &web("probe", json!({})), injected).await;
    let first = web("web", json!({"minReadySeconds": 3}));
    let (_daemon, _) = scene.applied(&[file(&first)], json!({"drift": {"extraFields": "Remove"}})).await;
    let asked = quiet_after(&scene, std::time::Instant::now(), "injected").await;
    assert_eq!(writes(&asked, "web"), 1, "its creation");
    let objects = deployments(&scene);
    assert_repaired(&scene, &objects, "web", json!({"spec": {"minReadySeconds": 9}}), "spec.minReadySeconds")
        .await;

    // A field that a person adds by hand is reported or removed, and one that the webhook adds at each of these writes is not.
    let person = Opponent::new(&objects, "kubectl-edit");
    let mine = json!({"name": "debug", "image": "example.com/debug:1"});
    let proxy = json!({"name": "mesh-proxy", "image": "example.com/proxy:2"});
    let edit = json!({"spec": {"template": {"spec": {"containers": [mine, proxy]}}}});
    person.edits("web", edit.clone()).await;
    let gone = |live: &Value| live.pointer("/spec/template/spec/containers/2").is_none();
    let live = person.until("what was added by hand is gone", "web", gone).await;
    let asked = quiet_after(&scene, person.moved(), "removed").await;
    assert!(writes(&asked, "web") <= 4, "{} writes", writes(&asked, "web"));
    assert!(injected(&person.live("web").await), "{live}");
    assert_eq!(live.pointer(IMAGE), Some(&json!("example.com/web:1")));

    scene.patch_sync("shop", json!({"spec": {"drift": {"extraFields": "Report"}}})).await;
    person.edits("web", edit).await;
    let said = until("what was added is reported", async || {
        let said = scene.status("shop", "/problems/0/message").await;
        said.as_str().filter(|text| text.contains("containers[name=debug]")).map(str::to_owned)
    })
    .await;
    assert!(said.starts_with("kubectl-edit added"), "{said}");
    quiet_after(&scene, person.moved(), "told").await;
    assert_eq!(scene.status("shop", "/contested").await, Value::Null);
}
