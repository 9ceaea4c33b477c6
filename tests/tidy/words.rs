//! Rules for the names of files and the form of their lines.

use super::source::Source;

/// Folders in which every Rust file begins with a comment about its purpose.
const EXPLAINED: [&str; 5] = ["src/", "crates/", "tests/", "benches/", "fuzz/"];
const MARKERS: [&str; 3] = ["TODO", "FIXME", "XXX"];
/// File names that reveal nothing about the content.
const DRAWERS: [&str; 7] = ["common", "helper", "helpers", "manager", "types", "util", "utils"];
/// Files whose name is the word of Kubernetes for what they hold.
const KUBERNETES_NAMES: [&str; 1] = ["src/controller/manager.rs"];
/// First folders of paths that exist only on one machine.
const MACHINE: [&str; 4] = ["Users", "home", "root", "tmp"];

/// Finds a file that does not begin with `//!`.
pub(crate) fn no_opening_comment(source: &Source) -> Vec<(usize, String)> {
    let explained = EXPLAINED.iter().any(|folder| source.path.starts_with(folder));
    let missing = explained && !source.text.starts_with("//! ");
    missing.then(|| (1, "the first line is not `//! …`: describe the file".to_owned())).into_iter().collect()
}

/// Finds markers in comments that do not have the form `TODO(reference): reason`.
pub(crate) fn bare_markers(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, comment) in source.comments.lines().enumerate() {
        for marker in MARKERS {
            for (at, _) in comment.match_indices(marker) {
                let word =
                    |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
                let rest = &comment[at + marker.len()..];
                let whole = !word(comment[..at].chars().next_back()) && !word(rest.chars().next());
                if whole && !is_explained(rest) {
                    found.push((index + 1, format!("write `{marker}(reference): reason`")));
                }
            }
        }
    }
    found
}

fn is_explained(rest: &str) -> bool {
    let parts = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    parts.is_some_and(|(reference, rest)| {
        let reason = rest.strip_prefix(':').unwrap_or_default();
        !reference.trim().is_empty() && !reason.trim().is_empty()
    })
}

/// Finds files and folders with a meaningless name.
pub(crate) fn drawer_names(source: &Source) -> Vec<(usize, String)> {
    if KUBERNETES_NAMES.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let names = source.path.strip_suffix(".rs").unwrap_or(&source.path).split('/');
    let drawers = names.filter(|name| DRAWERS.contains(name));
    drawers.map(|name| (1, format!("`{name}` is meaningless: name the file after its content"))).collect()
}

/// Finds tabs, and spaces at the end of a line.
pub(crate) fn whitespace(source: &Source) -> Vec<(usize, String)> {
    let wrong = source.lines().filter_map(|(line, text)| match text {
        _ if text.contains('\t') => Some((line, "a tab: write blanks, and `\\t` in a literal".to_owned())),
        _ if text.ends_with(char::is_whitespace) => Some((line, "a blank at the end".to_owned())),
        _ => None,
    });
    wrong.collect()
}

/// Finds paths that exist only on one machine.
pub(crate) fn machine_paths(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in source.lines() {
        for folder in MACHINE.map(|name| format!("/{name}/")) {
            // After these characters the match is the middle of a longer path.
            let goes_on = |char: char| char.is_alphanumeric() || "._~-)}]*$".contains(char);
            let places = text.match_indices(&folder);
            if places.into_iter().any(|(at, _)| !text[..at].ends_with(goes_on)) {
                found.push((line, format!("`{folder}…` is a place on one machine")));
            }
        }
    }
    found
}

fn check(rule: fn(&Source) -> Vec<(usize, String)>, path: &str, text: &str, expect: &[&str]) {
    let found = rule(&Source::new(path, text));
    let found: Vec<_> = found.iter().map(|(line, what)| format!("{line}: {what}")).collect();
    assert_eq!(found, expect, "{path}: {text}");
}

#[test]
fn files_open_with_what_they_are_for() {
    let check = |path: &str, text: &str, expect: &[&str]| check(no_opening_comment, path, text, expect);
    let missing = "1: the first line is not `//! …`: describe the file";
    check("src/a.rs", "//! For this.\nfn f() {}", &[]);
    check("build.rs", "fn main() {}", &[]);
    check("src/a.rs", "\n//! For this.", &[missing]);
    check("src/a.rs", "// For this.", &[missing]);
    check("fuzz/fuzz_targets/a.rs", "#![no_main]\n//! For this.", &[missing]);
    check("tests/a.rs", "", &[missing]);
}

#[test]
fn markers_say_why() {
    let check = |text: &str, expect: &[&str]| check(bare_markers, "src/a.rs", text, expect);
    let todo = "write `TODO(reference): reason`";
    check("// TODO(issue 12): the server has no such answer yet\nlet a = \"TODO\"; // XXXX AUTODONE", &[]);
    check("a();\n// TODO: later", &[&format!("2: {todo}")]);
    check("/* TODO(12) */ // TODO(): x", &[&format!("1: {todo}"), &format!("1: {todo}")]);
    check("/// FIXME later", &["1: write `FIXME(reference): reason`"]);
    check("//! XXX", &["1: write `XXX(reference): reason`"]);
}

#[test]
fn drawers_are_found() {
    let check = |path: &str, expect: &[&str]| check(drawer_names, path, "", expect);
    check("src/plan/prune.rs", &[]);
    check("src/types_of_leaves.rs", &[]);
    check("src/controller/manager.rs", &[]);
    check("src/utils.rs", &["1: `utils` is meaningless: name the file after its content"]);
    check("src/cli/manager.rs", &["1: `manager` is meaningless: name the file after its content"]);
    check("tests/common/mod.rs", &["1: `common` is meaningless: name the file after its content"]);
}

#[test]
fn invisible_characters_are_found() {
    let check = |text: &str, expect: &[&str]| check(whitespace, "src/a.rs", text, expect);
    check("a\n\n  b\n", &[]);
    check("a \n\n   \n", &["1: a blank at the end", "3: a blank at the end"]);
    check("a\n\tb", &["2: a tab: write blanks, and `\\t` in a literal"]);
}

#[test]
fn places_on_one_machine_are_found() {
    let home = format!("/{}/", "home");
    let check = |text: String, expect: &[&str]| check(machine_paths, "README.md", &text, expect);
    check(format!("https://example.com{home} $HOME{home} a{home} ~{home} /homely/"), &[]);
    let found = format!("1: `{home}…` is a place on one machine");
    check(format!("cd {home}someone"), &[&found]);
    check(format!("\"{home}someone\""), &[&found]);
    check(format!("file://{home}someone"), &[&found]);
}
