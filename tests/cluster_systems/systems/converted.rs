//! A kind with two versions and a webhook between them: what a daemon does while the webhook is absent, there, and dying,
//! when Git goes over to the other version, and when a version goes that is still stored.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::conversion::Conversion;
use super::life::{DEFINITIONS, clear, files};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::under_load::under_load;

/// The pause between two attempts is a second in these tests; more than some of them is none of ours.
const SOON: Duration = Duration::from_secs(10);

/// A Database of v1beta1.
fn early(name: &str, replicas: u8) -> (String, String) {
    database(name, "v1beta1", "dbType", replicas)
}

/// A Database of v1.
fn late(name: &str, replicas: u8) -> (String, String) {
    database(name, "v1", "engine", replicas)
}

fn database(name: &str, version: &str, field: &str, replicas: u8) -> (String, String) {
    let spec = json!({field: "postgresql", "version": "14.5", "replicas": replicas});
    let body = json!({"apiVersion": format!("example.com/{version}"), "kind": "Database",
        "metadata": {"name": name}, "spec": spec});
    (format!("{name}.json"), body.to_string())
}

fn map(value: &str) -> (String, String) {
    ("map.json".to_owned(), config_map("map", value))
}

/// Returns the number of writes to Databases since the mark, and the deletions.
async fn writes(mark: &AuditMark) -> (usize, Vec<String>) {
    let requests = mark.requests().await.by_user(MOORLINE);
    let is_write = |verb: &str| matches!(verb, "patch" | "create" | "update");
    let databases = requests.as_slice().iter().filter(|it| it.resource == "databases" && is_write(&it.verb));
    let deleted = requests.as_slice().iter().filter(|it| it.verb == "delete").map(|it| it.name.clone());
    (databases.count(), deleted.collect())
}

/// Waits for the status of an object.
async fn until_told(scene: &Scene, object: &str, reason: &str) -> String {
    until(&format!("{reason} is said of {object}"), async || {
        let problems = scene.status("shop", "/problems").await;
        let is_meant = |it: &&Value| {
            it["reason"] == reason && it["object"].as_str().unwrap_or_default().ends_with(object)
        };
        let problem = problems.as_array()?.iter().find(is_meant)?;
        problem["message"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn a_conversion_webhook_comes_and_goes() {
    let Some(scene) = Scene::new("conversion").await else { return };
    let mut conversion = Conversion::absent(&scene);
    let definition = files("database").into_iter().find(|(path, _)| path.ends_with("definition.yaml"));
    let definition = ("definition.yaml".to_owned(), conversion.in_place(&definition.unwrap().1));
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&[definition, early("orders", 3), early("legacy", 3), map("one")]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;

    // Nobody converts: the kind waits, and nothing else does.
    let message = until_told(&scene, "/orders", "ConversionFailed").await;
    assert!(message.contains("conversion webhook for example.com/v1beta1, Kind=Database"), "{message}");
    assert!(message.contains(&conversion.url()), "{message}");
    scene.until_values(&[map("one")], "everything else goes on").await;
    scene.until_reason("shop", "ApplyFailed").await;
    assert_eq!(writes(&mark).await.1, Vec::<String>::new());
    let begun = Instant::now();
    conversion.comes();
    scene.until_ready("shop", &commit).await;
    assert!(begun.elapsed() < under_load(SOON), "{:?}", begun.elapsed());
    scene.settle().await;
    scene.assert_calm("with a webhook that converts").await;

    // Git goes over to the newer version: that is one write.
    let mark = AuditMark::set(&scene.plane).await;
    conversion.asked();
    let commit = scene.push(&[late("orders", 3)]);
    scene.nudge("shop", "over").await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    scene.assert_calm("after the version").await;
    assert_eq!(writes(&mark).await, (1, Vec::new()));
    println!("asked {} times for one commit that goes over to another version", conversion.asked());

    // It dies while a commit changes an object and takes another away.
    let mark = AuditMark::set(&scene.plane).await;
    conversion.dies();
    scene.push(&[early("legacy", 4), map("two"), ("more.json".to_owned(), config_map("more", "one"))]);
    scene.remove(&["orders.json"]);
    scene.nudge("shop", "dying").await;
    let message = until_told(&scene, "/legacy", "ConversionFailed").await;
    assert!(message.contains("the webhook is configured in spec.conversion"), "{message}");
    until("everything else goes on", async || {
        let values = scene.values().await;
        (values.len() == 2 && values["map"] == "two").then_some(())
    })
    .await;
    assert_eq!(writes(&mark).await.1, Vec::<String>::new());
    let begun = Instant::now();
    conversion.comes();
    let uri = format!("/apis/example.com/v1/namespaces/{}/databases/legacy", scene.namespace);
    until("it is applied", async || {
        let live = send_request(&scene.admin, "GET", &uri, Value::Null).await.ok()?;
        (live["spec"]["replicas"] == 4).then_some(())
    })
    .await;
    assert!(begun.elapsed() < under_load(SOON), "{:?}", begun.elapsed());
    let asked = until("the other one waits for a person", async || {
        scene.status("shop", "/approval/hash").await.as_str().map(str::to_owned)
    });
    asked.await;
    scene.delete_sync("shop").await;
    clear(&scene, &[&format!("{DEFINITIONS}/databases.example.com")]).await;
}

/// A definition of ledgers with these versions: name, whether it is stored.
fn ledgers(versions: &[(&str, bool)]) -> (String, String) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |(name, stored): &(&str, bool)| json!({"name": name, "served": true, "storage": stored, "schema": schema});
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ledgers.stored.example.com"},
        "spec": {"group": "stored.example.com", "scope": "Namespaced",
            "names": {"plural": "ledgers", "singular": "ledger", "kind": "Ledger"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()},
    });
    ("definition.json".to_owned(), body.to_string())
}

#[tokio::test]
async fn a_version_that_is_still_stored_is_not_taken_away() {
    let Some(scene) = Scene::new("stored").await else { return };
    let ledger = json!({"apiVersion": "stored.example.com/v1", "kind": "Ledger", "metadata": {"name": "a"}});
    let ledger = ("ledger.json".to_owned(), ledger.to_string());
    let commit = scene.push(&[ledgers(&[("v1beta1", true), ("v1", false)]), ledger, map("one")]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let commit = scene.push(&[ledgers(&[("v1beta1", false), ("v1", true)])]);
    scene.nudge("shop", "stored").await;
    scene.until_ready("shop", &commit).await;

    scene.push(&[ledgers(&[("v1", true)]), map("two")]);
    scene.nudge("shop", "less").await;
    let message = until_told(&scene, "ledgers.stored.example.com", "VersionStored").await;
    assert!(message.contains("v1beta1"), "{message}");
    assert!(message.contains("status.storedVersions"), "{message}");
    scene.until_values(&[map("two")], "everything else goes on").await;
    scene.assert_calm("with what cannot be written").await;
    let uri = format!("{DEFINITIONS}/ledgers.stored.example.com");
    let live = send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap();
    assert_eq!(live["spec"]["versions"].as_array().unwrap().len(), 2);

    // A person has written every object again, and says so.
    let migrated = json!({"status": {"storedVersions": ["v1"]}});
    send_request(&scene.admin, "PATCH", &format!("{uri}/status"), migrated).await.unwrap();
    let commit = scene.push(&[map("three")]);
    scene.nudge("shop", "migrated").await;
    scene.until_ready("shop", &commit).await;
    let live = send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap();
    assert_eq!(live["spec"]["versions"].as_array().unwrap().len(), 1);
    scene.delete_sync("shop").await;
    send_request(&scene.admin, "DELETE", &uri, Value::Null).await.unwrap();
}
