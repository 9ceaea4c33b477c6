//! Objects that cannot be applied now: how often they are sent again, and how their Sync says so.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::under_load::under_load;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

fn boat(group: &str) -> String {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Boat", "metadata": {"name": "a"}}).to_string()
}

#[tokio::test]
async fn an_object_of_another_sync_is_not_sent_again_while_definitions_arrive() {
    let Some(scene) = Scene::new("owned").await else { return };
    let groups: Vec<String> = (0..8).map(|nth| format!("g{nth}.{}.example.com", scene.namespace)).collect();
    let mut files = vec![
        ("one/a.json".to_owned(), config_map("a", "one")),
        ("two/a.json".to_owned(), config_map("a", "two")),
    ];
    files.extend(groups.iter().enumerate().map(|(nth, group)| (format!("two/boat-{nth}.json"), boat(group))));
    let commit = scene.push(&files);
    let _daemon = scene.daemon();
    scene.sync("one", json!({"path": "one", "interval": "1h"})).await;
    scene.until_ready("one", &commit).await;
    scene.sync("two", json!({"path": "two", "interval": "1h"})).await;
    until("it is held", async || {
        let problems = scene.status("two", "/problems").await;
        problems.as_array()?.iter().any(|it| it["reason"] == "OwnedBy").then_some(())
    })
    .await;
    let mark = AuditMark::set(&scene.plane).await;
    for group in &groups {
        send_request(&scene.admin, "POST", DEFINITIONS, definition(group)).await.expect("a definition");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    until("all of them are applied", async || {
        (scene.status("two", "/objects/applied").await == groups.len()).then_some(())
    })
    .await;
    let requests = mark.requests().await.by_user(MOORLINE);
    let sent = requests.filter(|it| it.verb == "patch" && it.resource == "configmaps");
    assert!(sent.as_slice().len() <= 1, "{}", sent.as_slice().len());
    assert_eq!(scene.values().await["a"], "one");

    // The other one releases it: it is taken over at once.
    let at = Instant::now();
    scene.delete_sync("one").await;
    scene.nudge("two", "again").await;
    until("it is taken over", async || (scene.values().await["a"] == "two").then_some(())).await;
    assert!(at.elapsed() < under_load(Duration::from_secs(20)), "{:?}", at.elapsed());
    scene.delete_sync("two").await;
    for group in &groups {
        send_request(&scene.admin, "DELETE", &format!("{DEFINITIONS}/boats.{group}"), Value::Null)
            .await
            .expect("it goes");
    }
}

#[tokio::test]
async fn a_removed_version_is_reported_with_the_served_one() {
    let Some(scene) = Scene::new("removed").await else { return };
    let budget = json!({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    scene.push(&[("a.json".to_owned(), budget.to_string())]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_reason("shop", "ApplyFailed").await;
    let expect = format!(
        "PodDisruptionBudget.policy {}/web: policy/v1beta1 PodDisruptionBudget is not served; the server has policy/v1",
        scene.namespace
    );
    assert_eq!(scene.status("shop", "/conditions/0/message").await, expect);
}

#[tokio::test]
async fn a_kind_that_nobody_serves_is_progress_for_a_moment_only() {
    let Some(scene) = Scene::new("unserved").await else { return };
    scene.push(&[("a.json".to_owned(), boat(&format!("{}.example.com", scene.namespace)))]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    let begun = Instant::now();
    let message = until("it says what it waits for", async || {
        let message = scene.status("shop", "/conditions/0/message").await;
        Some(message.as_str()?.to_owned())
            .filter(|message| message.contains("waits for its CustomResourceDefinition"))
    })
    .await;
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "Progressing", "{message}");
    scene.until_reason("shop", "ObjectsHeld").await;
    let took = begun.elapsed();
    assert!((25..45).contains(&took.as_secs()), "{took:?}");
    assert_eq!(scene.status("shop", "/conditions/0/message").await, message);
}

#[tokio::test]
async fn a_refused_object_is_reported_with_the_time_of_its_next_try() {
    let Some(scene) = Scene::new("nexttry").await else { return };
    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": {"a": 1}}});
    scene.push(&[("a.json".to_owned(), wrong.to_string())]);
    let _daemon = scene.daemon_with(&["--leader-election=false", "--manifest-retry", "20s"]);
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_reason("shop", "ApplyFailed").await;
    let message = async || scene.status("shop", "/conditions/0/message").await.as_str().unwrap().to_owned();
    let next = |message: &str| {
        let (_, at) = message.split_once("; next retry at ").unwrap_or_else(|| panic!("{message}"));
        assert!(at.len() == "14:03:20 UTC".len() && at.ends_with(" UTC"), "{message}");
        at.to_owned()
    };
    tokio::time::sleep(QUIET_TIME).await;
    let first = next(&message().await);
    scene.assert_calm("until the next try").await;
    assert_eq!(next(&message().await), first);
    until("it was tried again", async || (next(&message().await) != first).then_some(())).await;
}
