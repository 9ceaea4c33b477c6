//! A restart after manual edits of ten of many objects: prints the time until they are repaired,
//! the requests on objects in the first minute, and those of ten minutes calculated from it.
//!
//! In: a cluster in sync, without a daemon.
//! Out: a table. Limits: repaired within 5 s of the first list, and at most one request for each
//! 100 unchanged objects.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Ends, PATIENCE, ask, say};

/// Number of edited objects: all but two get another value, one loses a field, one is deleted.
const EDITS: usize = 10;
/// Number of objects to which another manager added a label that Git does not set.
const SUSPECTS: usize = 20;
/// Time in which requests are counted.
const MINUTE: Duration = Duration::from_secs(60);
/// Time of the bar, in minutes; the rest of it is calculated.
const BAR_MINUTES: usize = 10;
/// Minutes in which each object is verified once: the default of `verifyEvery`.
const ROUND_MINUTES: usize = 24 * 60;
/// Limit of the time from the first list to the last repair.
const LIMIT: Duration = Duration::from_secs(5);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Edits objects, starts a daemon, and counts.
pub(super) fn measure(count: usize, (server, listen): (&str, &str), start: impl FnOnce() -> Ends) {
    let numbers: Vec<usize> = (0..EDITS).map(|at| at * (count / EDITS) + 7).collect();
    for (at, number) in numbers.iter().enumerate() {
        edit(server, at, *number);
    }
    for number in (0..SUSPECTS).map(|at| at * (count / SUSPECTS) + 11) {
        let label = json!({"metadata": {"labels": {"theirs": "yes"}}}).to_string();
        ask(server, "PATCH", &format!("{}?fieldManager=robot", path(number)), &label).expect("it answers");
    }
    let begun = Instant::now();
    let daemon = start();
    let mut listed = None;
    let healed = loop {
        if listed.is_none() && requests(listen, &["object", "verify"]) > 0 {
            listed = Some(begun.elapsed());
        }
        if numbers.iter().all(|number| is_healed(server, *number)) {
            break begun.elapsed();
        }
        assert!(begun.elapsed() < PATIENCE, "not all edits are repaired after {PATIENCE:?}");
        std::thread::sleep(LOOK);
    };
    std::thread::sleep(MINUTE.saturating_sub(begun.elapsed()));
    let asked = requests(listen, &["object", "verify"]);
    drop(daemon);
    let first = listed.unwrap_or(healed);
    // The daily round asks for these in the other minutes.
    let expected = asked + (BAR_MINUTES - 1) * count.div_ceil(ROUND_MINUTES);
    println!(
        "| objects | edits | harmless writes | start to first request | start to healed | requests in the first minute, measured | in {BAR_MINUTES} minutes, calculated |"
    );
    println!("|---|---|---|---|---|---|---|");
    println!(
        "| {count} | {EDITS} | {SUSPECTS} | {:.2} s | {:.2} s | {asked} | {expected} |",
        first.as_secs_f64(),
        healed.as_secs_f64()
    );
    say("ten edits repaired within 5 s", healed < LIMIT);
    let is_few = expected <= count / 100 + 2 * EDITS + SUSPECTS;
    say("at most 1 request for each 100 unchanged objects in ten minutes", is_few);
}

fn path(number: usize) -> String {
    format!("/api/v1/namespaces/default/configmaps/item-{number:06}")
}

fn edit(server: &str, at: usize, number: usize) {
    let (method, patch) = match at {
        0 => ("DELETE", Value::Null),
        1 => ("PATCH", json!({"data": {"number": null}})),
        _ => ("PATCH", json!({"data": {"number": "by hand"}})),
    };
    let query = if at == 0 { "" } else { "?fieldManager=kubectl-edit" };
    ask(server, method, &format!("{}{query}", path(number)), &patch.to_string()).expect("it answers");
}

fn is_healed(server: &str, number: usize) -> bool {
    let body = ask(server, "GET", &path(number), "").unwrap_or_default();
    let live: Value = serde_json::from_str(&body).unwrap_or_default();
    live["data"]["number"].as_str() == Some(&*number.to_string())
}

/// Number of requests of these classes, by the metrics of the daemon.
fn requests(listen: &str, classes: &[&str]) -> usize {
    let text = ask(listen, "GET", "/metrics", "").unwrap_or_default();
    let lines = text.lines().filter(|line| {
        let is = |class: &&str| line.contains(&format!("class=\"{class}\""));
        line.starts_with("moorline_requests_total") && classes.iter().any(is)
    });
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}
