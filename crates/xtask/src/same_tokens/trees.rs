//! Rust source files of a revision, and of the checkout.
//!
//! In: a Git revision.
//! Out: path and text of each file that is compiled into the program, its libraries or its tests.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Folders whose Rust files are compared.
const FOLDERS: [&str; 4] = ["src", "crates", "tests", "benches"];

/// This crate is not compared: it is the tool.
const LEFT_OUT: &str = "crates/xtask/";

type Files = Vec<(String, String)>;

/// Reads the files of a revision.
pub(crate) fn at(revision: &str) -> Result<Files, String> {
    let names = git(&["ls-tree", "-r", "--name-only", "-z", revision, "--"], &FOLDERS)?;
    let names = names.split('\0').filter(|name| is_compared(name));
    names.map(|name| Ok((name.to_owned(), git(&["show", &format!("{revision}:{name}")], &[])?))).collect()
}

/// Reads the files of the checkout that Git tracks, or that are new and not ignored.
pub(crate) fn checkout() -> Result<Files, String> {
    let names = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"], &FOLDERS)?;
    // During a merge Git lists a file once for each side.
    let names: BTreeSet<&str> =
        names.split('\0').filter(|name| is_compared(name) && Path::new(name).exists()).collect();
    let read = |name: &str| std::fs::read_to_string(name).map_err(|error| format!("{name}: {error}"));
    names.into_iter().map(|name| Ok((name.to_owned(), read(name)?))).collect()
}

fn is_compared(name: &str) -> bool {
    name.ends_with(".rs") && !name.starts_with(LEFT_OUT)
}

fn git(arguments: &[&str], more: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).args(more).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("git {}: not UTF-8", arguments.join(" ")))
}
