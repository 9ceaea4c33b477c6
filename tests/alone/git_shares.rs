//! Two hundred Syncs of a team on hosts that say nothing: the commits of another team are applied as if they were not there.
//!
//! Compares times, and therefore runs while no other test does.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, PostParams};
use serde_json::json;

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::scene::{Scene, config_map};

/// Number of Syncs on silent hosts, and number of these hosts.
const SYNCS: usize = 200;
const HOSTS: usize = 40;

/// The most that a commit may take longer than alone.
const SLACK: Duration = Duration::from_secs(1);

/// The longest of a few commits, from the wish to look until the cluster has them.
async fn longest(scene: &Scene, phase: &str) -> Duration {
    let mut longest = Duration::ZERO;
    for round in 0..5 {
        let value = format!("{phase}-{round}");
        let files = [("a.json".to_owned(), config_map("a", &value))];
        scene.push(&files);
        let begun = Instant::now();
        scene.nudge("shop", &value).await;
        scene.until_values(&files, "the commit is applied").await;
        longest = longest.max(begun.elapsed());
    }
    longest
}

/// Returns the number of requests that wait for a worker, as the daemon counts them.
fn waiting(daemon: &Daemon) -> Option<usize> {
    let metrics = daemon.get("/metrics")?;
    metrics.lines().find_map(|line| line.strip_prefix("moorline_git_waiting "))?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_hosts_of_one_team_do_not_delay_another() {
    let Some(scene) = Scene::new("team-a").await else { return };
    let other = scene.plane.namespace("team-b").await;
    let daemon = scene.daemon_with(&["--leader-election=false", "--daemon-identity-namespaces", &other]);
    let commit = scene.push(&[("a.json".to_owned(), config_map("a", "0"))]);
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let alone = longest(&scene, "alone").await;
    // The kernel accepts, and nobody reads.
    let silent: Vec<TcpListener> = (0..HOSTS).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
    let syncs: Api<DynamicObject> = {
        let kind = kube::core::GroupVersionKind::gvk("moorline.dev", "v1alpha1", "Sync");
        Api::namespaced_with(scene.admin.clone(), &other, &kube::api::ApiResource::from_gvk(&kind))
    };
    for at in 0..SYNCS {
        let port = silent[at % HOSTS].local_addr().unwrap().port();
        let sync = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": format!("silent-{at}"), "namespace": other},
            "spec": {"source": {"git": {"url": format!("http://127.0.0.1:{port}/{at}.git")}}, "interval": "5s"},
        });
        syncs.create(&PostParams::default(), &serde_json::from_value(sync).unwrap()).await.unwrap();
    }
    until("all that may ask are asking, and the others wait", async || {
        waiting(&daemon).filter(|count| *count > SYNCS / 2)
    })
    .await;
    let beside = longest(&scene, "beside").await;
    println!("a commit took at most {alone:?} alone, and {beside:?} beside {SYNCS} Syncs on silent hosts");
    assert!(beside < alone + SLACK, "{beside:?}, and {alone:?} alone");
    until("a status says why nobody has asked yet", async || {
        let all = syncs.list(&Default::default()).await.unwrap().items;
        let says = |sync: &DynamicObject| {
            let ready = sync.data.pointer("/status/conditions/0")?;
            (ready["reason"] == "RepositoryWaiting").then(|| ready["message"].to_string())
        };
        let message = all.iter().find_map(says)?;
        assert!(message.contains("was not contacted yet: it "), "{message}");
        Some(())
    })
    .await;
}
