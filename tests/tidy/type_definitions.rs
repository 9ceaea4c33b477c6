//! Rules for types across the files of a crate: one place for the methods of a type, one type for a
//! name.
//!
//! In: all files.
//! Out: the types whose methods are in more than two files, and the names of more than two types.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, Token, is, is_word};

/// Most files with inherent `impl` blocks of one type.
const IMPL_FILES: usize = 2;
/// Types with more. Their methods are what a server or a store can do, a file for each subject.
/// Shorten this list, and do not add to it.
const SPREAD_TYPES: [(&str, &str); 4] =
    [("cluster", "Connection"), ("git", "Repository"), ("sandbox", "Schema"), ("sandbox", "ServerState")];
/// Most definitions of one type name.
const DEFINITIONS: usize = 2;
/// Names that each private module may define.
const COMMON_NAMES: [&str; 1] = ["Error"];

/// Files by crate and type name; the root package has an empty name.
type FilesByType<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>;

/// Finds types whose inherent `impl` blocks are in too many files.
pub(crate) fn spread_types(sources: &[Source]) -> Vec<String> {
    let mut files = FilesByType::new();
    for source in sources.iter().filter(|source| source.is_program()) {
        for name in inherent_impls(source) {
            files.entry((source.crate_folder().unwrap_or_default(), name)).or_default().insert(&source.path);
        }
    }
    let spread = files.iter().filter(|(_, files)| files.len() > IMPL_FILES);
    let new = spread.filter(|(type_, _)| !SPREAD_TYPES.contains(type_));
    new.map(|((_, name), files)| format!("{name} has methods in {} files: {files:?}", files.len())).collect()
}

/// Finds names of more than two types in a crate.
pub(crate) fn repeated_names(sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_program()) {
        for name in definitions(source).filter(|name| !COMMON_NAMES.contains(&&*name.text)) {
            let place = format!("{}:{}", source.path, name.line);
            places.entry((source.crate_folder().unwrap_or_default(), &name.text)).or_default().push(place);
        }
    }
    let repeated = places.iter().filter(|(_, places)| places.len() > DEFINITIONS);
    repeated.map(|((_, name), places)| format!("{name} is {} types: {places:?}", places.len())).collect()
}

/// Returns the names of the types of a file's inherent `impl` blocks, outside its tests.
fn inherent_impls(source: &Source) -> impl Iterator<Item = &str> {
    let tokens = &source.tokens;
    let opens = |at: &usize| {
        let starts_item = *at == 0 || ["}", ";", "]", "{"].contains(&&*tokens[at - 1].text);
        tokens[*at].text == "impl" && starts_item && !source.is_test(tokens[*at].line)
    };
    (0..tokens.len()).filter(opens).filter_map(|at| inherent_type(tokens, at + 1))
}

/// Returns the type of an `impl` whose header begins at an index; `None` for one of a trait.
fn inherent_type(tokens: &[Token], start: usize) -> Option<&str> {
    let mut name = None;
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match &*token.text {
            "<" => depth += 1,
            ">" if !is(tokens, at.saturating_sub(1), "-") => depth -= 1,
            "{" | "where" if depth == 0 => return name,
            "for" if depth == 0 => return None,
            text if depth == 0 && is_word(token) => name = Some(text),
            _ => {}
        }
    }
    None
}

/// Returns the names of the types that a file defines, outside its tests.
fn definitions(source: &Source) -> impl Iterator<Item = &Token> {
    let tokens = &source.tokens;
    let defines = |at: &usize| ["struct", "enum", "union"].contains(&&*tokens[*at].text);
    let names = (0..tokens.len()).filter(defines).filter_map(|at| tokens.get(at + 1));
    names.filter(|name| name.text.starts_with(char::is_uppercase) && !source.is_test(name.line))
}

#[test]
fn a_type_with_methods_in_three_files_is_found() {
    let methods = |path: &str| Source::new(path, "impl<'a, F: Fn() -> u8> Thing<'a, F> { fn f() {} }");
    let others = "impl Clone for Thing {}\nfn f(it: impl Fn()) -> impl Sized {}\n#[cfg(test)]\nmod tests { impl Thing {} }";
    let two = [methods("src/a.rs"), methods("src/b.rs"), Source::new("src/c.rs", others)];
    assert_eq!(spread_types(&two), Vec::<String>::new());
    let three =
        [methods("src/a.rs"), methods("src/b.rs"), methods("src/c.rs"), methods("crates/git/src/d.rs")];
    assert_eq!(
        spread_types(&three),
        [r#"Thing has methods in 3 files: {"src/a.rs", "src/b.rs", "src/c.rs"}"#]
    );
}

#[test]
fn a_name_of_three_types_is_found() {
    let text =
        "struct Place;\nstruct Error;\nmod a { pub enum Place {} struct Error; }\nmod b { struct Error; }";
    assert_eq!(repeated_names(&[Source::new("src/a.rs", text)]), Vec::<String>::new());
    let third = Source::new("src/b.rs", "struct Place(u8);");
    assert_eq!(
        repeated_names(&[Source::new("src/a.rs", text), third]),
        [r#"Place is 3 types: ["src/a.rs:1", "src/a.rs:3", "src/b.rs:1"]"#]
    );
}
