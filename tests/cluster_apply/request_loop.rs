//! The whole way on a real API server: a commit is applied, an edit repaired, a removal pruned, and a restart costs
//! no request on an object.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::control_plane::shared;
use moorline_test_support::credentials::{ADMIN, MOORLINE};
use moorline_test_support::daemon::{Daemon, install, until};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::under_load::under_load;

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
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "1", "--leader-election=false"];
    let moorline = |requests: moorline_test_support::audit::Requests| {
        requests.by_user(MOORLINE).in_namespace(&namespace).tally()
    };

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
    assert!(daemon.terminate() < under_load(Duration::from_secs(10)));
    let restarted = Daemon::start(&plane, root.path(), &arguments);
    until("the daemon has looked", async || {
        restarted.log().contains("judged the objects by their managedFields").then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(moorline(mark.requests().await), tally([]), "a restart");
    assert_eq!(maps.get("a").await.unwrap().metadata.resource_version, before);
    drop(restarted);
}

fn sync(name: &str, namespace: &str, spec: serde_json::Value) -> DynamicObject {
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "spec": spec,
        "metadata": {"name": name, "namespace": namespace},
    });
    serde_json::from_value(sync).unwrap()
}

fn syncs() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("moorline.dev", "v1alpha1", "Sync"))
}

#[tokio::test]
async fn a_sync_becomes_ready_and_says_so_once() {
    let Some(plane) = shared() else { return };
    install(&plane).await;
    let namespace = plane.namespace("sync").await;
    let admin = plane.client(ADMIN).await;
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), &namespace);
    let api: Api<DynamicObject> = Api::namespaced_with(admin, &namespace, &syncs());
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let first = work.push(&[("a.json", &config_map("a", "one"))]);
    let arguments = ["--namespace", &namespace, "--leader-election=false"];
    let daemon = Daemon::start(&plane, root.path(), &arguments);

    let mark = AuditMark::set(&plane).await;
    let spec = json!({"source": {"git": {"url": server.url("repository.git")}}});
    api.create(&PostParams::default(), &sync("shop", &namespace, spec)).await.unwrap();
    let applied = async |revision: &str| {
        let sync = api.get("shop").await.unwrap();
        let applied = sync.data.pointer("/status/revision/applied")?.as_str()?.to_owned();
        applied.ends_with(revision).then_some(sync)
    };
    let settled = until("the first commit is applied", async || applied(&first).await).await;
    assert_eq!(settled.data.pointer("/status/conditions/0/type").unwrap(), "Ready");
    assert_eq!(settled.data.pointer("/status/conditions/0/status").unwrap(), "True");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let requests = mark.requests().await.by_user(MOORLINE).in_namespace(&namespace);
    // The first status names the revision before its first object is written, the second one says that it is applied.
    let expect = tally([
        ("create events.events.k8s.io", 1),
        ("patch configmaps", 1),
        ("update syncs.moorline.dev/status", 2),
    ]);
    assert_eq!(requests.tally(), expect);

    let mark = AuditMark::set(&plane).await;
    let second = work.push(&[("README", "nothing that is read")]);
    let nudge = json!({"metadata": {"annotations": {"moorline.dev/requested-at": "now"}}});
    api.patch("shop", &PatchParams::default(), &Patch::Merge(&nudge)).await.unwrap();
    let settled = until("the second commit is applied", async || applied(&second).await).await;
    assert_eq!(settled.data.pointer("/status/lastHandledRequest").unwrap(), "now");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let requests = mark.requests().await.by_user(MOORLINE).in_namespace(&namespace);
    assert_eq!(requests.tally(), tally([("update syncs.moorline.dev/status", 1)]));

    api.delete("shop", &DeleteParams::default()).await.unwrap();
    until("the Sync is gone", async || api.get_opt("shop").await.unwrap().is_none().then_some(())).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(maps.get_opt("a").await.unwrap().is_some(), "a Sync that is deleted leaves its objects");
    drop(daemon);
}
