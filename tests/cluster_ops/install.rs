//! From the start of the daemon, as the chart of a registry installs it, until the first Sync of the chart's values is ready.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::chart::release::Release;
use moorline_test_support::audit::AuditMark;
use moorline_test_support::daemon::until;
use moorline_test_support::registry::Registry;
use moorline_test_support::under_load::under_load;

/// Time limit that the project sets itself.
const BAR: Duration = Duration::from_secs(5);

/// An application: a Deployment without replicas, a Service, a ServiceAccount and a ConfigMap.
fn application(name: &str) -> Vec<Value> {
    let labels = json!({"app": name});
    let pod = json!({"serviceAccountName": name, "containers": [{"name": "web", "image": "web:1"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let metadata = json!({"name": name});
    vec![
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        }),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": name}}),
    ]
}

/// Fifty objects as files.
fn fifty() -> Vec<(String, String)> {
    let objects = (0..13).flat_map(|number| application(&format!("a-{number}"))).take(50);
    objects.enumerate().map(|(at, object)| (format!("app/{at}.json"), object.to_string())).collect()
}

#[tokio::test]
async fn fifty_objects_are_ready_within_seconds_of_the_daemon_s_start() {
    let (Some(release), Some(registry)) = (Release::new("install").await, Registry::start()) else { return };
    release.without_definition().await;
    let chart = release.publish(&registry);
    let files = fifty();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let commit = release.push_all(&files);
    let url = format!("sync.url={}", release.url());
    let values = ["--set", &url, "--set", "sync.path=app,rbac.grant=clusterAdmin"];
    let install = [&["install", "moorline", &chart, "--plain-http"], &values[..]].concat();
    release.helm(&install).expect("the chart is installed");

    let daemon = release.installed().await;
    let mark = AuditMark::set(&release.plane).await;
    let begun = Instant::now();
    let daemon = daemon.start(&[]);
    let path = release.path("moorline.dev/v1alpha1", "syncs/default");
    let status = until("the first Sync is ready", async || {
        let status = release.get(&path).await?["status"].take();
        (status["conditions"][0]["status"] == "True").then_some(status)
    })
    .await;
    let taken = begun.elapsed();
    assert_eq!(status["conditions"][0]["type"], "Ready");
    assert_eq!(status["objects"]["applied"], 50, "{status}");
    for revision in ["applied", "healthy"] {
        assert!(status["revision"][revision].as_str().is_some_and(|it| it.ends_with(&commit)), "{status}");
    }
    let asked = mark.requests().await.by_user(&release.user()).in_namespace(&release.namespace).tally();
    let written = ["deployments.apps", "services", "serviceaccounts", "configmaps"]
        .map(|resource| asked.get(&format!("patch {resource}")).copied());
    assert_eq!(written, [Some(13), Some(13), Some(12), Some(12)], "each is applied once: {asked:?}");
    // Past libtest: this is a figure of docs/figures.md.
    let _ =
        writeln!(std::io::stderr(), "from the start to Ready, with 50 objects: {:.2} s", taken.as_secs_f64());
    assert!(taken < under_load(BAR), "{taken:?}\n{}", daemon.log());
    drop(daemon);
    release.end().await;
}
