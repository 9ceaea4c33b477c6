//! Repositories that are made to hurt, served beside a good one by a daemon that has little memory.
//!
//! Each is refused, or read without what nobody needs of it, within seconds; the daemon lives on within its memory, and the good
//! repository is served meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::api::PostParams;
use serde_json::{Value, json};

use moorline_test_support::bombs;
use moorline_test_support::cgroup::{Cgroup, peak_mib};
use moorline_test_support::daemon::until_within;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::git_server::Reply;
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::under_load::under_load;

/// The memory that the chart gives to the daemon, and the part of it that may be used.
const MEMORY: &str = "512Mi";
const MOST_MIB: u64 = 512 * 8 / 10;

/// Environment of the images: the allocator returns freed memory after 10 ms, not after a second.
const PURGE_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "10");

/// The longest until a bomb is refused.
const SOON: Duration = Duration::from_secs(10);

/// The longest until a commit of the neighbour is applied, all bombs being looked at meanwhile. The bar for a machine that does nothing
/// else is five seconds.
const NEIGHBOUR: Duration = Duration::from_secs(15);

/// The longest that anything takes, when a test has failed already.
const PATIENCE: Duration = Duration::from_secs(90);

/// The reason of a Sync once it is ready or says why not, and how long that took.
async fn told(scene: &Scene, name: &str, begun: Instant) -> (Value, Duration) {
    let reason = until_within(PATIENCE, &format!("{name} says something"), async || {
        let found = scene.status(name, "/conditions/0").await;
        let is_final = found["status"] == "True" || found["reason"] != "Progressing";
        (found["reason"].is_string() && is_final).then_some(found["reason"].clone())
    })
    .await;
    (reason, begun.elapsed())
}

#[tokio::test]
async fn a_daemon_with_little_memory_refuses_every_bomb_and_serves_its_neighbours() {
    let Some(scene) = Scene::new("bombs").await else { return };
    let bombs = bombs::all();
    let served = bombs.clone();
    scene
        .git
        .rule(move |request| served.iter().find_map(|(bomb, _)| bomb.answer(request)).unwrap_or(Reply::Git));
    let good: Vec<_> =
        (0..20).map(|at| (format!("g-{at}.json"), config_map(&format!("g-{at}"), "one"))).collect();
    let commit = scene.push(&good);
    let arguments = ["--namespace", &scene.namespace, "--leader-election=false", "--memory", MEMORY];
    let daemon =
        scene.daemon_in(&scene.proxy, "daemon", &arguments, &[(PURGE_DELAY.0, Path::new(PURGE_DELAY.1))]);
    let peak = || peak_mib(daemon.running.child.id()).expect("the daemon lives");
    let group = Cgroup::around(daemon.running.child.id(), 512 << 20);
    println!("a cgroup of its own: {}", group.is_some());
    scene.sync("good", json!({})).await;
    scene.until_ready("good", &commit).await;

    let (mut wrong, mut before) = (Vec::new(), peak());
    for (bomb, expect) in &bombs {
        let begun = Instant::now();
        let url = scene.git.url(&bomb.address());
        scene.sync(bomb.name, json!({"source": {"git": {"url": url}}, "timeout": "2m"})).await;
        let (reason, took) = told(&scene, bomb.name, begun).await;
        let now = peak();
        let message = scene.status(bomb.name, "/conditions/0/message").await;
        println!(
            "{} ({} kB): {reason} in {took:?}, {before} -> {now} MiB: {message}",
            bomb.name,
            bomb.pack.len() / 1000
        );
        if reason != *expect || took > under_load(SOON) {
            wrong.push(format!("{}: {reason} in {took:?}: {message}", bomb.name));
        }
        before = now;
    }

    let mut waits = Vec::new();
    for value in ["two", "three", "four", "five", "six"] {
        let begun = Instant::now();
        for (bomb, _) in &bombs {
            scene.nudge(bomb.name, value).await;
        }
        let changed: Vec<_> =
            good.iter().map(|(path, text)| (path.clone(), text.replace("one", value))).collect();
        let commit = scene.push(&changed);
        scene.nudge("good", value).await;
        scene.until_ready("good", &commit).await;
        waits.push(begun.elapsed());
    }
    println!("the neighbour's commits: {waits:?}");
    assert!(waits.iter().all(|wait| *wait < under_load(NEIGHBOUR)), "{waits:?}");
    for (bomb, _) in &bombs {
        until_within(PATIENCE, "it was looked at again", async || {
            (scene.status(bomb.name, "/lastHandledRequest").await == "six").then_some(())
        })
        .await;
    }
    let peak = peak();
    println!("peak: {peak} MiB");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(peak <= MOST_MIB, "{peak} MiB of {MOST_MIB}");
    for (bomb, _) in &bombs {
        scene.delete_sync(bomb.name).await;
    }
    scene.delete_sync("good").await;
    drop(daemon);
    drop(group);
}

/// So many objects of this many bytes under a path.
fn large(path: &str, count: usize, bytes: usize) -> Vec<(String, String)> {
    let text = "x".repeat(bytes);
    (0..count)
        .map(|at| (format!("{path}/{path}-{at}.json"), config_map(&format!("{path}-{at}"), &text)))
        .collect()
}

/// Of 96 MiB, 19.2 MiB are for what is kept: the objects of either Sync fit, and not those of both. After a restart the one that had
/// no room comes first.
#[tokio::test]
async fn what_a_kept_revision_needs_is_reserved_before_others_render() {
    let Some(scene) = Scene::new("reserved").await else { return };
    let values =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values"}, "data": {"A": "a"}});
    let maps = scene.maps();
    maps.create(&PostParams::default(), &serde_json::from_value(values).unwrap()).await.unwrap();
    let mut files = large("good", 13, 800_000);
    files.push(("greedy/small.json".to_owned(), config_map("small", "one")));
    let first = scene.push(&files);
    let arguments = ["--namespace", &scene.namespace, "--leader-election=false", "--memory", "96Mi"];
    let daemon = scene.daemon_in(&scene.proxy, "daemon", &arguments, &[]);
    let from = json!({"from": [{"kind": "ConfigMap", "name": "values"}]});
    scene.sync("good", json!({"path": "good", "render": {"substitute": from}})).await;
    scene.sync("greedy", json!({"path": "greedy"})).await;
    for name in ["good", "greedy"] {
        scene.until_ready(name, &first).await;
    }
    let bytes = scene.status("good", "/revision/held/bytes").await.as_u64().unwrap();
    assert!((10_400_000..10_500_000).contains(&bytes), "{bytes}");
    // Its next commit takes the place of this one, although both do not fit beside each other.
    let next = scene.push(&[("good/good-0.json".to_owned(), config_map("good-0", &"y".repeat(800_000)))]);
    for name in ["good", "greedy"] {
        scene.nudge(name, "next").await;
        scene.until_ready(name, &next).await;
    }
    let newest = scene.push(&large("greedy", 13, 800_000));
    scene.nudge("greedy", "first").await;
    scene.until_reason("greedy", "MemoryBusy").await;
    drop(daemon);

    // The variables of the good Sync come late, so that the greedy one renders first.
    scene.edit("good-0", "by hand").await;
    let is_late =
        |asked: &RecordedRequest| asked.method == "GET" && asked.path.ends_with("/configmaps/values");
    scene.proxy.rule(move |asked| match is_late(asked) {
        true => Fate::Delay(Duration::from_secs(4)),
        false => Fate::Pass,
    });
    let _daemon = scene.daemon_in(&scene.proxy, "daemon", &arguments, &[]);
    until_within(PATIENCE, "the good Sync repairs what it keeps", async || {
        (scene.values().await.get("good-0")?.len() == 800_000).then_some(())
    })
    .await;
    scene.until_ready("good", &newest).await;
    let greedy = scene.status("greedy", "/conditions/0").await;
    assert_eq!((&greedy["status"], &greedy["reason"]), (&json!("False"), &json!("MemoryBusy")), "{greedy}");
    assert!(!scene.values().await.contains_key("greedy-0"));

    // Memory that is not kept any more is free for others.
    scene.delete_sync("good").await;
    scene.nudge("greedy", "second").await;
    scene.until_ready("greedy", &newest).await;
    scene.delete_sync("greedy").await;
}
