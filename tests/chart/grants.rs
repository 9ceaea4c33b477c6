//! The value `rbac.grant`: without it a Sync says what it lacks, and with it the Sync is ready soon, without a restart.

use std::path::Path;
use std::time::{Duration, Instant};

use super::programs::{command, find, run};
use super::release::Release;
use crate::support::credentials::ADMIN;
use crate::support::daemon::until;
use crate::support::scene::config_map;
use crate::until_ready;

/// From the grant to a ready Sync.
const SOON: Duration = Duration::from_secs(10);

/// The chart with a Sync and no rights on objects, its notes, and the commit that the Sync is to come to.
fn install(release: &Release) -> (String, String) {
    let commit = release.push("clusters/one/a.json", &config_map("a", "one"));
    let url = format!("sync.url={}", release.url());
    let values = ["--set", &url, "--set", "sync.path=clusters/one"];
    let notes = release.helm(&[&["install", "moorline", release.chart()], &values[..]].concat());
    (notes.unwrap_or_else(|error| panic!("{error}")), commit)
}

async fn until_it_lacks(release: &Release) {
    let path = release.path("moorline.dev/v1alpha1", "syncs/default");
    until("the Sync says what it lacks", async || {
        let status = release.get(&path).await?["status"].take();
        let condition = &status["conditions"][0];
        let message = condition["message"].as_str().unwrap_or_default();
        (condition["reason"] == "RightsMissing" && message.contains("configmaps")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_sync_says_what_it_lacks_and_is_ready_when_it_is_granted() {
    let Some(release) = Release::new("grants").await else { return };
    let (notes, commit) = install(&release);
    assert!(notes.contains("may not touch any object yet"), "{notes}");
    let daemon = release.daemon().await;
    until_it_lacks(&release).await;
    let granted =
        ["upgrade", "moorline", release.chart(), "--reuse-values", "--set", "rbac.grant=namespaceAdmin"];
    release.helm(&granted).expect("it is granted");
    let granted = Instant::now();
    until_ready(&release, "default", &commit).await;
    assert!(granted.elapsed() < SOON, "{:?}", granted.elapsed());
    drop(daemon);
    release.end().await;
}

#[tokio::test]
async fn the_command_of_the_notes_grants_what_the_sync_lacks() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("notes").await else { return };
    let (notes, commit) = install(&release);
    let next = format!("moorline rbac --sync default -n {} | kubectl apply -f -", release.namespace);
    assert!(notes.contains(&next), "{notes}");
    let daemon = release.daemon().await;
    until_it_lacks(&release).await;
    let kubeconfig = release.plane.kubeconfig_file(ADMIN);
    let mut moorline = command(Path::new(env!("CARGO_BIN_EXE_moorline")));
    moorline.args(["rbac", "--sync", "default", "-n", &release.namespace]);
    let rights = run(moorline.env("KUBECONFIG", &kubeconfig)).unwrap_or_else(|error| panic!("{error}"));
    let file = release.values_file(&rights);
    run(command(&kubectl).args(["apply", "-f", &file]).env("KUBECONFIG", &kubeconfig))
        .unwrap_or_else(|error| panic!("{error}"));
    let granted = Instant::now();
    until_ready(&release, "default", &commit).await;
    assert!(granted.elapsed() < SOON, "{:?}", granted.elapsed());
    drop(daemon);
    release.end().await;
}
