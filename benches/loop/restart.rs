//! A restart after manual edits of ten objects, with a commit right after it.
//!
//! In: an environment with everything in sync.
//! Out: a row.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use super::ground::{BenchEnvironment, MOMENT};
use super::steady::{applied, most_on_one, row};
use super::tail::is_apply;
use super::verdict::{Check, Limit, Row, rounded};
use super::workload::{self, EACH};

/// Number of edited objects.
const EDITS: usize = 10;
/// Number of these that lose a field instead of getting another value.
const REMOVALS: usize = 2;
/// Time in which requests on objects that nobody edited are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Stops the daemon, edits objects, starts it, and pushes a commit.
pub(crate) async fn restart(ground: &mut BenchEnvironment) -> Row {
    let objects = ground.applications * EACH;
    let stopped = ground.stop_daemon();
    let edited = edit(ground).await;
    let before = ground.last_written().await;
    // Not one of the edited objects.
    let changed = ground.applications / 2 + 1;
    let (path, text) = workload::with_image(changed, "registry.example.com/shop/web:3.0.0");
    let started = super::settled::now();
    let mark = ground.tail.mark();
    ground.start_daemon().await;
    let window = ground.open();
    // The first repair is done when the commit is pushed.
    let repairing = ground.tail.until(mark, MOMENT, |seen| seen.iter().any(is_apply).then_some(())).await;
    let commit = ground.work.push(&[(&path, &text)]);
    let nudged = ground.trigger_poll("apps").await;
    let name = workload::name(changed);
    let live = ground.tail.until(mark, MOMENT, |seen| applied(seen, &name, nudged)).await;
    let live = live.map(|live| live - nudged);
    let settled = ground.settled.all(1, &commit, MOMENT).await.map(|end| rounded(end - nudged));
    tokio::time::sleep(MINUTE).await;
    let own = workload::deployment_uri(changed);
    let unchanged = asked_about(ground, mark).into_iter().filter(|uri| *uri != own && !edited.contains(uri));
    let unchanged = unchanged.count();
    let after = ground.last_written().await;
    let last_healed = last_apply(ground, mark, &edited).map(|last| last - started);
    let written = written(&before, &after);
    let healed = written.intersection(&edited).count();
    let others = written.iter().filter(|uri| **uri != own && !edited.contains(*uri)).count();
    let most = most_on_one(ground, &window);
    let checks = vec![
        Check::new("edited objects healed", healed as f64, Limit::Is(edited.len() as f64)),
        Check::new("writes on others", others as f64, Limit::Is(0.0)),
        Check::new(
            "unchanged objects asked about, of 100",
            unchanged as f64 * 100.0 / objects as f64,
            Limit::AtMost(1.0),
        ),
        Check::new("most requests on one object", most, Limit::AtMost(1.0)),
        Check::new("nudge to live, s", live, Limit::Under(1.0)),
    ];
    let more = json!({
        "stop_seconds": rounded(stopped),
        "start_to_last_healed_seconds": last_healed.map(rounded),
        "unchanged_asked_about": unchanged,
        "repairing_when_pushed": repairing.is_some(),
        "settled_seconds": settled,
    });
    row("restart", ground, &window, last_healed, checks, more)
}

/// Edits objects all over the set, and returns their paths.
async fn edit(ground: &BenchEnvironment) -> BTreeSet<String> {
    let mut edited = BTreeSet::new();
    let step = ground.applications / EDITS;
    for at in 0..EDITS {
        let application = at * step;
        let (uri, operations) = if at < EDITS - REMOVALS {
            let path = "/spec/template/spec/containers/0/image";
            let value = "example.com/by-hand:1";
            (workload::deployment_uri(application), json!([{"op": "replace", "path": path, "value": value}]))
        } else if at < EDITS - 1 {
            (workload::config_map_uri(application), json!([{"op": "remove", "path": "/data/region"}]))
        } else {
            let path = "/spec/template/spec/containers/0/env/1";
            (workload::deployment_uri(application), json!([{"op": "remove", "path": path}]))
        };
        ground.edit(&uri, operations).await;
        edited.insert(uri);
    }
    edited
}

/// Objects that the daemon applied since the mark.
fn asked_about(ground: &mut BenchEnvironment, mark: usize) -> BTreeSet<String> {
    let seen = ground.tail.since(mark);
    seen.iter()
        .filter(|it| is_apply(it))
        .map(|it| it.uri.split('?').next().unwrap_or_default().to_owned())
        .collect()
}

/// Time at which the last edited object was applied; `None` if one was not.
fn last_apply(ground: &mut BenchEnvironment, mark: usize, edited: &BTreeSet<String>) -> Option<f64> {
    let mut times = BTreeMap::new();
    for request in ground.tail.since(mark).iter().filter(|request| is_apply(request) && request.code < 300) {
        let uri = request.uri.split('?').next().unwrap_or_default();
        if edited.contains(uri) {
            times.entry(uri).or_insert(request.answered);
        }
    }
    (times.len() == edited.len()).then(|| times.into_values().fold(0.0, f64::max))
}

/// Objects whose last write by the daemon has changed.
fn written(
    before: &BTreeMap<String, Option<String>>,
    after: &BTreeMap<String, Option<String>>,
) -> BTreeSet<String> {
    after.iter().filter(|(uri, time)| before.get(*uri) != Some(time)).map(|(uri, _)| uri.clone()).collect()
}
