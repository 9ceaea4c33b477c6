//! Rules for fences: the crates and side effects that only certain modules may use.

use super::paths::{Kind, Path, paths};
use super::source::Source;
use super::table::{self, Row};

/// Paths, and the only modules that may use them.
struct Fence {
    paths: &'static [&'static str],
    modules: &'static [&'static str],
}

/// Fences inside the packages that have the dependency; where only one crate has it, such as `git2`,
/// Cargo is the fence.
const FENCES: [Fence; 5] = [
    Fence { paths: &["notify"], modules: &["git", "settings_watch"] },
    // The crate api defines the resource type and needs the derive macro.
    Fence { paths: &["kube"], modules: &["api", "cluster", "sandbox"] },
    Fence {
        paths: &["kube::Api", "kube::Client", "kube::api", "kube::client", "kube::runtime"],
        modules: &["cluster", "sandbox"],
    },
    Fence { paths: &["axum", "hyper::server", "hyper_util::server"], modules: &["serve", "sandbox"] },
    Fence { paths: &["anyhow"], modules: &["cli", "main"] },
];

/// Side effects that no pure module may use: files, network, clock, logs and locks.
const IMPURE: [&str; 17] = [
    "futures",
    "log",
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::process",
    "std::sync::Condvar",
    "std::sync::Mutex",
    "std::sync::RwLock",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio",
    "tracing",
];

const IMPURE_MACROS: [&str; 5] = ["dbg", "eprint", "eprintln", "print", "println"];

/// The only file that may contain unsafe code.
const UNSAFE: &str = "crates/yaml/src/parser.rs";

/// Finds fenced paths in other modules, and fenced names that `pub use` re-exports.
pub(crate) fn outside_their_modules(source: &Source) -> Vec<(usize, String)> {
    if !source.is_program() {
        return Vec::new();
    }
    let own = Row::of(&source.module()).map_or("lib", |row| row.module);
    let mut found = Vec::new();
    for path in paths(source) {
        for fence in &FENCES {
            let Some(fenced) = fence.paths.iter().find(|fenced| names(&path, fenced)) else { continue };
            if !fence.modules.contains(&own) {
                found.push((path.line, format!("{fenced} belongs to {}", fence.modules.join(" and "))));
            } else if path.kind == Kind::PubUse {
                found.push((path.line, format!("`pub use` carries {fenced} past its fence")));
            }
        }
    }
    found
}

/// Finds side effects in pure modules.
pub(crate) fn impure(source: &Source) -> Vec<(usize, String)> {
    let pure = Row::of(&source.module()).is_none_or(|row| row.kind == table::Kind::Pure);
    if !pure || !source.is_program() {
        return Vec::new();
    }
    let tokens = source.tokens.iter().filter(|token| !source.is_test(token.line));
    let waits = tokens.filter(|token| matches!(token.text.as_str(), "async" | "await"));
    let mut found: Vec<_> =
        waits.map(|token| (token.line, format!("`{}` in a pure module", token.text))).collect();
    for path in paths(source) {
        let last = path.segments.last().map_or("", String::as_str);
        let clock = path.segments.len() > 1 && last == "now" && path.kind == Kind::Plain;
        let prints = path.kind == Kind::Macro && IMPURE_MACROS.contains(&last);
        if clock || prints || IMPURE.iter().any(|impure| names(&path, impure)) {
            found.push((path.line, format!("`{}` in a pure module", path.segments.join("::"))));
        }
    }
    found
}

/// Finds `unsafe` outside of the file that wraps the YAML parser.
pub(crate) fn unsafe_code(source: &Source) -> Vec<(usize, String)> {
    let lints = source.attributes().concat().into_iter().filter(|token| token.text == "unsafe_code");
    let words = source.tokens.iter().filter(|token| token.text == "unsafe").cloned();
    let forbidden = words.chain(lints);
    let found = forbidden.map(|token| (token.line, format!("unsafe code belongs to {UNSAFE}")));
    if source.path == UNSAFE { Vec::new() } else { found.collect() }
}

/// True if a path refers to a fenced name: to the name itself, to an item in it, or by `use` to a
/// module that contains it.
fn names(path: &Path, fenced: &str) -> bool {
    let words = path.segments.iter().map(String::as_str);
    let common = words.zip(fenced.split("::")).take_while(|(word, part)| word == part).count();
    let (length, wanted) = (path.segments.len(), fenced.split("::").count());
    let used = matches!(path.kind, Kind::Use | Kind::PubUse);
    let holds_it = common == length || (common + 1 == length && path.segments[common] == "*");
    // A single identifier in code is as likely a variable or a field as a crate.
    (common == wanted && (length > 1 || path.kind != Kind::Plain)) || (used && common > 0 && holds_it)
}

fn check(rule: fn(&Source) -> Vec<(usize, String)>, path: &str, text: &str, expect: &[&str]) {
    let found = rule(&Source::new(path, text));
    let found: Vec<_> = found.iter().map(|(line, what)| format!("{line}: {what}")).collect();
    assert_eq!(found, expect, "{path}: {text}");
}

#[test]
fn fenced_names_stay_in_their_modules() {
    let check = |path: &str, text: &str, expect: &[&str]| check(outside_their_modules, path, text, expect);
    check("crates/git/src/ref_watch.rs", "use notify::{Event, Watcher};", &[]);
    check("src/cli/run.rs", "fn f() -> anyhow::Result<()> { let notify = 1; notify.x(); }", &[]);
    check("crates/api/src/sync.rs", "#[derive(kube::CustomResource)]\nstruct A;", &[]);
    check("crates/cluster/src/connect.rs", "use kube::Client;", &[]);
    check("src/report/mod.rs", "#[cfg(test)]\nmod tests { use axum::Router; }", &[]);
    check("tests/a.rs", "use axum::Router;", &[]);

    let notify = "1: notify belongs to git and settings_watch";
    check("src/cli/run.rs", "use notify::Event;", &[notify]);
    check("src/lib.rs", "extern crate notify;", &[notify]);
    check("src/controller/mod.rs", "fn f(_: notify::Event) {}", &[notify]);
    check("src/cli/mod.rs", "use ::kube::core::X;", &["1: kube belongs to api and cluster and sandbox"]);
    let client = "1: kube::Client belongs to cluster and sandbox";
    check("crates/api/src/sync.rs", "use kube::{CELSchema, Client};", &[client]);
    check("crates/api/src/sync.rs", "use kube::*;", &["1: kube::Api belongs to cluster and sandbox"]);
    check("src/controller/mod.rs", "use axum as a;", &["1: axum belongs to serve and sandbox"]);
    check("src/serve/mod.rs", "fn f() { anyhow::bail!(\"x\") }", &["1: anyhow belongs to cli and main"]);
    check("src/serve/mod.rs", "pub use axum::Router;", &["1: `pub use` carries axum past its fence"]);
}

#[test]
fn pure_modules_take_the_world_as_arguments() {
    let check = |path: &str, text: &str, expect: &[&str]| check(impure, path, text, expect);
    let plan = "crates/engine/src/plan/mod.rs";
    check(plan, "use std::{fmt, sync::Arc, time::Duration};\nfn f(now: Time) { log.x(); }", &[]);
    check(plan, "#[cfg(test)]\nmod tests { use std::fs; }", &[]);
    check("crates/git/src/lib.rs", "use std::fs; async fn f() { println!(); }", &[]);
    check("src/controller/mod.rs", "use tokio::time::Instant;", &[]);

    check(plan, "use std::{fmt, fs::File};", &["1: `std::fs::File` in a pure module"]);
    check("src/controller/schedule/mod.rs", "use tokio::select;", &["1: `tokio::select` in a pure module"]);
    check(
        "src/serve/page/mod.rs",
        "fn f() { std::time::SystemTime::now(); }",
        &["1: `std::time::SystemTime::now` in a pure module"],
    );
    check("src/report/mod.rs", "fn f() { Utc::now(); }", &["1: `Utc::now` in a pure module"]);
    check("src/report/mod.rs", "use std::time;", &["1: `std::time` in a pure module"]);
    check("src/report/mod.rs", "use std::sync::*;", &["1: `std::sync::*` in a pure module"]);
    check(
        "crates/core/src/tree.rs",
        "async fn f() {\n g().await }",
        &["1: `async` in a pure module", "2: `await` in a pure module"],
    );
    check(
        "crates/core/src/tree.rs",
        "fn f() { println!(); tracing::info!(); }",
        &["1: `println` in a pure module", "1: `tracing::info` in a pure module"],
    );
}

#[test]
fn unsafe_code_is_in_one_file() {
    let check = |path: &str, text: &str, expect: &[&str]| check(unsafe_code, path, text, expect);
    let found = "1: unsafe code belongs to crates/yaml/src/parser.rs";
    check(UNSAFE, "#![expect(unsafe_code, reason = \"x\")]\nfn f() { unsafe { g() } }", &[]);
    check("crates/core/src/tree.rs", "// unsafe\nconst A: &str = \"unsafe\";", &[]);
    check("crates/core/src/tree.rs", "fn f() { unsafe { g() } }", &[found]);
    check("tests/a.rs", "#![expect(unsafe_code, reason = \"x\")]", &[found]);
}
