//! A host that limits requests gets the statuses of commits when it says, and nothing before; other
//! services do not wait.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use moorline_test_support::daemon::until;
use moorline_test_support::git_server::{Reply, Request};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Seconds of the limit, from the first request.
const LIMIT: u64 = 8;
const SYNCS: [&str; 4] = ["a", "b", "c", "d"];

/// A loopback fake of GitHub and of a chat.
#[derive(Clone, Default)]
struct Services(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    /// End of the limit, in seconds since 1970.
    end: Option<u64>,
    /// Time and answer of each request to GitHub.
    statuses: Vec<(u64, u16)>,
    chats: usize,
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl Services {
    fn answer(&self, request: &Request) -> Reply {
        let mut heard = self.0.lock().unwrap();
        if request.path.starts_with("/chat") {
            heard.chats += 1;
            return Reply::Raw(200, "", b"ok".to_vec());
        }
        if !request.path.starts_with("/github/") {
            return Reply::Git;
        }
        let now = seconds();
        let end = *heard.end.get_or_insert(now + LIMIT);
        let status = if now < end { 403 } else { 201 };
        heard.statuses.push((now, status));
        let headers = format!("x-ratelimit-remaining: 0\r\nx-ratelimit-reset: {end}\r\n");
        Reply::Raw(status, headers.leak(), b"{}".to_vec())
    }
}

async fn create(scene: &Scene, path: &str, object: Value) {
    let uri = format!("{}?fieldManager=tests&force=true", path.replace("NS", &scene.namespace));
    let request = http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    scene.admin.request::<Value>(request).await.unwrap();
}

async fn set_up(scene: &Scene, services: &Services) {
    let of_fake = services.clone();
    scene.git.rule(move |request| of_fake.answer(request));
    let definition = moorline::api::notifier_definition().unwrap();
    create(scene, &format!("{DEFINITIONS}/notifiers.moorline.dev"), definition).await;
    until("Notifiers are served", async || {
        let path = "/apis/moorline.dev/v1alpha1/notifiers";
        send_request(&scene.admin, "GET", path, json!(null)).await.ok()
    })
    .await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "host"},
        "stringData": {"token": "planted-token"},
    });
    create(scene, "/api/v1/namespaces/NS/secrets/host", secret).await;
    for (name, service, path) in [("status", "github", "/github"), ("chat", "slack", "/chat")] {
        let url = format!("http://127.0.0.1:{}{path}", scene.git.port);
        let spec = json!({service: {"url": url, "secretRef": {"name": "host"}}, "transitions": ["Applied"]});
        let notifier = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier", "metadata": {"name": name}, "spec": spec,
        });
        create(scene, &format!("/apis/moorline.dev/v1alpha1/namespaces/NS/notifiers/{name}"), notifier).await;
    }
    std::os::unix::fs::symlink(".", scene.root.path().join("team")).unwrap();
}

async fn condition(scene: &Scene) -> Option<(String, String)> {
    let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{}/notifiers/status", scene.namespace);
    let found = send_request(&scene.admin, "GET", &path, json!(null)).await.ok()?;
    let ready = found.pointer("/status/conditions/0")?;
    Some((ready["reason"].as_str()?.to_owned(), ready["message"].as_str().unwrap_or_default().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_wait_for_the_end_of_a_limit_and_nothing_else_does() {
    let scene = Scene::on_sandbox("rate-limits").await;
    let services = Services::default();
    set_up(&scene, &services).await;
    let files = SYNCS.map(|name| (format!("{name}/{name}.json"), config_map(name, "1")));
    let commit = scene.push(&files);
    let _daemon = scene.daemon_with(&["--leader-election=false", "--cluster-name", "lab"]);
    let git = json!({"url": scene.git.url("team/repository.git")});
    for name in SYNCS {
        scene.sync(name, json!({"path": name, "source": {"git": git}})).await;
    }
    for name in SYNCS {
        scene.until_ready(name, &commit).await;
    }
    until("the chat has all of them", async || (services.0.lock().unwrap().chats == 4).then_some(())).await;
    let (reason, message) = until("the limit is reported", async || {
        condition(&scene).await.filter(|(reason, _)| reason == "DeliveryFailed")
    })
    .await;
    let end = services.0.lock().unwrap().end.unwrap();
    assert!(seconds() < end, "the limit was over too early for this test");
    assert!(message.contains("403") && message.contains("is used up until 20"), "{reason}: {message}");
    until("each commit has its status", async || {
        (services.0.lock().unwrap().statuses.iter().filter(|(_, status)| *status == 201).count() == 4)
            .then_some(())
    })
    .await;
    let statuses = services.0.lock().unwrap().statuses.clone();
    let refused = statuses.iter().filter(|(_, status)| *status == 403).count();
    assert_eq!((refused, statuses.len()), (1, 5), "one request finds the limit: {statuses:?}");
    assert!(statuses[1].0 >= end && statuses[4].0 <= end + 20, "{statuses:?}, the limit ends at {end}");
    until("it has ended", async || condition(&scene).await.filter(|(reason, _)| reason == "Ready")).await;
}
