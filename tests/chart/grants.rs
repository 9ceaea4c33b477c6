//! The value `rbac.grant`: without it a Sync says what it lacks, and with it the Sync is ready soon, without a restart.

use std::time::{Duration, Instant};

use super::release::Release;
use crate::support::daemon::until;
use crate::support::scene::config_map;
use crate::until_ready;

/// From the grant to a ready Sync.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_sync_says_what_it_lacks_and_is_ready_when_it_is_granted() {
    let Some(release) = Release::new("grants").await else { return };
    let commit = release.push("clusters/one/a.json", &config_map("a", "one"));
    let url = format!("sync.url={}", release.url());
    let values = ["--set", &url, "--set", "sync.path=clusters/one"];
    let with = |verb, more: &[&str]| {
        let answer = release.helm(&[&[verb, "moorline", release.chart()], &values[..], more].concat());
        answer.unwrap_or_else(|error| panic!("helm {verb}: {error}"))
    };
    let notes = with("install", &[]);
    assert!(notes.contains("may not touch any object yet"), "{notes}");
    let daemon = release.daemon().await;
    let path = release.path("moorline.dev/v1alpha1", "syncs/default");
    until("the Sync says what it lacks", async || {
        let status = release.get(&path).await?["status"].take();
        let condition = &status["conditions"][0];
        let message = condition["message"].as_str().unwrap_or_default();
        (condition["reason"] == "RightsMissing" && message.contains("configmaps")).then_some(())
    })
    .await;
    with("upgrade", &["--set", "rbac.grant=namespaceAdmin"]);
    let granted = Instant::now();
    until_ready(&release, "default", &commit).await;
    assert!(granted.elapsed() < SOON, "{:?}", granted.elapsed());
    drop(daemon);
    release.end().await;
}
