//! A webhook that converts or admits for the sandbox may take its time, and may ask the sandbox itself.
//!
//! In: a webhook on the loopback that thinks, asks or is silent. Out: that nobody else waits for it, and that nothing is lost
//! of what others write meanwhile. What it converts or admits, and how badly it may answer, is in `tests/parity/webhooks.txt`
//! and `tests/parity/still-admission.txt`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use http::Request;
use kube::client::Body;
use moorline::sandbox::{Options, Sandbox};
use moorline_test_support::authority::Authority;
use moorline_test_support::conversion::answer;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};
use tokio::sync::Notify;

const BOATS: &str = "/apis/example.com/v1/namespaces/default/boats";
const OTHERS: &str = "/apis/example.com/v2/namespaces/default/boats";

/// A sandbox, a webhook beside it, and the configuration by which the sandbox finds it.
fn beside(folder: &std::path::Path, path: &str) -> (Sandbox, GitServer, Value) {
    let authority = Authority::new();
    let webhook = GitServer::start_with(folder, Some(authority.server(None)));
    let sandbox = Sandbox::new(&Options::default());
    let bundle = base64::engine::general_purpose::STANDARD.encode(&authority.pem);
    let url = format!("https://localhost:{}/{path}", webhook.port);
    (sandbox, webhook, json!({"url": url, "caBundle": bundle}))
}

/// A sandbox with boats in two versions, and who converts them.
fn scene(folder: &std::path::Path) -> (Sandbox, GitServer) {
    let (sandbox, webhook, client) = beside(folder, "convert");
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    sandbox
        .define(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boats.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
                "versions": [version("v1", true), version("v2", false)],
                "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                    "clientConfig": client}}},
        }))
        .unwrap();
    (sandbox, webhook)
}

fn boat(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"sails": 1}})
}

/// Sends a request; the status and the answer.
async fn send(sandbox: &Sandbox, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(
            "Content-Type",
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" },
        )
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap();
    let response = sandbox.client().send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn nobody_waits_for_a_webhook_that_thinks_and_nothing_is_lost_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = scene(folder.path());
    sandbox.apply(BOATS, &boat("a"), "m").unwrap();
    let thinks = Arc::new(Notify::new());
    let begun = thinks.clone();
    webhook.rule(move |request| {
        begun.notify_one();
        std::thread::sleep(Duration::from_millis(400));
        answer(&request.body, |_, _| {})
    });
    let (place, other) = (format!("{OTHERS}/a"), format!("{BOATS}/a"));
    let patch = json!({"spec": {"colour": "red"}});
    let meanwhile = async {
        thinks.notified().await;
        let asked_at = Instant::now();
        sandbox.merge(&other, &json!({"spec": {"sails": 7}}), "k").unwrap();
        assert!(asked_at.elapsed() < under_load(Duration::from_millis(200)), "{:?}", asked_at.elapsed());
    };
    let ((code, told), ()) = tokio::join!(send(&sandbox, "PATCH", &place, &patch), meanwhile);
    assert_eq!((code, &told["spec"]), (200, &json!({"sails": 7, "colour": "red"})));
    assert_eq!(told["apiVersion"], "example.com/v2");
    assert_eq!(sandbox.get(&other).unwrap()["spec"], json!({"sails": 7, "colour": "red"}));
}

#[tokio::test]
async fn an_object_that_moves_while_it_is_converted_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = scene(folder.path());
    // Whichever of the calls it is during which somebody else writes: of the reading, the comparing and the storing.
    let mut most = 0;
    for moves_at in 1..=6 {
        let (name, asked) = (format!("a-{moves_at}"), sandbox.clone());
        sandbox.apply(BOATS, &boat(&name), "m").unwrap();
        let (place, other) = (format!("{OTHERS}/{name}"), format!("{BOATS}/{name}"));
        let (calls, moved) = (Arc::new(AtomicUsize::new(0)), other.clone());
        let counting = calls.clone();
        webhook.rule(move |request| {
            if counting.fetch_add(1, Ordering::SeqCst) + 1 == moves_at {
                asked.merge(&moved, &json!({"spec": {"sails": 7}}), "k").unwrap();
            }
            answer(&request.body, |_, _| {})
        });
        let (code, told) = send(&sandbox, "PATCH", &place, &json!({"spec": {"colour": "red"}})).await;
        most = most.max(calls.load(Ordering::SeqCst));
        let is_moved = calls.load(Ordering::SeqCst) >= moves_at;
        let sails = if is_moved { 7 } else { 1 };
        assert_eq!((code, &told["spec"]), (200, &json!({"sails": sails, "colour": "red"})), "{moves_at}");
        assert_eq!(sandbox.get(&other).unwrap()["spec"], told["spec"], "{moves_at}");
    }
    assert!(most > 4, "{most}");
}

#[tokio::test]
async fn a_webhook_may_ask_the_server_that_asks_it() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = scene(folder.path());
    let asked = sandbox.clone();
    webhook.rule(move |request| {
        let known = asked.get("/api/v1/namespaces/default").unwrap();
        asked
            .merge("/api/v1/namespaces/default", &json!({"metadata": {"labels": {"asked": "yes"}}}), "w")
            .unwrap();
        answer(&request.body, |object, _| object["spec"]["port"] = known["metadata"]["name"].clone())
    });
    let made = json!({"apiVersion": "example.com/v2", "kind": "Boat", "metadata": {"generateName": "a-"}, "spec": {}});
    let (code, told) = send(&sandbox, "POST", OTHERS, &made).await;
    assert_eq!((code, &told["spec"]["port"]), (201, &json!("default")), "{told}");
    let name = told["metadata"]["name"].as_str().unwrap();
    let kept = sandbox.get(&format!("{BOATS}/{name}")).unwrap();
    assert_eq!(kept["metadata"]["uid"], told["metadata"]["uid"]);
    assert_eq!(webhook.requests().len(), 2, "there and back, and no more");
    assert_eq!(sandbox.get("/api/v1/namespaces/default").unwrap()["metadata"]["labels"]["asked"], "yes");
}

#[tokio::test]
async fn a_list_asks_for_each_object_once() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = scene(folder.path());
    webhook.rule(|request| answer(&request.body, |_, _| {}));
    for number in 0..50 {
        sandbox.apply(BOATS, &boat(&format!("a-{number}")), "m").unwrap();
    }
    let (code, told) = send(&sandbox, "GET", OTHERS, &json!({})).await;
    assert_eq!((code, told["items"].as_array().unwrap().len()), (200, 50));
    assert!(told["items"].as_array().unwrap().iter().all(|item| item["apiVersion"] == "example.com/v2"));
    assert_eq!(webhook.requests().len(), 50);
    let (code, _) = send(&sandbox, "DELETE", OTHERS, &json!({})).await;
    assert_eq!(code, 200);
    assert_eq!(sandbox.get(BOATS).unwrap()["items"], json!([]));
    // A request that needs no webhook calls none; and nobody waits for one in this process.
    webhook.requests();
    sandbox.apply(BOATS, &boat("b"), "m").unwrap();
    assert_eq!(webhook.requests().len(), 0);
    assert_eq!(sandbox.get(&format!("{OTHERS}/b")), None);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_silent_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = scene(folder.path());
    webhook.rule(|_| Reply::Silence);
    sandbox.apply(BOATS, &boat("a"), "m").unwrap();
    let asked_at = tokio::time::Instant::now();
    let (code, told) = send(&sandbox, "GET", &format!("{OTHERS}/a"), &json!({})).await;
    assert!((30..32).contains(&asked_at.elapsed().as_secs()), "{:?}", asked_at.elapsed());
    let message = told["message"].as_str().unwrap();
    assert_eq!(code, 500);
    assert!(
        message.starts_with("conversion webhook for example.com/v1, Kind=Boat failed: Post"),
        "{message}"
    );
    assert!(message.ends_with("context deadline exceeded"), "{message}");
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ADMITS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A sandbox in which a webhook admits everything.
fn admitting(folder: &std::path::Path) -> (Sandbox, GitServer) {
    let (sandbox, webhook, client) = beside(folder, "admit");
    let rule =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*", "*"]});
    let hook = json!({"name": "all.example.com", "clientConfig": client, "rules": [rule],
        "sideEffects": "None", "admissionReviewVersions": ["v1"]});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "all"}, "webhooks": [hook]});
    sandbox.apply(ADMITS, &configuration, "m").unwrap();
    (sandbox, webhook)
}

/// The answer of a webhook that lets everything pass, and counts the characters of `data.k`.
fn counted(body: &[u8]) -> Reply {
    let review: Value = serde_json::from_slice(body).unwrap();
    let request = &review["request"];
    let length = request["object"]["data"]["k"].as_str().unwrap_or_default().len().to_string();
    let patch = json!([{"op": "add", "path": "/data/length", "value": length}]).to_string();
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if request["operation"] != "DELETE" {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = base64::engine::general_purpose::STANDARD.encode(patch).into();
    }
    let answer =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Reply::Raw(200, "Content-Type: application/json\r\n", answer.to_string().into_bytes())
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "one", "l": "one"}})
}

#[tokio::test]
async fn what_moves_while_it_is_admitted_is_admitted_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = admitting(folder.path());
    sandbox.apply(MAPS, &map("a"), "m").unwrap();
    assert_eq!(webhook.requests().len(), 0, "nobody waits for a webhook in this process");
    let place = format!("{MAPS}/a");
    let (thinks, calls) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (begun, counting) = (thinks.clone(), calls.clone());
    webhook.rule(move |request| {
        if counting.fetch_add(1, Ordering::SeqCst) == 0 {
            begun.notify_one();
            std::thread::sleep(Duration::from_millis(400));
        }
        counted(&request.body)
    });
    let meanwhile = async {
        thinks.notified().await;
        let asked_at = Instant::now();
        sandbox.merge(&place, &json!({"data": {"k": "seven"}}), "k").unwrap();
        assert!(asked_at.elapsed() < under_load(Duration::from_millis(200)), "{:?}", asked_at.elapsed());
    };
    let patch = json!({"data": {"l": "two"}});
    let ((code, told), ()) = tokio::join!(send(&sandbox, "PATCH", &place, &patch), meanwhile);
    assert_eq!((code, &told["data"]), (200, &json!({"k": "seven", "l": "two", "length": "5"})));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    let kept = sandbox.get(&place).unwrap();
    assert_eq!(kept, told);
    let owned = kept["metadata"]["managedFields"].to_string();
    assert!(owned.contains("f:l") && !owned.contains("f:length"), "{owned}");
    let (code, again) = send(&sandbox, "PATCH", &place, &patch).await;
    assert_eq!((code, again), (200, told), "it is asked again, and nothing changes");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_webhook_that_refuses_everything_can_be_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = admitting(folder.path());
    webhook.rule(|_| Reply::Raw(503, "", Vec::new()));
    let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}});
    let (code, told) = send(&sandbox, "POST", MAPS, &made).await;
    let message = told["message"].as_str().unwrap();
    assert_eq!(code, 500);
    assert!(
        message.starts_with("Internal error occurred: failed calling webhook \"all.example.com\":"),
        "{message}"
    );
    assert_eq!(sandbox.get(MAPS).unwrap()["items"], json!([]));
    let asked = sandbox.clone();
    webhook.rule(move |request| {
        asked.apply(MAPS, &map("seen"), "w").unwrap();
        counted(&request.body)
    });
    let (code, told) = send(&sandbox, "POST", MAPS, &map("b")).await;
    assert_eq!((code, &told["data"]["length"]), (201, &json!("3")));
    assert_eq!(sandbox.get(&format!("{MAPS}/seen")).unwrap()["data"], map("seen")["data"]);
    webhook.requests();
    let (code, _) = send(&sandbox, "DELETE", &format!("{ADMITS}/all"), &json!({})).await;
    assert_eq!(code, 200);
    let (code, told) = send(&sandbox, "POST", MAPS, &made).await;
    assert_eq!((code, &told["data"]), (201, &Value::Null));
    assert_eq!(webhook.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_has_the_time_that_its_configuration_gives_it() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, webhook) = admitting(folder.path());
    webhook.rule(|_| Reply::Silence);
    let asked_at = tokio::time::Instant::now();
    let (code, told) = send(&sandbox, "POST", MAPS, &map("a")).await;
    assert!((10..12).contains(&asked_at.elapsed().as_secs()), "{:?}", asked_at.elapsed());
    assert_eq!(code, 500);
    assert!(told["message"].as_str().unwrap().ends_with("context deadline exceeded"), "{told}");
    let open =
        json!({"webhooks": [{"name": "all.example.com", "failurePolicy": "Ignore", "timeoutSeconds": 2}]});
    let path = format!("{ADMITS}/all");
    let mut configuration = sandbox.get(&path).unwrap();
    for field in ["failurePolicy", "timeoutSeconds"] {
        configuration["webhooks"][0][field] = open["webhooks"][0][field].clone();
    }
    sandbox.merge(&path, &json!({"webhooks": configuration["webhooks"]}), "m").unwrap();
    let asked_at = tokio::time::Instant::now();
    let (code, told) = send(&sandbox, "POST", MAPS, &map("a")).await;
    assert!((2..4).contains(&asked_at.elapsed().as_secs()), "{:?}", asked_at.elapsed());
    assert_eq!((code, &told["data"]), (201, &map("a")["data"]));
}
