//! The table of others who write to what a Sync holds: each row is proven by a test, and each test is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::text;

#[test]
fn living_together_names_its_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster_systems/opponents");
    let files = fs::read_dir(folder).expect("the tests are there").map(|file| file.expect("a file").path());
    let sources: Vec<String> = files.map(|file| fs::read_to_string(file).expect("text")).collect();
    let tests = sources.iter().flat_map(|source| tests(source)).collect();
    assert_eq!(same_tests(&text("docs/living-together.md"), &tests), Ok(()));
}

/// The names of the tests of a file.
fn tests(source: &str) -> Vec<&str> {
    let after = source.split("#[tokio::test]\nasync fn ").skip(1);
    after.filter_map(|rest| rest.split('(').next()).collect()
}

/// The last column of the table names every test, each once.
fn same_tests(document: &str, tests: &BTreeSet<&str>) -> Result<(), String> {
    let rows = document.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut named = BTreeSet::new();
    for row in rows {
        let name = row.trim_end_matches(" |").rsplit("| `").next().unwrap_or_default().trim_end_matches('`');
        if !tests.contains(name) {
            return Err(format!("there is no test of this name: {row}"));
        }
        if !named.insert(name) {
            return Err(format!("two rows name {name}"));
        }
    }
    match tests.difference(&named).next() {
        Some(test) => Err(format!("no row names {test}")),
        None => Ok(()),
    }
}

#[test]
fn a_test_without_a_row_and_a_row_without_a_test_are_found() {
    let source =
        "#[tokio::test]\nasync fn one() {}\n\nasync fn other() {}\n#[tokio::test]\nasync fn two() {}\n";
    let tests: BTreeSet<&str> = tests(source).into_iter().collect();
    assert_eq!(tests, BTreeSet::from(["one", "two"]));
    let document = "| who | test |\n|---|---|\n| `a` | `one` |\n| b | `two` |\n";
    assert_eq!(same_tests(document, &tests), Ok(()));
    assert!(same_tests(&document.replace("two", "gone"), &tests).is_err());
    assert!(same_tests(&document.replace("two", "one"), &tests).is_err());
    assert!(same_tests(&document.replace("| b | `two` |\n", ""), &tests).is_err());
}
