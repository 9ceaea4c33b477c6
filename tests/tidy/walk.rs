//! Checks the list of the files and types that a commit passes from Git to the status of its Sync.
//!
//! In: the list, and a function that reads a file.
//! Out: files that do not exist or are listed twice, functions and types that are not in their
//! file, and numbers in the text that are not those of the list.

use std::collections::BTreeSet;

/// Path of the list.
const LIST: &str = "src/controller/WALK.md";
/// Words before the name of a type, where it is defined.
const DEFINES: [&str; 3] = ["struct", "enum", "type"];

/// Finds what is wrong with a list. A row has a file, its functions and its types, in backticks.
pub(crate) fn problems(list: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut files, mut types, mut found) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for line in list.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<Vec<&str>> = line.split('|').skip(1).map(quoted).collect();
        let [file, functions, row_types, ..] = cells.as_slice() else {
            found.push(format!("a row needs three cells: {line}"));
            continue;
        };
        let file = file.first().copied().unwrap_or_default();
        if !files.insert(file) {
            found.push(format!("{file} is listed twice"));
        }
        let Some(text) = read(file) else {
            found.push(format!("{file} does not exist"));
            continue;
        };
        let missing = functions.iter().filter(|name| !defines(&text, &["fn"], name));
        found.extend(missing.map(|name| format!("{file} has no function {name}")));
        for name in row_types {
            if !types.insert(*name) {
                found.push(format!("{name} is listed twice"));
            }
            if !defines(&text, &DEFINES, name) {
                found.push(format!("{file} has no type {name}"));
            }
        }
    }
    let numbers = format!("{} files and {} type names", files.len(), types.len());
    if !list.contains(&format!(" {numbers}")) {
        found.push(format!("the list has {numbers}, which the text does not say"));
    }
    found
}

/// Returns the words in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// True if a text has the name right after one of the keywords.
fn defines(text: &str, keywords: &[&str], name: &str) -> bool {
    let words: Vec<&str> = text.split(|char: char| !char.is_alphanumeric() && char != '_').collect();
    words.windows(2).any(|pair| keywords.contains(&pair[0]) && pair[1] == name)
}

#[test]
fn a_wrong_row_and_a_wrong_number_are_found() {
    let read =
        |path: &str| (path != "src/gone.rs").then(|| "pub struct Plan(u8);\nfn plan() {}\n".to_owned());
    let list =
        |numbers: &str, rows: &[&str]| problems(&format!("Here: {numbers}.\n\n{}", rows.join("\n")), read);
    let row = "| `src/a.rs` | `plan` | `Plan` | Decides. |";
    let one = "1 files and 1 type names";
    assert_eq!(
        list(one, &["| file | functions | types | |", "|---|---|---|---|", row]),
        Vec::<String>::new()
    );
    let wrong = |rows: &[&str]| list(one, rows).join("; ");
    assert!(wrong(&["| `src/gone.rs` | | | |", row]).contains("src/gone.rs does not exist"));
    assert!(wrong(&[row, row]).contains("src/a.rs is listed twice; Plan is listed twice"));
    assert_eq!(wrong(&["| `src/a.rs` | `pla` | `Plan` | |"]), "src/a.rs has no function pla");
    assert_eq!(wrong(&["| `src/a.rs` | | `Pla` | |"]), "src/a.rs has no type Pla");
    for numbers in ["2 files and 1 type names", "1 files and 2 type names", "11 files and 1 type names"] {
        let expect = "the list has 1 files and 1 type names, which the text does not say";
        assert_eq!(list(numbers, &[row]), [expect], "{numbers}");
    }
}

#[test]
fn the_walk_of_a_commit_is_as_it_is_listed() {
    let list = super::files::text(LIST).expect("the list of the walk can be read");
    let found = problems(&list, super::files::text);
    assert!(found.is_empty(), "{LIST}: {}", found.join("\n"));
    assert!(list.lines().filter(|line| line.starts_with("| `src/controller/")).count() > 10, "{LIST}");
}
