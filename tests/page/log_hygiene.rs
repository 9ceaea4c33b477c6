//! The log of a daemon: one line at each transition, with the Sync and the object; the rest is counted.

use std::time::Duration;

use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};

/// The lines of a log that warn, or worse. Syncs that other tests have left are served as well, and are not meant.
fn warnings<'a>(scene: &Scene, log: &'a str) -> Vec<&'a str> {
    let own = format!(" sync={}/", scene.namespace);
    let is_meant = |line: &&str| !line.contains(" sync=") || line.contains(&own);
    log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).filter(is_meant).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_logged_once() {
    let Some(scene) = Scene::new("quiet").await else { return };
    scene.push(&[
        ("a.json".to_owned(), config_map("a", "one")),
        ("b.json".to_owned(), config_map("b", "one")),
    ]);
    let account = json!({"metadata": {"name": "tenant"}});
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", scene.namespace);
    send_request(&scene.admin, "POST", &accounts, account).await.expect("an account");
    let daemon = scene.daemon();
    let spec = json!({"serviceAccountName": "tenant", "targetNamespace": "quiet-elsewhere", "createNamespace": true});
    scene.sync("shop", spec).await;
    scene.until_reason("shop", "RightsMissing").await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let log = daemon.log();
    let warned = warnings(&scene, &log);
    let of_rights: Vec<_> = warned.iter().filter(|line| line.contains("RightsMissing")).collect();
    assert_eq!(of_rights.len(), 1, "{log}");
    // The namespace is another state.
    assert!(warned.len() <= 2, "{log}");
    let sync = format!("sync={}/shop", scene.namespace);
    assert!(warned.iter().all(|line| line.contains(&sync)), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_that_is_waited_for_is_no_warning() {
    let Some(scene) = Scene::new("patient").await else { return };
    scene.push(&[("one/a.json".to_owned(), config_map("a", "one"))]);
    let daemon = scene.daemon();
    scene.sync("shop", json!({"path": "one", "dependsOn": [{"name": "base"}]})).await;
    scene.until_reason("shop", "DependencyNotReady").await;
    let line = until("the wait is logged", async || {
        let log = daemon.log();
        log.lines().find(|line| line.contains("reason=\"DependencyNotReady\"")).map(str::to_owned)
    })
    .await;
    assert!(line.contains(" INFO ") && line.contains(&format!("sync={}/shop", scene.namespace)), "{line}");
    let uri = format!("/apis/events.k8s.io/v1/namespaces/{}/events", scene.namespace);
    let types = until("the Event is there", async || {
        let events = send_request(&scene.admin, "GET", &uri, Value::Null).await.ok()?;
        let items = events["items"].as_array()?.clone();
        let of = items.iter().filter(|it| it["reason"] == "DependencyNotReady").map(|it| it["type"].clone());
        Some(of.collect::<Vec<_>>()).filter(|types| !types.is_empty())
    })
    .await;
    assert_eq!(types, ["Normal"]);
    assert_eq!(warnings(&scene, &daemon.log()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_is_logged_with_the_sync_and_the_object() {
    let Some(scene) = Scene::new("failing").await else { return };
    scene.proxy.rule(|asked| match asked.path.ends_with("/configmaps/a") {
        true => Fate::Answer(500, None),
        false => Fate::Pass,
    });
    scene.push(&[("a.json".to_owned(), config_map("a", "one"))]);
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_reason("shop", "ApplyFailed").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let log = daemon.log();
    assert!(!log.contains("kube_client"), "{log}");
    let warned = warnings(&scene, &log);
    let [line] = &warned[..] else { panic!("{log}") };
    let object = format!("object=ConfigMap {}/a", scene.namespace);
    assert!(line.contains(&format!("sync={}/shop", scene.namespace)) && line.contains(&object), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spec_that_is_refused_is_logged_once_with_the_sync() {
    let Some(scene) = Scene::new("refused").await else { return };
    let commit = scene.push(&[("a.json".to_owned(), config_map("a", "one"))]);
    let daemon = scene.daemon();
    let rule = |healthy: &str| json!({"health": {"rules": [{"group": "apps", "kind": "Deployment", "healthy": healthy}], "wait": false}});
    let lines = || warnings(&scene, &daemon.log()).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let sync = format!("sync={}/shop", scene.namespace);
    scene.sync("shop", rule("object.status.replicas >")).await;
    for (times, reason) in ["SpecInvalid", "ValuesMissing"].into_iter().enumerate() {
        scene.until_reason("shop", reason).await;
        let line = until("it is logged", async || lines().get(times).cloned()).await;
        assert!(line.contains(&sync) && line.contains(&format!("reason=\"{reason}\"")), "{line}");
        // The objects stay: the same once more, and a new request.
        scene.nudge("shop", reason).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(lines().len(), times + 1, "{}", daemon.log());
        let mut mended = rule("object.status.replicas > 0");
        mended["render"] = match times {
            0 => json!({"substitute": {"from": [{"kind": "ConfigMap", "name": "gone"}]}}),
            _ => Value::Null,
        };
        scene.patch_sync("shop", json!({"spec": mended})).await;
    }
    scene.until_ready("shop", &commit).await;
    assert_eq!(lines().len(), 2, "{}", daemon.log());
}
