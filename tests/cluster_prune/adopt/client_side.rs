//! Objects that Argo CD has applied from the client: the server's defaults are in its entry as well, and nobody set them.

use serde_json::{Value, json};

use crate::adopt::{adopt, push};
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::gitops_tools::{Part, application, install, path};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    })
}

fn deployment() -> Value {
    let labels = json!({"app": "web"});
    let container = json!({"name": "web", "image": "example.com/web:1", "ports": [{"containerPort": 80}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    })
}

/// Creates an object as a client-side apply of Argo CD does: whole, with the words of it in an annotation.
async fn applied(scene: &Scene, collection: &str, object: &Value) -> String {
    let mut object = object.clone();
    let (group, kind) = match object["apiVersion"].as_str().unwrap().split_once('/') {
        Some((group, _)) => (group.to_owned(), object["kind"].as_str().unwrap().to_owned()),
        None => (String::new(), object["kind"].as_str().unwrap().to_owned()),
    };
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let id = format!("shop:{group}/{kind}:{}/{name}", scene.namespace);
    object["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
    let sent = object.to_string();
    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = sent.into();
    let uri = format!("{collection}?fieldManager=argocd-controller");
    send_request(&scene.admin, "POST", &uri, &object).await.unwrap();
    format!("{collection}/{name}")
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_the_server_are_not_said_to_be_argo_cds() {
    let Some(scene) = Scene::new("adopt-defaults").await else { return };
    install(&scene).await;
    let (part, proxy, namespace) = (Part::ArgoCd, FaultProxy::start(&scene.plane), &scene.namespace);
    application(&scene, json!({"prune": true})).await;
    // One field was in Git once, and is not any more.
    let mut before = deployment();
    before["spec"]["minReadySeconds"] = 5.into();
    let front = applied(&scene, &format!("/api/v1/namespaces/{namespace}/services"), &service()).await;
    let web = applied(&scene, &format!("/apis/apps/v1/namespaces/{namespace}/deployments"), &before).await;
    let entry = |group: &str, kind: &str, name: &str| json!({"group": group, "version": "v1", "kind": kind, "namespace": namespace, "name": name});
    let resources = json!([entry("", "Service", "front"), entry("apps", "Deployment", "web")]);
    send_request(&scene.admin, "PATCH", &path(part, namespace), json!({"status": {"resources": resources}}))
        .await
        .unwrap();
    push(&scene, &[service(), deployment()]);
    let _daemon = scene.daemon();

    let live = send_request(&scene.admin, "GET", &front, Value::Null).await.unwrap();
    let entries = live["metadata"]["managedFields"].to_string();
    assert!(entries.contains("f:sessionAffinity"), "the entry has a default: {entries}");
    let shown = adopt(&scene, &proxy, part, &[]);
    assert_eq!(shown.code, 2, "{}{}", shown.data, shown.words);
    let expect = format!(
        "Set by Argo CD, and not in Git (1): these fields stay until you remove them\n  ! Deployment.apps {namespace}/web: spec.minReadySeconds\n"
    );
    assert!(shown.data.contains(&expect), "{}", shown.data);
    for default in ["sessionAffinity", "protocol", "terminationMessagePath"] {
        assert!(!shown.data.contains(default), "{default}: {}", shown.data);
    }

    // The adoption keeps the field, as it says.
    let done = adopt(&scene, &proxy, part, &["--apply"]);
    assert!(done.words.contains("2 objects were adopted; none was deleted"), "{}{}", done.data, done.words);
    let live = send_request(&scene.admin, "GET", &web, Value::Null).await.unwrap();
    assert_eq!(live["spec"]["minReadySeconds"], 5);
    scene.delete_sync("shop").await;
}
