//! Measures a fleet in which some clusters freeze, have a wrong certificate or refuse connections:
//! the time of the others, beside a fleet without the broken ones.
//!
//! In: the number of clusters, of which 15 in 100 are broken, and of alternating runs.
//! Out: a table.

use std::time::Duration;

use super::arguments::Arguments;
use super::clusters::Manner;
use super::hub::Hub;
use crate::print_bar;

/// Limit of the time of a run.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Limit of the time beside broken clusters, as a multiple.
const BAR: f64 = 1.1;
/// Manners of the broken clusters.
const BROKEN: [Manner; 6] = [
    Manner::Freezes,
    Manner::WrongAuthority,
    Manner::Refuses,
    Manner::Hangs,
    Manner::WrongAuthority,
    Manner::Refuses,
];

/// Seconds of the first sync, and of a commit that changes all objects.
type Times = [f64; 2];

/// Prints the table.
pub(crate) async fn measure(arguments: &Arguments) {
    let Arguments { clusters, syncs, rounds, .. } = *arguments;
    let broken = (clusters * 15).div_ceil(100);
    let alone = vec![Manner::Serves; clusters - broken];
    let beside = manners(clusters, broken);
    let (mut alone_times, mut beside_times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        alone_times.push(run(&alone, syncs).await);
        beside_times.push(run(&beside, syncs).await);
    }
    println!("\n| {} clusters beside {broken} broken ones | measured | bar | |", clusters - broken);
    println!("|---|---|---|---|");
    for (at, what) in ["all applied", "a commit for all"].into_iter().enumerate() {
        let (alone, beside) = (median(&alone_times, at), median(&beside_times, at));
        let ratio = beside / alone;
        let measured = format!(
            "{beside:.2} s, alone {alone:.2} s: {ratio:.2} times ({}; alone {})",
            list(&beside_times, at),
            list(&alone_times, at)
        );
        print_bar(what, &measured, &format!("{BAR} times"), ratio < BAR);
    }
}

/// Spreads the broken clusters among the others.
fn manners(clusters: usize, broken: usize) -> Vec<Manner> {
    let mut manners = vec![Manner::Serves; clusters];
    for number in 0..broken {
        manners[number * clusters / broken] = BROKEN[number % BROKEN.len()];
    }
    manners
}

async fn run(manners: &[Manner], syncs: usize) -> Times {
    let (mut hub, commit) = Hub::new(manners, syncs).await;
    hub.start_daemon();
    let first = hub.until_applied(&commit, PATIENCE).await;
    hub.check("one");
    // The broken ones are tried again and again meanwhile.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let commit = hub.commit("two");
    hub.nudge("two");
    let change = hub.until_applied(&commit, PATIENCE).await;
    hub.check("two");
    [first.wall, change.wall].map(|time| time.as_secs_f64())
}

fn median(times: &[Times], at: usize) -> f64 {
    let mut sorted: Vec<f64> = times.iter().map(|times| times[at]).collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn list(times: &[Times], at: usize) -> String {
    let times: Vec<String> = times.iter().map(|times| format!("{:.2}", times[at])).collect();
    times.join(", ")
}
