//! The backend of a webhook, and the words that the API server and a Sync have for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::authority::Authority;
use moorline_test_support::conversion;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{DEADLINE, until};
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

pub(crate) const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub(crate) const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Objects as files of a folder.
pub(crate) fn files(folder: &str, objects: &[Value]) -> Vec<(String, String)> {
    let file = |(at, object): (usize, &Value)| (format!("{folder}/{at}.json"), object.to_string());
    objects.iter().enumerate().map(file).collect()
}

/// All reasons that a Sync gives for its readiness until it is ready at a commit.
pub(crate) async fn reasons(scene: &Scene, name: &str, commit: &str) -> BTreeSet<String> {
    let (mut told, deadline) = (BTreeSet::new(), Instant::now() + DEADLINE);
    loop {
        let status = scene.status(name, "").await;
        let ready = &status["conditions"][0];
        told.extend(ready["reason"].as_str().map(str::to_owned));
        let applied = status["revision"]["applied"].as_str().unwrap_or_default();
        if ready["status"] == "True" && applied.ends_with(commit) {
            return told;
        }
        assert!(Instant::now() < deadline, "{name} is not ready at {commit}: {status:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Requests of the daemon that the API server answered with 500.
pub(crate) async fn refused(mark: &AuditMark) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).filter(|it| it.code == 500);
    requests.as_slice().iter().map(|it| format!("{} {}", it.verb_and_resource(), it.name)).collect()
}

/// Waits until so many objects of a Sync wait, and gives its problems.
pub(crate) async fn until_waits(scene: &Scene, name: &str, count: usize) -> Value {
    until(&format!("{count} objects of {name} wait"), async || {
        let problems = scene.status(name, "/problems").await;
        let waits = problems.as_array().into_iter().flatten().filter(|it| it["reason"] == "WaitingForObject");
        (waits.count() == count).then_some(problems)
    })
    .await
}

/// The path at which objects are converted.
const CONVERT: &str = "/convert";

/// A server behind the webhook, which allows everything once it is set to, and converts at once.
pub(crate) struct Backend {
    server: GitServer,
    authority: String,
    pub(crate) answers: Arc<AtomicBool>,
}

impl Backend {
    pub(crate) fn start(scene: &Scene) -> Self {
        let (authority, answers) = (Authority::new(), Arc::<AtomicBool>::default());
        let server = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
        let is_up = answers.clone();
        server.rule(move |asked| {
            if asked.path == CONVERT {
                return conversion::answer(&asked.body, |_, _| {});
            }
            let review: Option<Value> = serde_json::from_slice(&asked.body).ok();
            let Some(review) = review.filter(|_| is_up.load(Ordering::Relaxed)) else {
                return Reply::Raw(503, "", Vec::new());
            };
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            Reply::Raw(200, "Content-Type: application/json\r\n", answer.to_string().into_bytes())
        });
        let authority = base64::engine::general_purpose::STANDARD.encode(&authority.pem);
        Self { server, authority, answers }
    }

    /// Returns the conversion settings for this server.
    pub(crate) fn conversion(&self) -> Value {
        let client = json!({"url": self.url(CONVERT), "caBundle": self.authority});
        json!({"strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}})
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.server.port)
    }

    /// No Pod network leads to the Service here: the API server is sent to the loopback instead. It is patient with what
    /// answers, because the machine may be busy.
    pub(crate) async fn stands_for(&self, scene: &Scene, configuration: &Value) {
        let mut webhooks = configuration["webhooks"].clone();
        for webhook in webhooks.as_array_mut().unwrap() {
            webhook["clientConfig"] = json!({"url": self.url("/admit"), "caBundle": self.authority});
            webhook["timeoutSeconds"] = 10.into();
        }
        let all = if configuration["kind"] == "MutatingWebhookConfiguration" { MUTATING } else { WEBHOOKS };
        let uri = format!("{all}/{}", configuration["metadata"]["name"].as_str().unwrap());
        send_request(&scene.admin, "PATCH", &uri, json!({"webhooks": webhooks})).await.unwrap();
    }
}

/// Does the work of a kubelet: a Pod with these labels is ready.
pub(crate) async fn pods_are_ready(scene: &Scene, namespace: &str, labels: &str) {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let name = until("there is a Pod", async || {
        let uri = format!("{pods}?labelSelector={labels}");
        let list = send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap();
        list.pointer("/items/0/metadata/name").and_then(Value::as_str).map(str::to_owned)
    })
    .await;
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    send_request(&scene.admin, "PATCH", &format!("{pods}/{name}/status"), ready).await.unwrap();
}
