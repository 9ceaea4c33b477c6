//! Plans of pull requests of a host that limits requests, and after a webhook that reaches a standby.

use std::time::Duration;

use moorline::api::{REQUEST_ANNOTATION, WEBHOOK_REQUEST, sync_set_definition};
use moorline_test_support::daemon::{until, until_within};
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map, many};
use serde_json::json;

use super::host::{Host, Proposal, seconds};
use super::{PATIENCE, SECRET, call, daemon, notifier, propose, set_up};

/// Waits until the Notifier reports this reason, and returns its message.
async fn until_reported(scene: &Scene, name: &str, reason: &str) -> String {
    until("the Notifier reports it", async || {
        let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{}/notifiers/{name}", scene.namespace);
        let found = send_request(&scene.admin, "GET", &path, json!(null)).await.ok()?;
        let ready = found.pointer("/status/conditions/0")?.clone();
        (ready["reason"] == reason).then(|| ready["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_limits_requests_is_asked_again_when_it_says_and_not_before() {
    let scene = Scene::on_sandbox("limited-plan").await;
    let (limited, other) = (Host::new("gitlab"), Host::new("github"));
    set_up(&scene, &[limited.clone(), other.clone()]).await;
    let commit = scene.push(&many(2, "1"));
    let daemon = daemon(&scene);
    let git = json!({"url": scene.git.url("team/repository.git")});
    for name in ["one", "two"] {
        let target = format!("{}-{name}", scene.namespace);
        scene
            .sync(name, json!({"source": {"git": git}, "targetNamespace": target, "createNamespace": true}))
            .await;
        scene.until_ready(name, &commit).await;
    }
    let head = propose(&scene, 7, &[("a-1.json", &config_map("a-1", "2"))]);
    for host in [&limited, &other] {
        let files = vec!["a-1.json"];
        host.set_open(&[Proposal {
            number: 7,
            head: head.clone(),
            is_fork: false,
            labels: Vec::new(),
            files,
        }]);
    }
    let end = seconds() + 15;
    limited.state.lock().unwrap().limited_until = end;
    notifier(&scene, "gitlab", &["one"]).await;
    notifier(&scene, "github", &["two"]).await;
    let message = until_reported(&scene, "gitlab", "DeliveryFailed").await;
    assert!(message.contains("is used up until 20"), "{message}");
    // A webhook does not shorten it, and the other host does not wait.
    call(&scene, &daemon);
    until("the other host has its plan", async || other.comments(7).first().cloned()).await;
    assert!(seconds() < end, "the limit was over too early for this test");
    assert_eq!((limited.heard().len(), limited.comments(7).len()), (1, 0));
    // A back-off would ask again after a minute.
    until_within(Duration::from_secs(30), "the plan", async || limited.comments(7).first().cloned()).await;
    assert!(seconds() >= end && limited.heard().iter().all(|(.., status)| *status < 300));
    until_reported(&scene, "gitlab", "Ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_reaches_a_standby_has_the_leader_plan() {
    let scene = Scene::on_sandbox("standby-plan").await;
    let host = Host::new("gitlab");
    set_up(&scene, std::slice::from_ref(&host)).await;
    let commit = scene.push(&many(2, "1"));
    let secret = scene.root.path().join("webhook-secret");
    std::fs::write(&secret, SECRET).unwrap();
    let arguments = ["--cluster-name", "lab", "--webhook-secret-file", &secret.display().to_string()];
    let _leader = scene.daemon_at(&scene.proxy, "leader", &arguments);
    let git = json!({"url": scene.git.url("team/repository.git")});
    scene.sync("shop", json!({"source": {"git": git}, "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    notifier(&scene, "gitlab", &["shop"]).await;
    until("the list is read", async || (!host.heard().is_empty()).then_some(())).await;
    let proxy = FaultProxy::start(&scene.plane);
    let standby = scene.daemon_at(&proxy, "standby", &arguments);
    until("the standby listens", async || standby.address()).await;

    let head = propose(&scene, 7, &[("a-1.json", &config_map("a-1", "2"))]);
    let files = vec!["a-1.json"];
    host.set_open(&[Proposal { number: 7, head, is_fork: false, labels: Vec::new(), files }]);
    let read = [("shop", "team/repository.git"), ("books", "team/books.git")];
    for (name, repository) in read {
        sync_set(&scene, name, repository).await;
    }
    // It answers before it has anybody to listen for it, in the first moment.
    tokio::time::sleep(Duration::from_secs(2)).await;
    call(&scene, &standby);
    // Without the call, the list is read again after a minute.
    let text = until_within(PATIENCE, "the comment stands", async || host.comments(7).first().cloned()).await;
    assert!(text.contains("**1 to update**"), "{text}");
    let request = async |name: &str| {
        let set = scene.dynamic("moorline.dev", "v1alpha1", "SyncSet").get(name).await.unwrap();
        set.metadata.annotations.unwrap_or_default().get(REQUEST_ANNOTATION).cloned()
    };
    let asked = until("the SyncSet of the repository is asked", async || request("shop").await).await;
    assert!(asked.starts_with(WEBHOOK_REQUEST), "{asked}");
    assert_eq!(request("books").await, None, "another repository");
}

/// Creates a SyncSet that reads the folders of a repository.
async fn sync_set(scene: &Scene, name: &str, repository: &str) {
    let definition = sync_set_definition().unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    // The second one finds it there.
    let _ = send_request(&scene.admin, "POST", path, definition).await;
    let generator = json!({"git": {"url": scene.git.url(repository), "folders": {"include": ["*"]}}});
    let set = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": name},
        "spec": {
            "generators": [generator], "name": "params.folder.name", "interval": "1h",
            "template": {"spec": {"source": {"git": {"url": "https://git.example.com/apps.git"}}}},
        },
    });
    let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncsets", scene.namespace);
    until("the SyncSet is created", async || {
        send_request(&scene.admin, "POST", &path, set.clone()).await.ok()
    })
    .await;
}
