//! Cost of the statuses of many objects that change all the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use moorline_test_support::asked::RecordedRequest;
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene};
use moorline_test_support::status::{deployment, report, waiting};
use serde_json::json;

/// Has every Deployment say something else, as a rollout does.
async fn roll(deployments: &Api<DynamicObject>, names: &[String], seen: usize) {
    let status = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
        "conditions": [{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated",
            "message": format!("step {seen}"), "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastUpdateTime": "2026-01-01T00:00:00Z"}]});
    let all = futures::stream::iter(names.iter());
    all.for_each_concurrent(8, |name| report(deployments, name, status.clone())).await;
}

#[tokio::test]
async fn a_thousand_rolling_deployments_cost_a_read_a_second_each_at_most() {
    const MANY: usize = 1_000;
    let Some(scene) = Scene::new("rolling").await else { return };
    let deployments = scene.dynamic("apps", "v1", "Deployment");
    let names: Vec<String> = (0..MANY).map(|at| format!("d-{at:03}")).collect();
    let files: Vec<(String, String)> =
        names.iter().map(|name| deployment(name, "registry.example/web:1", 0)).collect();
    let commit = scene.push(&files);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    until("all are applied", async || {
        scene.status("shop", "/revision/applied").await.as_str()?.ends_with(&commit).then_some(())
    })
    .await;
    scene.proxy.take_requests();
    let (begun, mut rounds) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(10) || rounds < 2 {
        rounds += 1;
        roll(&deployments, &names, rounds).await;
    }
    tokio::time::sleep(QUIET_TIME).await;
    let (asked, took) = (scene.proxy.take_requests(), begun.elapsed().as_secs_f64());
    let is_page = |one: &&RecordedRequest| one.lists() && one.path.ends_with("/deployments");
    let pages = asked.iter().filter(is_page).count();
    let mut reads = BTreeMap::<&str, usize>::new();
    for one in asked.iter().filter(|one| one.method == "GET" && one.path.contains("/deployments/d-")) {
        *reads.entry(&one.path).or_default() += 1;
    }
    // Ten pages are one read of each.
    let most = reads.values().max().copied().unwrap_or_default() as f64 + pages as f64 / 10.0;
    let singles: usize = reads.values().sum();
    println!("{rounds} statuses of each of {MANY} in {took:.1} s: {pages} pages and {singles} single reads");
    // On a machine that is busy too few change within a second to be read together.
    assert!(rounds >= 2 && pages + singles > 0, "they roll, and are read");
    assert!(most <= took + 1.0, "{most} reads of one object in {took:.1} s");
    let statuses =
        asked.iter().filter(|one| one.writes() && one.path.ends_with("/syncs/shop/status")).count();
    assert!(statuses as f64 <= took + 4.0, "{statuses} statuses of the Sync in {took:.1} s");
}
