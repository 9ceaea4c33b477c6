//! Files that the public meets first: workflows, install script, changelog, policy of versions,
//! site of the documentation.
//!
//! In: these files. Out: nothing, or the first difference to the files that they must agree with.
//! Scripts run here, against servers on the loopback.

mod changelog;
mod forms;
mod install_script;
mod site;
mod steps;
mod versions;
mod workflows;

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Sorted names in a folder of the repository that end with this.
fn names(folder: &str, end: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(end)).collect();
    names.sort();
    names
}

/// The text between two others, in its first place.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(after).map(|(inside, _)| inside)
}
