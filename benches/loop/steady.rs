//! Operations after the first sync: a commit that changes nothing, one that changes an image,
//! manual edits, a prune, and an idle time.
//!
//! In: an environment with everything in sync.
//! Out: a row each. They are measured in this order, because a prune leaves less to measure.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ground::{BenchEnvironment, MOMENT, Window};
use super::settled::now;
use super::tail::{is_about_manifests, is_apply, is_on_objects, is_status, is_status_read};
use super::verdict::{Check, Limit, Row, median, rounded};
use super::workload::{self, EACH};
use moorline_test_support::audit::Request;

/// Time without writes that must pass before a measurement.
const QUIET: Duration = Duration::from_secs(3);
/// Timeout for this: the controllers write a status for each Deployment, twenty a second.
const REST: Duration = Duration::from_secs(600);
/// Time to wait for activity that should not happen.
const AFTERMATH: Duration = Duration::from_secs(2);
/// Duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(30);
/// Number of edited Deployments.
const EDITS: usize = 10;

/// Waits until the controllers have processed the sync.
pub(crate) async fn rest(ground: &mut BenchEnvironment) {
    if !ground.tail.rest(QUIET, REST).await {
        eprintln!("the controllers were still busy after {REST:?}");
    }
}

/// A commit that changes no manifest: from the trigger until the status has it.
pub(crate) async fn same(ground: &mut BenchEnvironment) -> Row {
    let commit = ground.work.push(&[("README.md", &format!("changed at {}", now()))]);
    let window = ground.open();
    let begun = ground.trigger_poll("apps").await;
    let wall = ground.settled.all(1, &commit, MOMENT).await.map(|end| end - begun);
    tokio::time::sleep(AFTERMATH).await;
    let on_objects = count(ground, &window, is_on_objects);
    let checks = vec![
        Check::new("nudge to settled, s", wall, Limit::Under(0.3)),
        Check::new("requests on objects", on_objects, Limit::Is(0.0)),
    ];
    row("same", ground, &window, wall, checks, json!({}))
}

/// A commit that changes one image: from the trigger until the Deployment has it.
pub(crate) async fn change(ground: &mut BenchEnvironment) -> Row {
    let at = ground.applications / 2;
    let (path, text) = workload::with_image(at, "registry.example.com/shop/web:2.0.0");
    let commit = ground.work.push(&[(&path, &text)]);
    let window = ground.open();
    let begun = ground.trigger_poll("apps").await;
    let name = workload::name(at);
    let live = ground.tail.until(window.mark, MOMENT, |seen| applied(seen, &name, begun)).await;
    let settled = ground.settled.all(1, &commit, MOMENT).await.map(|end| rounded(end - begun));
    tokio::time::sleep(AFTERMATH).await;
    let wall = live.map(|live| live - begun);
    let checks = vec![
        Check::new("nudge to live, s", wall, Limit::Under(0.5)),
        Check::new("applies", count(ground, &window, is_apply), Limit::Is(1.0)),
        Check::new("requests on objects", count(ground, &window, is_about_manifests), Limit::Is(1.0)),
    ];
    let looks = count(ground, &window, is_status_read);
    row("change", ground, &window, wall, checks, json!({"settled_seconds": settled, "status_reads": looks}))
}

/// Manual edits of Deployments, one after the other.
pub(crate) async fn repair(ground: &mut BenchEnvironment) -> Row {
    let window = ground.open();
    let mut times = Vec::new();
    for at in 0..EDITS.min(ground.applications) {
        let mark = ground.tail.mark();
        let edit = json!([{
            "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.com/by-hand:1",
        }]);
        ground.edit(&workload::deployment_uri(at), edit).await;
        let name = workload::name(at);
        let pair = ground.tail.until(mark, MOMENT, |seen| {
            let edited = seen.iter().find(|request| {
                request.user != moorline_test_support::credentials::MOORLINE && request.name == name
            })?;
            Some(applied(seen, &name, edited.received)? - edited.answered)
        });
        times.extend(pair.await);
    }
    tokio::time::sleep(AFTERMATH).await;
    let most = most_on_one(ground, &window);
    let all = times.len() == EDITS.min(ground.applications);
    let wall = median(&times).filter(|_| all);
    let checks = vec![
        Check::new("median time to repair, s", wall, Limit::Under(0.2)),
        Check::new("most requests on one object", most, Limit::Is(1.0)),
    ];
    let times: Vec<f64> = times.into_iter().map(rounded).collect();
    let looks = count(ground, &window, is_status_read);
    row("repair", ground, &window, wall, checks, json!({"times": times, "status_reads": looks}))
}

/// A prune of a tenth of the applications.
pub(crate) async fn prune(ground: &mut BenchEnvironment) -> Row {
    let gone = ground.applications / 10;
    let folders: Vec<String> = (ground.applications - gone..ground.applications)
        .map(|at| format!("{}/{}", workload::FOLDER, workload::name(at)))
        .collect();
    let arguments = ["rm", "-q", "-r"].into_iter().chain(folders.iter().map(String::as_str));
    ground.work.git(&arguments.collect::<Vec<_>>());
    let commit = ground.work.push(&[]);
    let window = ground.open();
    let begun = ground.trigger_poll("apps").await;
    let objects = gone * EACH;
    let end = ground.tail.until(window.mark, MOMENT, |seen| {
        let deleted = seen.iter().filter(|request| is_on_objects(request) && request.verb == "delete");
        let times: Vec<f64> = deleted.filter(|it| it.code < 300).map(|request| request.answered).collect();
        (times.len() >= objects).then(|| times.into_iter().fold(0.0, f64::max))
    });
    let wall = end.await.map(|end| end - begun);
    let settled = ground.settled.all(1, &commit, MOMENT).await.map(|end| rounded(end - begun));
    tokio::time::sleep(AFTERMATH).await;
    ground.applications -= gone;
    let checks = vec![Check::new("nudge to the last one gone, s", wall, Limit::Under(2.0))];
    row("prune", ground, &window, wall, checks, json!({"pruned": objects, "settled_seconds": settled}))
}

/// An idle time.
pub(crate) async fn idle(ground: &mut BenchEnvironment, memory: Option<f64>) -> Row {
    let window = ground.open();
    tokio::time::sleep(IDLE).await;
    let (objects, statuses) = (count(ground, &window, is_on_objects), count(ground, &window, is_status));
    let resident = rounded(ground.resident());
    let mut row = row(
        "idle",
        ground,
        &window,
        Some(now() - window.opened),
        vec![],
        json!({"resident_megabytes": resident}),
    );
    row.checks = vec![
        Check::new("requests on objects", objects, Limit::Is(0.0)),
        Check::new("status requests", statuses, Limit::Is(0.0)),
    ];
    if let Some(memory) = memory {
        row.checks.extend([
            Check::new("CPU, s", row.used.cpu, Limit::Under(0.02)),
            Check::new("peak memory since the start, MB", row.used.peak, Limit::Under(memory)),
        ]);
    }
    row
}

/// Time of the response to the daemon's first apply of an object after a given time.
pub(crate) fn applied(seen: &[Request], name: &str, after: f64) -> Option<f64> {
    let applies = seen.iter().filter(|request| is_apply(request) && request.code < 300);
    applies.filter(|it| it.name == name && it.answered > after).map(|request| request.answered).next()
}

/// Number of matching requests.
pub(crate) fn count(ground: &mut BenchEnvironment, window: &Window, sort: impl Fn(&Request) -> bool) -> f64 {
    ground.tail.since(window.mark).iter().filter(|request| sort(request)).count() as f64
}

/// Largest number of requests of the daemon for one object.
pub(crate) fn most_on_one(ground: &mut BenchEnvironment, window: &Window) -> f64 {
    let mut counts = std::collections::BTreeMap::<(String, String), u32>::new();
    for request in ground.tail.since(window.mark).iter().filter(|request| is_about_manifests(request)) {
        *counts.entry((request.resource.clone(), request.name.clone())).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0).into()
}

/// A row with the usage in a window.
pub(crate) fn row(
    name: &'static str,
    ground: &mut BenchEnvironment,
    window: &Window,
    wall: Option<f64>,
    checks: Vec<Check>,
    more: Value,
) -> Row {
    let used = ground.close(window);
    let more = more.as_object().cloned().unwrap_or_else(Map::new);
    Row { name, objects: ground.applications * EACH, wall, used, checks, more }
}
