//! Repositories that are made to hurt, served beside a good one by a daemon that has little memory.
//!
//! Each is refused, or read without what nobody needs of it, within seconds; the daemon lives on within its memory, and the good
//! repository is served meanwhile.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::bombs::{self, Bomb};
use support::daemon::{Daemon, until_within};
use support::git_server::Reply;
use support::scene::{Scene, config_map};

/// The memory that the chart gives to the daemon, and the part of it that may be used.
const MEMORY: &str = "512Mi";
const MOST_MIB: u64 = 512 * 8 / 10;

/// The longest until a bomb is refused.
const SOON: Duration = Duration::from_secs(10);

/// The longest until a commit of the neighbour is applied, all bombs being looked at meanwhile. The bar for a machine that does nothing
/// else is five seconds.
const NEIGHBOUR: Duration = Duration::from_secs(15);

/// The longest that anything takes, when a test has failed already.
const PATIENCE: Duration = Duration::from_secs(90);

/// The most memory that the daemon ever had, in MiB.
fn peak(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.running.child.id()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the daemon lives");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// A group of processes that may have only so much memory; where none can be made, the peak alone is looked at.
struct Cgroup(PathBuf);

impl Cgroup {
    fn around(daemon: &Daemon) -> Option<Self> {
        let pid = daemon.running.child.id().to_string();
        let versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.into_iter().find_map(|(root, bound)| {
            let group = Self(Path::new(root).join(format!("moorline-bombs-{pid}")));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(bound), (512_u64 << 20).to_string()).ok()?;
            std::fs::write(group.0.join("cgroup.procs"), &pid).ok()?;
            Some(group)
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // While a process is in it, it stays.
        let end = Instant::now() + Duration::from_secs(5);
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The number of arenas of the allocator, as the image sets it.
fn arenas() -> PathBuf {
    let file =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Dockerfile")).expect("the file");
    let set: Vec<&str> = file.lines().filter_map(|line| line.strip_prefix("ENV MALLOC_ARENA_MAX=")).collect();
    assert!(set.len() == 2 && set[0] == set[1], "both images set it: {set:?}");
    set[0].into()
}

/// Each bomb, and the reason that its Sync gives.
fn all() -> Vec<(Bomb, &'static str)> {
    vec![
        (bombs::texts("texts", false), "Applied"),
        (bombs::texts("kustomized-texts", true), "MemoryExceeded"),
        (bombs::paths("paths"), "PathTooLarge"),
        (bombs::generators("generators"), "MemoryExceeded"),
        (bombs::patches("patches"), "MemoryExceeded"),
        (bombs::values("values"), "MemoryExceeded"),
        (bombs::differences("differences", 8000, 24, false), "RepositoryTooLarge"),
        (bombs::differences("chain", 40, 24, true), "RepositoryTooLarge"),
    ]
}

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
    let bombs = all();
    let served = bombs.clone();
    scene
        .git
        .rule(move |request| served.iter().find_map(|(bomb, _)| bomb.answer(request)).unwrap_or(Reply::Git));
    let good: Vec<_> =
        (0..20).map(|at| (format!("g-{at}.json"), config_map(&format!("g-{at}"), "one"))).collect();
    let commit = scene.push(&good);
    let arguments = ["--namespace", &scene.namespace, "--leader-election=false", "--memory", MEMORY];
    let daemon = scene.daemon_in(&scene.proxy, "daemon", &arguments, &[("MALLOC_ARENA_MAX", &arenas())]);
    let group = Cgroup::around(&daemon);
    println!("a cgroup of its own: {}", group.is_some());
    scene.sync("good", json!({})).await;
    scene.until_ready("good", &commit).await;

    let (mut wrong, mut before) = (Vec::new(), peak(&daemon));
    for (bomb, expect) in &bombs {
        let begun = Instant::now();
        let url = scene.git.url(&bomb.address());
        scene.sync(bomb.name, json!({"source": {"git": {"url": url}}, "timeout": "2m"})).await;
        let (reason, took) = told(&scene, bomb.name, begun).await;
        let now = peak(&daemon);
        let message = scene.status(bomb.name, "/conditions/0/message").await;
        println!(
            "{} ({} kB): {reason} in {took:?}, {before} -> {now} MiB: {message}",
            bomb.name,
            bomb.pack.len() / 1000
        );
        if reason != *expect || took > SOON {
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
    assert!(waits.iter().all(|wait| *wait < NEIGHBOUR), "{waits:?}");
    for (bomb, _) in &bombs {
        until_within(PATIENCE, "it was looked at again", async || {
            (scene.status(bomb.name, "/lastHandledRequest").await == "six").then_some(())
        })
        .await;
    }
    let peak = peak(&daemon);
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
