//! The whole way on a real API server: a commit is applied, an edit repaired, a removal pruned, and a restart costs
//! no write.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use support::audit::AuditMark;
use support::control_plane::shared;
use support::credentials::{ADMIN, MOORLINE};
use support::daemon::{Daemon, until};
use support::git_server::{GitServer, Work};

fn config_map(name: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
        .to_string()
}

fn tally<const N: usize>(expect: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expect.into_iter().map(|(what, count)| (what.to_owned(), count)).collect()
}

#[tokio::test]
async fn one_commit_one_edit_one_prune_and_one_restart() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("loop").await;
    let maps: Api<ConfigMap> = Api::namespaced(plane.client(ADMIN).await, &namespace);
    let value = async |name: &str| maps.get_opt(name).await.unwrap()?.data?.remove("key");
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    work.push(&[("a.json", &config_map("a", "one")), ("b.json", &config_map("b", "one"))]);
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "1"];
    let moorline = |requests: support::audit::Requests| requests.of(MOORLINE).within(&namespace).tally();

    let mark = AuditMark::set(&plane).await;
    let mut daemon = Daemon::start(&plane, root.path(), &arguments);
    until("both are there", async || value("a").await.and(value("b").await)).await;
    assert_eq!(moorline(mark.requests().await), tally([("patch configmaps", 2)]), "the first sync");

    let mark = AuditMark::set(&plane).await;
    work.push(&[("a.json", &config_map("a", "two"))]);
    until("the commit is live", async || value("a").await.filter(|value| value == "two")).await;
    assert_eq!(moorline(mark.requests().await), tally([("patch configmaps", 1)]), "a commit");

    let mark = AuditMark::set(&plane).await;
    let edit = json!({"data": {"key": "by hand"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    until("the edit is repaired", async || value("a").await.filter(|value| value == "two")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(moorline(mark.requests().await), tally([("patch configmaps", 1)]), "a repair");

    let mark = AuditMark::set(&plane).await;
    work.git(&["rm", "-q", "b.json"]);
    work.push(&[]);
    until("b is gone", async || value("b").await.is_none().then_some(())).await;
    let expect = tally([("delete configmaps", 1), ("get configmaps", 1)]);
    assert_eq!(moorline(mark.requests().await), expect, "a prune");

    let before = maps.get("a").await.unwrap().metadata.resource_version;
    let mark = AuditMark::set(&plane).await;
    assert!(daemon.terminate() < Duration::from_secs(10));
    let restarted = Daemon::start(&plane, root.path(), &arguments);
    until("the daemon has looked", async || {
        let asked = moorline(mark.requests().await);
        (!asked.is_empty()).then_some(asked)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(moorline(mark.requests().await), tally([("patch configmaps", 1)]), "a restart");
    assert_eq!(maps.get("a").await.unwrap().metadata.resource_version, before);
    drop(restarted);
}
