//! The probes of a real daemon: it lives as long as its own loop goes round, no matter who else is silent; and it is ready
//! when it sees Syncs.

use std::time::{Duration, Instant};

use moorline_test_support::credentials::TENANT;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::git_server::Reply;
use moorline_test_support::scene::{Scene, many};
use serde_json::json;

/// Longer than the loop may be silent.
const OUTAGE: Duration = Duration::from_secs(66);

fn answer(daemon: &Daemon, path: &str) -> String {
    let answer = daemon.get(path).unwrap_or_default();
    answer.lines().next().unwrap_or_default().to_owned()
}

async fn until_it_is_ready(daemon: &Daemon) {
    until("it is ready", async || answer(daemon, "/readyz").contains(" 200 ").then_some(())).await;
}

async fn lives_through_an_outage(scene: &Scene, daemon: &Daemon) {
    until_it_is_ready(daemon).await;
    scene.proxy.rule(|_| Fate::Drop);
    scene.proxy.cut_watches();
    scene.git.rule(|_| Reply::Silence);
    let begun = Instant::now();
    while begun.elapsed() < OUTAGE {
        assert_eq!(answer(daemon, "/healthz"), "HTTP/1.1 200 OK", "after {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    scene.git.rule(|_| Reply::Git);
    scene.proxy.heal();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_lives_while_neither_the_cluster_nor_the_repository_answers() {
    let Some(scene) = Scene::new("outage").await else { return };
    let (daemon, _) = scene.applied(&many(2, "one"), json!({"interval": "5s"})).await;
    lives_through_an_outage(&scene, &daemon).await;
    let commit = scene.push(&many(2, "two"));
    scene.nudge("shop", "after the outage").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(answer(&daemon, "/healthz"), "HTTP/1.1 200 OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_may_not_see_syncs_lives_and_is_not_ready() {
    let Some(scene) = Scene::new("blind").await else { return };
    let folder = scene.root.path().join("blind");
    std::fs::create_dir_all(&folder).unwrap();
    let daemon = Daemon::start_as(&scene.plane, TENANT, &folder, &["--leader-election=false"]);
    let told =
        until("it says why", async || daemon.get("/readyz").filter(|told| told.contains("Syncs"))).await;
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("Syncs cannot be listed: "), "{told}");
    assert_eq!(answer(&daemon, "/healthz"), "HTTP/1.1 200 OK");
}
