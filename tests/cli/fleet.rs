//! `moorline status --fleet` over the contexts of a kubeconfig.
//!
//! In: two sandboxes and a context that nobody answers. Out: the tables, the JSON and exit codes.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use moorline_test_support::command::{Folder, Outcome};
use moorline_test_support::places;
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

use crate::mcp::sandboxed::Sandboxed;

const REVISION: &str = "main@1f0c2d3a4b5c6d7e8f901f0c2d3a4b5c6d7e8f90";

fn status(reason: &str, revision: &str, drifted: u64) -> Value {
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        })
    };
    let drift = if drifted > 0 { "True" } else { "False" };
    json!({
        "conditions": [condition("Ready", "True", reason), condition("Drifted", drift, "Drifted")],
        "revision": {"applied": revision},
        "objects": {"desired": 4, "applied": 4, "held": 0, "failed": 0, "pruned": 0, "drifted": drifted},
    })
}

/// A kubeconfig with a context for each address.
fn kubeconfig(folder: &Folder, contexts: &[(&str, &str)]) -> String {
    let named = |key: &str, value: &dyn Fn(&str, &str) -> Value| -> Vec<Value> {
        contexts.iter().map(|(name, server)| json!({"name": name, key: value(name, server)})).collect()
    };
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": contexts[0].0,
        "clusters": named("cluster", &|_, server| json!({"server": server})),
        "contexts": named("context", &|name, _| json!({"cluster": name, "user": "me"})),
        "users": [{"name": "me", "user": {}}],
    });
    let path = folder.0.join("contexts.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn contexts_are_shown_side_by_side_and_one_that_fails_is_a_row() {
    let [east, west] = ["fleet-east", "fleet-west"].map(Sandboxed::start);
    let other = REVISION.replace("1f0c2d3a", "9b1e7c55");
    east.sync("web", status("Applied", REVISION, 0));
    east.sync("cart", status("Applied", REVISION, 0));
    west.sync("web", status("Applied", &other, 3));
    // Nothing listens there any more.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", silent.local_addr().unwrap());
    drop(silent);
    let folder = Folder::new("fleet", &[]);
    let (one, two) = (east.server(), west.server());
    let config = kubeconfig(&folder, &[("east", &one), ("west", &two), ("gone", &gone)]);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(places::moorline());
        command.args(["status", "--fleet"]).args(arguments).env("KUBECONFIG", &config);
        Outcome::of(&command.output().unwrap())
    };

    let both = run(&["--context", "east,west"]);
    let lines: Vec<&str> = both.data.lines().collect();
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        words[0],
        ["CONTEXT", "CLUSTER", "STATE", "VERSION", "SYNCS", "STATES", "MESSAGE"],
        "{both:?}"
    );
    assert_eq!((words[1][0], words[1][2], words[1][4]), ("east", "Reachable", "2"), "{both:?}");
    assert_eq!((words[2][0], words[2][2], words[2][4]), ("west", "Reachable", "1"), "{both:?}");
    assert_eq!(words[4], ["SYNC", "SAME", "east", "west"], "{both:?}");
    assert!(lines[5].starts_with("team/cart  yes ") && lines[5].ends_with(" -"), "{both:?}");
    assert!(lines[6].starts_with("team/web ") && words[6][1] == "no", "{both:?}");
    assert!(
        lines[6].contains("1f0c2d3a Synced") && lines[6].ends_with("9b1e7c55 OutOfSync, 3 drifted"),
        "{both:?}"
    );

    let all = run(&["--contexts", "all", "-o", "json"]);
    let data: Value = serde_json::from_str(&all.data).unwrap();
    let row = &data["clusters"][2];
    assert_eq!(
        (row["context"].as_str(), row["state"].as_str()),
        (Some("gone"), Some("Unreachable")),
        "{row}"
    );
    assert!(row["message"].as_str().unwrap().contains("cannot be reached"), "{row}");
    assert_eq!((all.code, data["syncs"][1]["sameRevision"].as_bool()), (1, Some(false)), "{all:?}");
    assert_eq!(data["syncs"][0]["cells"].as_array().unwrap().len(), 1);

    let unknown = run(&["--context", "west,nowhere,west"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.data.contains("there is no context nowhere"), "{unknown:?}");
    let rows = unknown.data.lines().filter(|line| line.starts_with("west "));
    assert_eq!(rows.count(), 1, "{unknown:?}");
    for wrong in [&["--contexts", "some"][..], &["--watch"], &["--context", "east", "--contexts", "all"]] {
        assert_eq!(run(wrong).code, 64, "{wrong:?}");
    }
    // The current context alone has no column for contexts, and names in one cluster are a list.
    let alone = run(&[]);
    assert!(alone.data.starts_with("CLUSTER "), "{alone:?}");
    assert!(alone.data.contains("SYNC       CLUSTER  REVISION"), "{alone:?}");
    assert_eq!(run(&["-o", "name"]).code, 1);
}

#[test]
fn a_context_that_hangs_is_a_row_and_delays_no_other() {
    let east = Sandboxed::start("fleet-beside");
    east.sync("web", status("Applied", REVISION, 0));
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = format!("http://{}", silent.local_addr().unwrap());
    let folder = Folder::new("fleet-hangs", &[]);
    let config = kubeconfig(&folder, &[("hangs", &hangs), ("east", &east.server())]);
    let begun = Instant::now();
    let mut command = Command::new(places::moorline());
    command.args(["status", "--fleet", "--contexts", "all"]).env("KUBECONFIG", &config);
    let found = Outcome::of(&command.output().unwrap());
    assert!(begun.elapsed() < under_load(Duration::from_secs(60)), "{:?}", begun.elapsed());
    let line = |name: &str| found.data.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(
        line("hangs ").contains("Unreachable") && line("hangs ").contains("no answer within"),
        "{found:?}"
    );
    assert!(line("east ").contains("Reachable"), "{found:?}");
    assert_eq!(found.code, 1);
}
