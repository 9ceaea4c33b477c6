//! Checks the house rules: import table, sizes, attributes, comments, and the form of files and
//! lines.
//!
//! In: the text of every file of this repository.
//! Out: nothing, or each violation as `path:line: what (rule)`. A rule is a function of one file's
//! text, so that the tests beside it can pass a violation and expect it to be found. The import
//! table is in `table.rs`.

pub(crate) mod attributes;
pub(crate) mod comments;
pub(crate) mod fences;
pub(crate) mod files;
pub(crate) mod imports;
pub(crate) mod mask;
pub(crate) mod module_graph;
pub(crate) mod named_paths;
pub(crate) mod paths;
pub(crate) mod reasons;
pub(crate) mod shared_state;
pub(crate) mod sizes;
pub(crate) mod source;
pub(crate) mod table;
pub(crate) mod type_definitions;
pub(crate) mod walk;
pub(crate) mod words;

use source::Source;

/// A rule: its name, and a function that returns its violations in one file as line and text.
type Rule = (&'static str, fn(&Source) -> Vec<(usize, String)>);

/// Rules for Rust files.
const RUST_RULES: [Rule; 18] = [
    ("import table", imports::outside_the_table),
    ("fences", fences::outside_their_modules),
    ("pure modules", fences::impure),
    ("unsafe", fences::unsafe_code),
    ("file length", sizes::long_file),
    ("function length", sizes::long_functions),
    ("main.rs", sizes::long_main),
    ("opening comment", words::no_opening_comment),
    ("openings of comments", comments::openings),
    ("words of comments", comments::unsaid),
    ("width of comments", comments::wide),
    ("markers", words::bare_markers),
    ("file names", words::drawer_names),
    ("whitespace", words::whitespace),
    ("expect, not allow", attributes::allowed_lints),
    ("reasons", attributes::without_reason),
    ("reasons of failures", reasons::compared_as_text),
    ("test modules", attributes::tests_outside_tests),
];

/// Rules for all text files.
const TEXT_RULES: [Rule; 1] = [("machine paths", words::machine_paths)];

#[test]
fn every_file_keeps_the_rules() {
    let files = files::texts();
    assert!(files.iter().any(|(path, _)| path == "src/main.rs"), "the walk found no src/main.rs: {files:?}");
    let mut violations = Vec::new();
    for (path, text) in &files {
        let source = Source::new(path, text);
        let rust = if source.is_rust() { &RUST_RULES[..] } else { &[] };
        for (rule, check) in rust.iter().chain(&TEXT_RULES) {
            let found = check(&source).into_iter();
            violations.extend(found.map(|(line, what)| format!("{path}:{line}: {what} ({rule})")));
        }
    }
    assert!(violations.is_empty(), "{} violations:\n{}\n", violations.len(), violations.join("\n"));
}

#[test]
fn a_type_has_its_methods_in_two_files_and_a_name_is_two_types_at_most() {
    let files = files::texts();
    let rust = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let sources: Vec<Source> = rust.map(|(path, text)| Source::new(path, text)).collect();
    let found =
        [type_definitions::spread_types(&sources), type_definitions::repeated_names(&sources)].concat();
    assert!(found.is_empty(), "{} violations:\n{}\n", found.len(), found.join("\n"));
}

#[test]
fn the_readme_of_the_crates_shows_the_import_table() {
    let document = files::text("crates/README.md").expect("crates/README.md has the table");
    if let Err(message) = table::compare(&document, &table::as_markdown()) {
        panic!("{message}");
    }
}

#[test]
fn the_documents_about_the_code_name_files_and_items_that_exist() {
    let about = |path: &str| {
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "crates/README.md"].contains(&path)
            || path.ends_with("AGENTS.md")
    };
    let documents: Vec<_> = files::texts().into_iter().filter(|(path, _)| about(path)).collect();
    assert!(documents.len() > 5, "the walk found {} documents", documents.len());
    let mut gone = Vec::new();
    for (path, text) in &documents {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let missing = named_paths::missing(text, folder, files::exists).into_iter();
        gone.extend(missing.map(|what| format!("{path}:{what}")));
    }
    assert!(gone.is_empty(), "these paths do not exist:\n{}\n", gone.join("\n"));
    let items = documents.iter().flat_map(|(path, text)| {
        named_paths::missing_items(text, files::text).into_iter().map(move |what| format!("{path}:{what}"))
    });
    let items: Vec<String> = items.collect();
    assert!(items.is_empty(), "these items are elsewhere:\n{}\n", items.join("\n"));
}

#[test]
fn the_state_that_syncs_share_has_few_fields_with_one_writer_each() {
    let text = files::text("src/controller/mod.rs").expect("Context is there");
    assert_eq!(shared_state::problems(&text), Vec::<String>::new());
}

#[test]
fn the_architecture_is_short() {
    let lines = files::text("ARCHITECTURE.md").expect("there is an ARCHITECTURE.md").lines().count();
    assert!(lines <= 150, "ARCHITECTURE.md has {lines} lines, at most 150");
}
