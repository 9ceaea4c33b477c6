//! The tests that docs/ownership-proof.md and docs/security.md name are there.
//!
//! In: the tables of restores and of faults that others had. Out: nothing, or the rows that name no test, and the tests that nobody has
//! written. A name is a file and a function.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn the_tests_that_the_security_page_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = ["docs/ownership-proof.md", "docs/security.md"];
    let page = pages.map(|page| fs::read_to_string(root.join(page)).expect("the page")).concat();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (head, least) in [("| event | objects in Git |", 10), ("| class | protection | test |", 17)] {
        let (_, table) = page.split_once(head).expect("the table");
        let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
        assert!(rows.len() >= least, "{head}: {rows:?}");
        for row in rows {
            let tests: Vec<&str> = row.split('`').filter(|word| word.contains("::")).collect();
            assert!(!tests.is_empty(), "no test shows {row}");
            named.extend(tests);
        }
    }
    let mut written = BTreeSet::new();
    ["src", "crates", "tests"].iter().for_each(|folder| functions(&root.join(folder), &mut written));
    let missing: Vec<_> = named.iter().filter(|name| !written.contains(**name)).collect();
    assert!(missing.is_empty(), "{pages:?} name tests that are not there: {missing:?}");
}

/// All tests, each with the name of its file in front.
fn functions(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            functions(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            // The main file of a target has the name of its folder.
            let named = if path.ends_with("main.rs") { folder } else { path.as_path() };
            let file = named.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            let text = fs::read_to_string(&path).expect("a file");
            let ends = ["test]\n", "\"multi_thread\")]\n", "start_paused = true)]\n"];
            let tests = ends.into_iter().flat_map(|end| text.split(end).skip(1));
            let names = tests.filter_map(|rest| rest.split_once("fn ")?.1.split('(').next());
            // Some files list their tests for a macro, a name a line.
            let is_one = |line: &&str| text.contains(&format!("fn {line}("));
            let names = names.chain(text.lines().map(str::trim).filter(is_one));
            into.extend(names.map(|name| format!("{file}::{name}")));
        }
    }
}
