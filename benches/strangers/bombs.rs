//! A hundred normal Syncs beside every malicious repository, all on one daemon with the memory
//! limit of the chart.
//!
//! In: nothing.
//! Out: a row. The daemon runs in a cgroup with the chart's limit if one can be created.

use std::time::{Duration, Instant};

use serde_json::json;

use super::place::{SharedDaemon, TEAM, map};
use super::row::{Check, Row, percentile, rounded};
use moorline_test_support::bombs::{self, Bomb};
use moorline_test_support::cgroup::{Cgroup, peak_mib};
use moorline_test_support::git_server::Reply;

/// Memory limit of the daemon in the chart.
const MEMORY_MIB: u64 = 512;
/// The images set it, too.
const PURGE_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "10");
/// Number of normal Syncs.
const GOOD: usize = 100;
/// Number of their commits that are timed.
const COMMITS: usize = 60;

pub(crate) async fn bombs() -> Row {
    let memory = format!("{MEMORY_MIB}Mi");
    let mut place = SharedDaemon::new(&["--memory", &memory], &[PURGE_DELAY]).await;
    let group = Cgroup::around(place.daemon.running.child.id(), MEMORY_MIB << 20);
    let names: Vec<String> = (0..GOOD).map(|at| format!("good-{at}")).collect();
    let files: Vec<_> = names.iter().map(|name| (format!("{name}/map.json"), map(name, "v0"))).collect();
    place.work.push(&files.iter().map(|(path, text)| (&**path, &**text)).collect::<Vec<_>>());
    let url = place.git.url("repository.git");
    for name in &names {
        place.sync(TEAM, name, &url, json!({"path": name})).await;
    }
    place.commit(&names[0]).await;
    let all = bombs::all();
    let served: Vec<Bomb> = all.iter().map(|(bomb, _)| bomb.clone()).collect();
    place.git.rule(move |request| served.iter().find_map(|bomb| bomb.answer(request)).unwrap_or(Reply::Git));
    for (bomb, _) in &all {
        let url = place.git.url(&bomb.address());
        place.sync(super::place::OTHERS, bomb.name, &url, json!({"timeout": "2m"})).await;
    }
    let mut times = Vec::new();
    for at in 0..COMMITS {
        // All malicious repositories are fetched and rendered again while the normal Syncs work.
        if at % 5 == 0 {
            for (bomb, _) in &all {
                place.trigger_poll(super::place::OTHERS, bomb.name).await;
            }
        }
        times.push(place.commit(&names[(at * 7) % GOOD]).await);
    }
    let begun = Instant::now();
    let mut refused = Vec::new();
    for (bomb, expect) in &all {
        let found = place.status(super::place::OTHERS, bomb.name, "/conditions/0/reason").await;
        refused.push(json!({"bomb": bomb.name, "expected": expect, "reason": found}));
    }
    let lives = place.daemon.running.child.try_wait().is_ok_and(|ended| ended.is_none());
    let peak = peak_mib(place.daemon.running.child.id()).unwrap_or(u64::MAX);
    let more = json!({
        "cgroup": group.is_some(), "bombs": refused, "median": rounded(percentile(&times, 50)),
        "longest": rounded(percentile(&times, 100)), "reading_statuses": rounded(begun.elapsed().as_secs_f64()),
    });
    drop(place);
    // The cgroup can be removed only after its process has ended.
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(group);
    let checks = vec![
        Check { what: "daemon ended", measured: f64::from(u8::from(!lives)), most: 0.0 },
        Check { what: "commits of good Syncs, p95, s", measured: percentile(&times, 95), most: 5.0 },
        Check { what: "peak memory, MiB", measured: peak as f64, most: MEMORY_MIB as f64 * 0.8 },
    ];
    Row { name: "bombs", checks, more }
}
