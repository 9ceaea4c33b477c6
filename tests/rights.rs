//! A daemon with few rights, or none yet, on a real API server.

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::audit::AuditMark;
use support::control_plane::shared;
use support::credentials::{ADMIN, TENANT};
use support::daemon::{Daemon, until};
use support::git_server::{GitServer, Work};
use support::rest::{ask, grant, rule, user};

fn config_map(name: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
        .to_string()
}

#[tokio::test]
async fn rights_in_one_namespace_are_enough_and_are_seen_when_they_are_given() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("tenant").await;
    let admin = plane.client(ADMIN).await;
    let root = tempfile::tempdir().expect("a folder");
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let files: Vec<(String, String)> =
        (0..5).map(|at| (format!("{at}.json"), config_map(&format!("m{at}"), "one"))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    work.push(&files);
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "1", "--leader-election=false"];
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let value = async |name: &str| {
        let live = ask(&admin, "GET", &format!("{maps}/{name}"), &Value::Null).await.ok()?;
        live["data"]["key"].as_str().map(str::to_owned)
    };

    let mark = AuditMark::set(&plane).await;
    let daemon = Daemon::start_as(&plane, TENANT, root.path(), &arguments);
    let write = format!("get, create, patch and delete configmaps in {namespace}");
    until("all that is missing is told", async || {
        let log = daemon.log();
        log.lines()
            .any(|line| line.contains(&write) && line.contains("list and watch configmaps"))
            .then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let asked = mark.requests().await.of(TENANT).only(|it| it.resource == "configmaps").tally();
    let count = |verb: &str| asked.get(&format!("{verb} configmaps")).copied().unwrap_or_default();
    assert!(count("patch") <= 25 && count("watch") <= 12 && count("list") <= 2, "{asked:?}");

    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    grant(&admin, &namespace, &user(TENANT), &json!([rule("", &["configmaps"], &verbs)])).await;
    let granted = Instant::now();
    for at in 0..5 {
        until("it is applied", async || value(&format!("m{at}")).await).await;
    }
    assert!(granted.elapsed() < Duration::from_secs(10), "{:?}", granted.elapsed());

    tokio::time::sleep(Duration::from_secs(5)).await;
    let edit = json!({"data": {"key": "by hand"}});
    ask(&admin, "PATCH", &format!("{maps}/m0?fieldManager=kubectl-edit"), &edit).await.expect("an edit");
    until("the edit is repaired", async || value("m0").await.filter(|value| value == "one")).await;
    work.git(&["rm", "-q", "1.json"]);
    work.push(&[]);
    until("what is gone from Git is deleted", async || value("m1").await.is_none().then_some(())).await;

    tokio::time::sleep(Duration::from_secs(1)).await;
    let mark = AuditMark::set(&plane).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let asked = mark.requests().await.of(TENANT).tally();
    assert!(asked.keys().all(|what| what.starts_with("watch ")), "at rest nothing is asked: {asked:?}");
    drop(daemon);
}
