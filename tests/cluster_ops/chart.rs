//! The chart, and the same manifests for people without Helm: rendered by the real helm, and installed on the real
//! control plane, where the daemon runs with the rights that the chart gives it and with no others.

pub(crate) mod admission;
pub(crate) mod alerts;
pub(crate) mod console;
pub(crate) mod console_browser;
pub(crate) mod deploy;
pub(crate) mod grants;
pub(crate) mod local_console;
pub(crate) mod managers;
pub(crate) mod pod;
pub(crate) mod programs;
pub(crate) mod release;
pub(crate) mod rendered;
pub(crate) mod rights;
pub(crate) mod values;
pub(crate) mod verbs;

use std::time::Duration;

use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::config_map;
use programs::text;
use release::Release;

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";

/// Command that applies the definition by hand, over whatever is there.
const BY_HAND: &str = "moorline crd | kubectl apply --server-side --force-conflicts -f -";

/// The object's uid and value.
async fn map(release: &Release, name: &str) -> Option<(Value, Value)> {
    let live = release.get(&release.path("v1", &format!("configmaps/{name}"))).await?;
    Some((live["metadata"]["uid"].clone(), live["data"]["key"].clone()))
}

/// Waits until a Sync is ready at a commit.
pub(crate) async fn until_ready(release: &Release, name: &str, commit: &str) {
    let path = release.path("moorline.dev/v1alpha1", &format!("syncs/{name}"));
    until(&format!("{name} is ready at {commit}"), async || {
        let status = release.get(&path).await?["status"].take();
        let applied = status["revision"]["applied"].as_str()?.ends_with(commit);
        (applied && status["conditions"][0]["status"] == "True").then_some(())
    })
    .await;
}

/// Returns the definition, and the managed fields of it.
async fn definition(release: &Release) -> (Value, Vec<Value>) {
    let mut live = release.get(CRD).await.expect("the definition is there");
    let entries = live["metadata"]["managedFields"].as_array().expect("managers").clone();
    let writers = entries.into_iter().filter(|entry| entry["fieldsV1"]["f:spec"]["f:versions"].is_object());
    (live["spec"].take(), writers.map(|mut entry| entry["manager"].take()).collect())
}

/// Longer than the interval of the Syncs here.
const REST: Duration = Duration::from_secs(6);

/// Waits until nothing is written to a Sync any more, although its repository is asked again.
async fn until_rest(release: &Release, name: &str) {
    let path = release.path("moorline.dev/v1alpha1", &format!("syncs/{name}"));
    let version = async || Some(release.get(&path).await?["metadata"]["resourceVersion"].take());
    until(&format!("{name} is at rest"), async || {
        let before = version().await;
        tokio::time::sleep(REST).await;
        (version().await == before).then_some(())
    })
    .await;
}

/// Takes the release away, and a while later it comes again, with another daemon.
async fn install_again(release: &Release, mut daemon: Daemon, install: &[&str]) -> Daemon {
    release.helm(&["uninstall", "moorline"]).expect("it is uninstalled");
    daemon.terminate();
    drop(daemon);
    let syncs = release.path("moorline.dev/v1alpha1", "syncs");
    let left = release.get(&syncs).await.expect("Syncs are still served");
    let names: Vec<&Value> =
        left["items"].as_array().expect("a list").iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, ["other"]);
    release.helm(&[&["install"], install].concat()).expect("it is installed again");
    release.daemon().await
}

/// A daemon that may not write the definition serves the one that is there, and says how to bring its own.
async fn older_definition_is_served(release: &Release) -> Daemon {
    let before = definition(release).await;
    assert_ne!(before.1, ["moorline-crd"]);
    let commit = release.push("clusters/one/a.json", &config_map("a", "one"));
    let daemon = release.daemon().await;
    until_ready(release, "default", &commit).await;
    until("the log says what to do", async || daemon.log().contains(BY_HAND).then_some(())).await;
    assert!(text("docs/install.md").contains(BY_HAND), "docs/install.md says something else");

    // A Sync of somebody else, whose objects would go with it.
    let commit = release.push("clusters/two/b.json", &config_map("b", "one"));
    let other = release.sync("other", json!({"path": "clusters/two", "deletionPolicy": "Delete"}));
    let syncs = release.path("moorline.dev/v1alpha1", "syncs");
    release.create(&syncs, other).await.expect("another Sync");
    for name in ["default", "other"] {
        until_ready(release, name, &commit).await;
    }
    // The server drops a part of the status that this definition does not have, which is not written again and again.
    tokio::join!(until_rest(release, "default"), until_rest(release, "other"));
    assert_eq!(definition(release).await, before);
    daemon
}

/// The field of a Sync that the older definition does not have does what it is for.
async fn newer_field_counts(release: &Release) {
    let path = release.path("v1", "configmaps/a");
    let by_hand = json!({"data": {"key": "by hand", "left": "by hand"}});
    send_request(&release.admin, "PATCH", &path, by_hand).await.expect("an edit");
    let left = until("what is not left to others is as in Git", async || {
        let mut live = release.get(&path).await?;
        (live["data"]["key"] == "one").then(|| live["data"]["left"].take())
    })
    .await;
    assert_eq!(left, "by hand");
}

#[tokio::test]
async fn no_object_of_any_sync_is_deleted_whatever_becomes_of_the_release() {
    let Some(release) = Release::new("release").await else { return };
    release.without_definition().await;
    let older = release.older_chart();
    let url = format!("sync.url={}", release.url());
    let values =
        ["--set", &url, "--set", "sync.path=clusters/one,rbac.grant=namespaceAdmin,sync.spec.interval=5s"];

    let install = [&["install", "moorline", &older], &values[..]].concat();
    let install = [&install[..], &["--set", "rbac.updateDefinition=false"]].concat();
    let notes = release.helm(&install).expect("the chart is installed");
    let next = format!("kubectl wait --for=condition=Ready sync/default -n {}", release.namespace);
    assert!(notes.contains(&next), "{notes}");
    until("Pod Security lets the pod in", async || {
        let pods = release.get(&release.path("v1", "pods")).await?;
        (!pods["items"].as_array()?.is_empty()).then_some(())
    })
    .await;
    let mark = AuditMark::set(&release.plane).await;
    let mut daemon = older_definition_is_served(&release).await;
    let [first, second] = [map(&release, "a").await, map(&release, "b").await];
    let (first, second) = (first.expect("the object is there"), second.expect("the object is there"));

    let upgrade = [&["upgrade", "moorline", release.chart()], &values[..]].concat();
    release.helm(&[&upgrade[..], &["--set", "rbac.updateDefinition=true"]].concat()).expect("it is upgraded");
    daemon.terminate();
    drop(daemon);
    daemon = release.daemon().await;
    let own = moorline::api::definition().expect("the definition");
    until("the role lets the daemon bring its definition", async || {
        let (live, managers) = definition(&release).await;
        (live["versions"] == own["spec"]["versions"] && managers == ["moorline-crd"]).then_some(())
    })
    .await;
    let field = r#"sync.spec.ignoreFields=[{"target": {"kind": "ConfigMap"}, "paths": ["/data/left"]}]"#;
    let commit = release.push("clusters/one/c.json", &config_map("c", "one"));
    let with_field = ["--set", "settings.logLevel=debug", "--set-json", field];
    release.helm(&[&upgrade[..], &with_field].concat()).expect("the Sync uses the new definition");
    until_ready(&release, "default", &commit).await;
    newer_field_counts(&release).await;

    daemon = install_again(&release, daemon, &[&["moorline", release.chart()], &values[..]].concat()).await;
    // Helm 4 would stop at the definition, which is another one than the chart's.
    let install = [&["moorline", &older, "--skip-crds"], &values[..]].concat();
    daemon = install_again(&release, daemon, &install).await;
    assert_eq!(definition(&release).await.0["versions"], own["spec"]["versions"]);
    let commit = release.push("clusters/one/a.json", &config_map("a", "two"));
    until_ready(&release, "default", &commit).await;
    until_ready(&release, "other", &commit).await;
    assert_eq!(map(&release, "a").await, Some((first.0, json!("two"))));
    assert_eq!(map(&release, "b").await, Some(second));
    assert!(map(&release, "c").await.is_some());
    let deletes = mark.requests().await.by_user(&release.user()).filter(|it| it.verb.starts_with("delete"));
    assert!(deletes.as_slice().is_empty(), "{:?}", deletes.as_slice());
    drop(daemon);
    release.end().await;
}
