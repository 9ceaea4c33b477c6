//! Measures a fleet in which every cluster serves: the first sync of all, an idle time, and a
//! commit that changes every object.
//!
//! In: the numbers of clusters and of Syncs.
//! Out: a table. Fails if an object is not as in Git, or if there is a request that should not be.

use std::time::Duration;

use super::arguments::Arguments;
use super::clusters::Manner;
use super::floor::floor;
use super::hub::{Hub, Used};
use super::requests::{Counts, is_not_upkeep, line, sum};
use crate::print_bar;

/// Limit of the time until all is applied.
const BAR: Duration = Duration::from_secs(15 * 60);
/// Time after which the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(40 * 60);
/// Limit of the memory, in millions of bytes.
const MEMORY: f64 = 700.0;
/// Limit of the idle CPU time, in thousandths of a CPU.
const IDLE: f64 = 20.0;

/// Prints the table of one fleet.
pub(crate) async fn measure(arguments: &Arguments) {
    let (clusters, syncs) = (arguments.clusters, arguments.syncs);
    let count = clusters * syncs;
    println!("\n| {clusters} clusters, {syncs} Syncs of one object each | measured | bar | |");
    println!("|---|---|---|---|");
    let (mut hub, commit) = Hub::new(&vec![Manner::Serves; clusters], syncs).await;
    let floor = floor(&hub).await.as_secs_f64();
    hub.start_daemon();
    let first = hub.until_applied(&commit, PATIENCE).await;
    hub.check("one");
    let is_met = first.wall < BAR;
    print_bar(&format!("all {count} applied"), &of_floor(&first, floor), "15 min", is_met);
    let mut all = first.requests.clone();
    for (what, more) in hub.rest().await {
        *all.entry(what).or_default() += more;
    }
    assert_eq!(sum(&all, is_write_in_clusters), count, "one apply for each object: {}", line(&all));
    print_bar("requests until then", &line(&all), "one apply for each object", true);
    let (now, most) = hub.memory();
    print_bar("memory: at rest, at most", &format!("{now:.0} MB, {most:.0} MB"), "700 MB", most < MEMORY);

    let idle = hub.during(arguments.idle).await;
    let cpu = idle.cpu * 1000.0 / idle.wall.as_secs_f64();
    let measured = format!("{cpu:.1} mCPU over {:.0} s", idle.wall.as_secs_f64());
    print_bar("idle", &measured, "20 mCPU", cpu < IDLE);
    let others = sum(&idle.requests, is_not_upkeep);
    let measured = line(&idle.requests);
    print_bar("requests meanwhile", &measured, "watches and Leases", others == 0);
    assert_eq!(others, 0, "an idle daemon asks nothing");

    commit_for_all(&hub, count, floor).await;
    let (now, most) = hub.memory();
    print_bar("memory: now, at most", &format!("{now:.0} MB, {most:.0} MB"), "700 MB", most < MEMORY);
}

/// Changes every object by one commit.
async fn commit_for_all(hub: &Hub, count: usize, floor: f64) {
    hub.requests.take();
    let commit = hub.commit("two");
    hub.nudge("two");
    let change = hub.until_applied(&commit, PATIENCE).await;
    hub.check("two");
    print_bar("one commit changes all of them", &of_floor(&change, floor), "", true);
    let mut all: Counts = change.requests;
    for (what, more) in hub.rest().await {
        *all.entry(what).or_default() += more;
    }
    all.retain(|what, _| is_not_upkeep(what));
    assert_eq!(sum(&all, is_write_in_clusters), count, "one apply for each object: {}", line(&all));
    let others = sum(&all, |what| what.starts_with("clusters ") && !is_write_in_clusters(what));
    print_bar("requests for it", &line(&all), "one apply for each object, nothing else", others == 0);
}

/// Time and CPU time, as a multiple of the floor.
fn of_floor(used: &Used, floor: f64) -> String {
    let wall = used.wall.as_secs_f64();
    format!("{wall:.1} s, {:.1} times the floor of {floor:.1} s; {:.1} s of CPU", wall / floor, used.cpu)
}

/// True for a request that writes in another cluster than the home cluster.
fn is_write_in_clusters(what: &str) -> bool {
    let verb = what.strip_prefix("clusters ").and_then(|what| what.split(' ').next());
    verb.is_some_and(|verb| ["create", "update", "patch", "delete"].contains(&verb))
}
