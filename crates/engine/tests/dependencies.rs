//! Dependencies of the decision engine: it is built without a client, a runtime or Git.

use std::collections::BTreeSet;
use std::process::Command;

/// Crates that the engine and its tests must not need, directly or through another crate.
const FORBIDDEN: [&str; 10] = [
    "git2",
    "hyper",
    "k8s-openapi",
    "kube",
    "kube-client",
    "kube-core",
    "libgit2-sys",
    "russh",
    "schemars",
    "tokio",
];

/// Returns the names of all crates that a build of the engine and of its tests compiles.
fn compiled_crates() -> BTreeSet<String> {
    let args = [
        "tree",
        "--locked",
        "--offline",
        "-p",
        "moorline-engine",
        "-e",
        "normal,build,dev",
        "--prefix",
        "none",
    ];
    let run = Command::new(env!("CARGO")).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = run.expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names of crates are text");
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_engine_needs_no_client_no_runtime_and_no_git() {
    let found = compiled_crates();
    assert!(found.contains("moorline-engine") && found.contains("serde_json"), "{found:?}");
    let wrong: Vec<&str> = FORBIDDEN.into_iter().filter(|name| found.contains(*name)).collect();
    assert!(wrong.is_empty(), "`cargo tree -p moorline-engine -i NAME` shows who needs {wrong:?}");
}
