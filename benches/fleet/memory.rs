//! Measures the memory of an idle Sync: two fleets of the same clusters, one with more Syncs.
//!
//! In: the number of clusters.
//! Out: a table. The memory of the daemon at rest, and the difference for each Sync.

use std::time::Duration;

use super::arguments::Arguments;
use super::clusters::Manner;
use super::hub::Hub;
use crate::print_bar;

/// Syncs of each cluster, in both fleets.
const SYNCS: [usize; 2] = [50, 200];
/// Time after which the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// Time in which idle connections end and the allocator returns memory.
const SETTLES: Duration = Duration::from_secs(50);
/// 700 MB for 50,000 Syncs, in bytes.
const BAR: f64 = 14_000.0;

/// Prints the table of both fleets.
pub(crate) async fn measure(arguments: &Arguments) {
    let clusters = arguments.clusters;
    println!("\n| memory of a Sync, {clusters} clusters | measured | bar | |");
    println!("|---|---|---|---|");
    let mut bytes = Vec::new();
    for syncs in SYNCS {
        let (mut hub, commit) = Hub::new(&vec![Manner::Serves; clusters], syncs).await;
        hub.start_daemon();
        hub.until_applied(&commit, PATIENCE).await;
        hub.rest().await;
        tokio::time::sleep(SETTLES).await;
        let (now, most) = hub.memory();
        print_bar(
            &format!("{} Syncs: at rest, at most", clusters * syncs),
            &format!("{now:.1} MB, {most:.1} MB"),
            "",
            true,
        );
        bytes.push(now * 1e6);
    }
    let each = (bytes[1] - bytes[0]) / (clusters * (SYNCS[1] - SYNCS[0])) as f64;
    print_bar("each of the others", &format!("{:.1} kB", each / 1000.0), "14 kB", each < BAR);
}
