//! The tests that docs/security.md names are there.
//!
//! In: the table of faults that others had. Out: nothing, or the tests that it names and nobody has written. A name is a file and a function.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn the_tests_that_the_security_page_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/security.md")).expect("the page");
    let (_, table) = page.split_once("## Faults that others had").expect("the table");
    let named: BTreeSet<&str> = table.split('`').filter(|word| word.contains("::")).collect();
    assert!(named.len() > 15, "{named:?}");
    let mut written = BTreeSet::new();
    ["src", "tests"].iter().for_each(|folder| functions(&root.join(folder), &mut written));
    let missing: Vec<_> = named.iter().filter(|name| !written.contains(**name)).collect();
    assert!(missing.is_empty(), "docs/security.md names tests that are not there: {missing:?}");
}

/// All functions, each with the name of its file in front.
fn functions(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            functions(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let file = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            let text = fs::read_to_string(&path).expect("a file");
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
            into.extend(names.map(|name| format!("{file}::{name}")));
        }
    }
}
