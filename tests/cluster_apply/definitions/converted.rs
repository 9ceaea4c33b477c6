//! A kind whose versions a webhook converts: what it makes of an object may change, and no event reports it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::definitions::{DEFINITIONS, applies, send_request};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::authority::Authority;
use moorline_test_support::conversion::answer;
use moorline_test_support::daemon::until;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::scene::{Scene, config_map};

/// Answer of the webhook when it is broken.
const BROKEN: i64 = i64::MIN;

/// Answers a review: boats of v2 have so many sails more than those of v1, which are stored.
fn convert(body: &[u8], more: i64) -> Reply {
    if more == BROKEN {
        return Reply::Raw(500, "", b"broken".to_vec());
    }
    answer(body, |object, version| {
        let sign = if version.ends_with("v2") { 1 } else { -1 };
        if let (Some(sails), true) = (object["spec"]["sails"].as_i64(), object["apiVersion"] != *version) {
            object["spec"]["sails"] = (sails + sign * more).into();
        }
    })
}

#[tokio::test]
async fn what_a_conversion_makes_of_an_object_is_looked_at_with_its_definition() {
    let Some(scene) = Scene::new("converted").await else { return };
    let authority = Authority::new();
    let webhook = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
    let more = Arc::new(AtomicI64::new(0));
    let offset = more.clone();
    webhook.rule(move |request| convert(&request.body, offset.load(Ordering::SeqCst)));
    let group = "converted.example.com";
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"sails": {"type": "integer"}, "colour": {"type": "string"}}}}}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let bundle = base64::engine::general_purpose::STANDARD.encode(&authority.pem);
    let url = format!("https://localhost:{}/convert", webhook.port);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"url": url, "caBundle": bundle}}}},
    });
    send_request(&scene.admin, "POST", DEFINITIONS, &definition).await.unwrap();
    let boat = json!({"apiVersion": format!("{group}/v2"), "kind": "Boat", "metadata": {"name": "a"}, "spec": {"sails": 2}});
    let commit =
        scene.push(&[("a.json".to_owned(), boat.to_string()), ("b.json".to_owned(), config_map("b", "one"))]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let place = format!("/apis/{group}/v2/namespaces/{}/boats/a", scene.namespace);
    let sails =
        async || send_request(&scene.admin, "GET", &place, Value::Null).await.ok()?["spec"]["sails"].as_i64();
    assert_eq!(sails().await, Some(2));
    scene.assert_calm("as it was applied").await;

    // Another release of the webhook: the object is another one without having been written.
    more.store(1, Ordering::SeqCst);
    assert_eq!(sails().await, Some(3));
    scene.assert_calm("nobody was told").await;
    let mark = AuditMark::set(&scene.plane).await;
    let uri = format!("{DEFINITIONS}/boats.{group}");
    send_request(&scene.admin, "PATCH", &uri, json!({"spec": {"names": {"shortNames": ["bt"]}}}))
        .await
        .unwrap();
    until("it is as in Git again", async || sails().await.filter(|sails| *sails == 2)).await;
    scene.settle().await;
    scene.assert_calm("after that").await;
    assert!(applies(&mark).await <= 2, "one apply to look, and one for what it has changed");

    // A webhook that is broken keeps its own kind from being held to Git, and nothing else.
    more.store(BROKEN, Ordering::SeqCst);
    let repainted = boat.to_string().replace("\"sails\":2", "\"sails\":4");
    let commit =
        scene.push(&[("a.json".to_owned(), repainted), ("b.json".to_owned(), config_map("b", "two"))]);
    scene.nudge("shop", "repainted").await;
    scene.until_values(&[("b.json".to_owned(), config_map("b", "two"))], "the rest goes on").await;
    scene.until_reason("shop", "ApplyFailed").await;
    more.store(1, Ordering::SeqCst);
    scene.until_ready("shop", &commit).await;
    assert_eq!(sails().await, Some(4));
    scene.delete_sync("shop").await;
    send_request(&scene.admin, "DELETE", &uri, json!({})).await.unwrap();
}
