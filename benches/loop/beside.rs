//! Compares this build, or another binary, with an older one: the same work in alternating runs,
//! with the CPU time and requests of both.
//!
//! In: the two binaries, the number of applications, and the number of rounds.
//! Out: a row. A run is a first sync, a commit that changes nothing, a commit that changes an
//! image, manual edits, a prune and an idle time, on a new control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::first::created;
use super::ground::{BenchEnvironment, Usage};
use super::steady;
use super::verdict::{Check, Limit, Row, median, rounded};
use super::workload::EACH;

/// Limit of the CPU time of this build, as a multiple of the older binary's.
const TIMES_BEFORE: f64 = 1.05;

/// Usage of all runs of one binary.
#[derive(Default)]
struct Runs {
    cpu: Vec<f64>,
    peak: Vec<f64>,
    requests: Vec<BTreeMap<String, usize>>,
}

/// Runs the two binaries in turn; the median of each counts.
pub(crate) async fn beside(before: &Path, after: &Path, applications: usize, rounds: usize) -> Row {
    let (mut old, mut new) = (Runs::default(), Runs::default());
    let mut last = None;
    for _ in 0..rounds.max(1) {
        old.keep(&run(before, applications).await);
        let used = run(after, applications).await;
        new.keep(&used);
        last = Some(used);
    }
    let used = last.unwrap_or_else(|| unreachable!("there is at least one round"));
    let ratio = median(&new.cpu).zip(median(&old.cpu)).map(|(new, old)| new / old);
    let checks = vec![
        Check::new("times the CPU of the older binary", ratio, Limit::AtMost(TIMES_BEFORE)),
        Check::new("writes on objects, more or fewer", writes(&new) - writes(&old), Limit::Is(0.0)),
    ];
    let more = json!({
        "cpu": {"before": old.cpu, "after": new.cpu},
        "peak": {"before": old.peak, "after": new.peak},
        "requests": different(&old, &new),
    });
    let more = more.as_object().cloned().unwrap_or_default();
    Row { name: "beside", objects: applications * EACH, wall: None, used, checks, more }
}

/// One run of one binary, from its start to its idle time.
async fn run(program: &Path, applications: usize) -> Usage {
    let mut ground = BenchEnvironment::with_program(program, applications).await;
    let window = ground.open();
    ground.create_sync().await;
    let done = created(&mut ground, &window).await;
    assert!(done.is_some(), "not everything was created:\n{}", ground.log());
    steady::rest(&mut ground).await;
    steady::same(&mut ground).await;
    steady::change(&mut ground).await;
    steady::rest(&mut ground).await;
    steady::repair(&mut ground).await;
    steady::rest(&mut ground).await;
    steady::prune(&mut ground).await;
    steady::rest(&mut ground).await;
    steady::idle(&mut ground, None).await;
    let mut used = ground.close(&window);
    // The start counts, too: every user pays for a slower start.
    used.cpu = ground.cpu();
    eprintln!("{}: {} s of CPU, {} MB", program.display(), rounded(used.cpu), rounded(used.peak));
    // The next control plane gets all CPUs.
    drop(ground);
    tokio::time::sleep(Duration::from_secs(2)).await;
    used
}

impl Runs {
    fn keep(&mut self, used: &Usage) {
        self.cpu.push(rounded(used.cpu));
        self.peak.push(rounded(used.peak));
        self.requests.push(used.requests.clone());
    }

    /// Median number of requests of one kind.
    fn count(&self, what: &str) -> f64 {
        let counts = self.requests.iter().map(|run| *run.get(what).unwrap_or(&0) as f64);
        median(&counts.collect::<Vec<_>>()).unwrap_or_default()
    }
}

/// Median number of writes to the objects of the applications. Reads of a status vary: they depend
/// on how many changes of the controllers coincide.
fn writes(runs: &Runs) -> f64 {
    let ours = ["configmaps", "services", "serviceaccounts", "deployments.apps"];
    let verbs = ["create", "update", "patch", "delete"];
    verbs
        .iter()
        .flat_map(|verb| ours.map(|kind| format!("{verb} {kind}")))
        .map(|what| runs.count(&what))
        .sum()
}

/// Kinds of requests with different numbers: before, and after.
fn different(old: &Runs, new: &Runs) -> Value {
    let all: BTreeSet<&String> = old.requests.iter().chain(&new.requests).flat_map(BTreeMap::keys).collect();
    let pairs = all.into_iter().map(|what| (what, old.count(what), new.count(what)));
    pairs
        .filter(|(_, old, new)| old != new)
        .map(|(what, old, new)| (what.clone(), json!([old, new])))
        .collect()
}
