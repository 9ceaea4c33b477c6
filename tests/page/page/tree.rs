//! The tree of a Sync on a real API server: a Deployment, and the ReplicaSet and the Pod that controllers made of it.
//!
//! In: viewers. Out: what they see, and the audit log, which has one list of each kind for all of them, and none without them.

use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::page_requests::{Answer, get};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};

/// Viewers who look at the same time.
const VIEWERS: usize = 20;

fn deployment() -> String {
    let labels = json!({"app": "web"});
    let container = json!({"name": "web", "image": "registry.example/web:1"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
    .to_string()
}

/// Lists by the daemon in the namespace that are not those of its own objects.
async fn lists(mark: &AuditMark, scene: &Scene) -> Vec<(String, usize)> {
    let requests = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace);
    let of_viewers = requests.filter(|it| it.verb == "list" && !it.uri.contains("labelSelector"));
    of_viewers.tally().into_iter().collect()
}

/// A crash loop in the status of the Pod that the controllers made; its name.
async fn crashing_pod(scene: &Scene) -> String {
    let pods = format!("/api/v1/namespaces/{}/pods", scene.namespace);
    let name = until("there is a Pod", async || {
        let list = send_request(&scene.admin, "GET", &pods, Value::Null).await.unwrap();
        list.pointer("/items/0/metadata/name").and_then(Value::as_str).map(str::to_owned)
    })
    .await;
    let last = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "hunter2",
        "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z"}});
    let container = json!({"name": "web", "image": "", "imageID": "", "ready": false, "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": last});
    let status = json!({"status": {"phase": "Running", "containerStatuses": [container]}});
    send_request(&scene.admin, "PATCH", &format!("{pods}/{name}/status"), status).await.unwrap();
    let event = json!({"metadata": {"name": "crash"}, "type": "Warning", "reason": "BackOff", "message": "it crashes",
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": scene.namespace, "name": name}});
    let events = format!("/api/v1/namespaces/{}/events", scene.namespace);
    send_request(&scene.admin, "POST", &events, event).await.unwrap();
    let alone =
        json!({"metadata": {"name": "alone"}, "spec": {"containers": [{"name": "web", "image": "a:1"}]}});
    send_request(&scene.admin, "POST", &pods, alone).await.unwrap();
    name
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_read_once_for_all_who_look_and_never_for_nobody() {
    let Some(scene) = Scene::new("page-tree").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let daemon = scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"]);
    let address = until("the page is there", async || daemon.page()).await;
    let files = [("web.json".into(), deployment()), ("a.json".into(), config_map("a", "one"))];
    let commit = scene.push(&files);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let html = format!("/syncs/{}/shop", scene.namespace);
    until("it is shown", async || get(&address, &html).body.contains("/objects/").then_some(())).await;
    let pod = crashing_pod(&scene).await;
    assert_eq!(lists(&mark, &scene).await, [], "nobody has looked");

    let mark = AuditMark::set(&scene.plane).await;
    let look = |path: String| {
        let address = address.clone();
        tokio::task::spawn_blocking(move || get(&address, &path))
    };
    let viewers: Vec<_> = (0..VIEWERS)
        .map(|nth| look(if nth % 2 == 0 { format!("{html}/tree") } else { format!("/api/v1{html}/tree") }))
        .collect();
    let mut answers: Vec<Answer> = Vec::new();
    for viewer in viewers {
        answers.push(viewer.await.unwrap());
    }
    assert!(
        answers.iter().all(|it| it.status == 200),
        "{:?}",
        answers.iter().map(|it| it.status).collect::<Vec<_>>()
    );
    let page = format!("{html}/pods/{}/{pod}", scene.namespace);
    let shown = get(&address, &page);
    let one = |what: &str| (format!("list {what}"), 1);
    assert_eq!(
        lists(&mark, &scene).await,
        [one("persistentvolumeclaims"), one("pods"), one("replicasets.apps")],
        "{VIEWERS} viewers, and a page of a Pod"
    );

    let tree: Value = serde_json::from_str(&answers[1].body).unwrap();
    let web = &tree["objects"][0];
    assert_eq!((&web["kind"], &web["owned"][0]["kind"]), (&json!("Deployment"), &json!("ReplicaSet")));
    let found = &web["owned"][0]["owned"][0];
    assert_eq!(
        (&found["name"], &found["health"], &found["restarts"]),
        (&json!(pod), &json!("Degraded"), &json!(3))
    );
    assert!(web["created"].is_string() && found["created"].is_string(), "{tree}");
    assert!(answers[0].body.contains(&format!("href=\"{page}\"")), "{}", answers[0].body);
    assert!(!answers[0].body.contains("alone"), "a Pod that nothing of the Sync owns");
    assert_eq!(shown.status, 200);
    for part in ["OOMKilled, exit code 137", "CrashLoopBackOff", "registry.example/web:1", "ReplicaSet"] {
        assert!(shown.body.contains(part), "{part}\n{}", shown.body);
    }
    assert!(!shown.body.contains("hunter2"));
    // No other Pod is shown, and no log without a sign-in.
    let alone = format!("{html}/pods/{}/alone", scene.namespace);
    for path in [alone.clone(), format!("{alone}/logs"), format!("/api/v1{alone}")] {
        assert_eq!(get(&address, &path).status, 404, "{path}");
    }
    let log = get(&address, &format!("{page}/logs?follow=true"));
    let command = format!("kubectl logs -n {} {pod} -c web", scene.namespace);
    assert!(log.status == 403 && log.body.contains(&command), "{} {}", log.status, log.body);
    let events = get(&address, &format!("{html}/events"));
    assert!(events.status == 200 && events.body.contains("it crashes"), "{}", events.body);
    let logs = mark.requests().await.by_user(MOORLINE).filter(|it| it.subresource == "log");
    assert_eq!(logs.as_slice().len(), 0);
    scene.delete_sync("shop").await;
}
