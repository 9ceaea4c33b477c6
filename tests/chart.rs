//! The chart, and the same manifests for people without Helm: rendered by the real helm, and installed on the real
//! control plane, where the daemon runs with the rights that the chart gives it and with no others.

mod support;

mod chart {
    pub(crate) mod admission;
    pub(crate) mod alerts;
    pub(crate) mod deploy;
    pub(crate) mod grants;
    pub(crate) mod pod;
    pub(crate) mod programs;
    pub(crate) mod release;
    pub(crate) mod rendered;
    pub(crate) mod rights;
    pub(crate) mod values;
}

use serde_json::{Value, json};

use chart::release::Release;
use support::daemon::{Daemon, until};
use support::scene::config_map;

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";

/// The object's uid and value.
async fn map(release: &Release, name: &str) -> Option<(Value, Value)> {
    let live = release.get(&release.path("v1", &format!("configmaps/{name}"))).await?;
    Some((live["metadata"]["uid"].clone(), live["data"]["key"].clone()))
}

/// Waits until a Sync is ready at a commit.
async fn until_ready(release: &Release, name: &str, commit: &str) {
    let path = release.path("moorline.dev/v1alpha1", &format!("syncs/{name}"));
    until(&format!("{name} is ready at {commit}"), async || {
        let status = release.get(&path).await?["status"].take();
        let applied = status["revision"]["applied"].as_str()?.ends_with(commit);
        (applied && status["conditions"][0]["status"] == "True").then_some(())
    })
    .await;
}

/// The columns that `kubectl get sync` shows.
async fn columns(release: &Release) -> usize {
    let definition = release.get(CRD).await.expect("the definition is there");
    definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array().expect("columns").len()
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

#[tokio::test]
async fn no_object_of_any_sync_is_deleted_whatever_becomes_of_the_release() {
    let Some(release) = Release::new("release").await else { return };
    release.without_definition().await;
    let older = release.older_chart();
    let commit = release.push("clusters/one/a.json", &config_map("a", "one"));
    let url = format!("sync.url={}", release.url());
    let values =
        ["--set", &url, "--set", "sync.path=clusters/one,rbac.grant=clusterAdmin,sync.spec.interval=5s"];

    let install = [&["install", "moorline", &older], &values[..]].concat();
    let notes = release.helm(&install).expect("the chart is installed");
    let next = format!("kubectl wait --for=condition=Ready sync/default -n {}", release.namespace);
    assert!(notes.contains(&next), "{notes}");
    until("Pod Security lets the pod in", async || {
        let pods = release.get(&release.path("v1", "pods")).await?;
        (!pods["items"].as_array()?.is_empty()).then_some(())
    })
    .await;
    let few = columns(&release).await;
    let mut daemon = release.daemon().await;
    until("the role lets the daemon bring its definition", async || {
        (columns(&release).await == few + 1).then_some(())
    })
    .await;
    until_ready(&release, "default", &commit).await;
    let first = map(&release, "a").await.expect("the object is there");

    // A Sync of somebody else, whose objects would go with it.
    release.push("clusters/two/b.json", &config_map("b", "one"));
    let other = release.sync("other", json!({"path": "clusters/two", "deletionPolicy": "Delete"}));
    let syncs = release.path("moorline.dev/v1alpha1", "syncs");
    release.create(&syncs, other).await.expect("another Sync");
    let second = until("the other Sync's object is there", async || map(&release, "b").await).await;

    let upgrade = [&["upgrade", "moorline", release.chart()], &values[..]].concat();
    release.helm(&[&upgrade[..], &["--set", "settings.logLevel=debug"]].concat()).expect("it is upgraded");
    let commit = release.push("clusters/one/c.json", &config_map("c", "one"));
    until_ready(&release, "default", &commit).await;

    daemon = install_again(&release, daemon, &[&["moorline", release.chart()], &values[..]].concat()).await;
    // Helm 4 would stop at the definition, which is another one than the chart's.
    let install = [&["moorline", &older, "--skip-crds"], &values[..]].concat();
    daemon = install_again(&release, daemon, &install).await;
    assert_eq!(columns(&release).await, few + 1);
    let commit = release.push("clusters/one/a.json", &config_map("a", "two"));
    until_ready(&release, "default", &commit).await;
    until_ready(&release, "other", &commit).await;
    assert_eq!(map(&release, "a").await, Some((first.0, json!("two"))));
    assert_eq!(map(&release, "b").await, Some(second));
    assert!(map(&release, "c").await.is_some());
    drop(daemon);
    release.end().await;
}
