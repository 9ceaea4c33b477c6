//! Rules for comments: how a line opens, words that nobody says, and the width.
//!
//! In: one Rust file.
//! Out: the comment lines that break a rule. Help texts of clap and descriptions of the CRD are doc
//! comments too, but they are texts for users: these rules do not apply to them.

use std::ops::Range;

use super::source::{Source, Token, closing, is, item_end};

/// Folders whose comments follow the rules for openings and words.
const WORDED: [&str; 4] = ["src/", "crates/", "tests/", "benches/"];
/// Folders whose comment lines are bounded in width.
const BOUNDED: [&str; 3] = ["src/", "crates/", "benches/"];
const WIDTH: usize = 100;

/// A comment opens with its subject or its verb, not with one of these.
const OPENINGS: [&str; 9] = ["What", "Who", "Whose", "Whoever", "Whether", "How", "Where", "Why", "Which"];
const UNSAID: [&str; 6] = ["comes to", "told", "anew", "lets go", "whoever", "of itself"];
/// Derives that turn doc comments into texts for users.
const TEXT_DERIVES: [&str; 6] = ["Args", "JsonSchema", "KubeSchema", "Parser", "Subcommand", "ValueEnum"];
/// Files that contain the words because they are about them.
const ABOUT: [&str; 1] = ["tests/tidy/comments.rs"];

/// Finds comment lines that open with a question word.
pub(crate) fn openings(source: &Source) -> Vec<(usize, String)> {
    let opening = |(line, text): (usize, &str)| {
        let first = text.split(|char: char| !char.is_alphanumeric()).find(|word| !word.is_empty())?;
        OPENINGS
            .contains(&first)
            .then(|| (line, format!("`{first}` opens a comment: begin with its subject")))
    };
    lines(source, &WORDED).into_iter().filter_map(opening).collect()
}

/// Finds words that no technical text uses.
pub(crate) fn unsaid(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in lines(source, &WORDED) {
        // Names of code are in backticks. Blanks around, so that a match is of whole words.
        let text: String = text.split('`').step_by(2).collect();
        let words = format!(" {} ", text.to_lowercase().replace(|char: char| !char.is_alphanumeric(), " "));
        let unsaid = UNSAID.iter().filter(|unsaid| words.contains(&format!(" {unsaid} ")));
        found.extend(unsaid.map(|unsaid| (line, format!("`{unsaid}` in a comment: write plain English"))));
    }
    found
}

/// Finds comment lines that are too wide.
pub(crate) fn wide(source: &Source) -> Vec<(usize, String)> {
    let widths: Vec<usize> = source.text.lines().map(|text| text.chars().count()).collect();
    let mut found = Vec::new();
    for (line, _) in lines(source, &BOUNDED) {
        let width = widths[line - 1];
        if width > WIDTH {
            found.push((line, format!("a comment line of {width} characters, at most {WIDTH}")));
        }
    }
    found
}

/// Returns the lines that are comments only, without texts for users and without the slashes.
fn lines<'a>(source: &'a Source, folders: &[&str]) -> Vec<(usize, &'a str)> {
    let outside = !folders.iter().any(|folder| source.path.starts_with(folder));
    let path = source.path.as_str();
    if outside || ABOUT.contains(&path) {
        return Vec::new();
    }
    let texts = texts(source);
    let is_text = |line: usize, comment: &str| {
        comment.starts_with("///") && texts.iter().any(|lines| lines.contains(&line))
    };
    let comments = source.comments.lines().enumerate().zip(source.text.lines());
    // A comment after code does not begin its line.
    let alone = comments.filter(|((_, comment), text)| {
        comment.trim_start().starts_with("//") && text.trim_start().starts_with("//")
    });
    let ours = alone.filter(|((index, comment), _)| !is_text(index + 1, comment.trim_start()));
    ours.map(|((index, comment), _)| (index + 1, comment.trim_start().trim_start_matches(['/', '!']).trim()))
        .collect()
}

/// Returns the lines of the items whose doc comments become texts for users, with the comment above
/// each.
fn texts(source: &Source) -> Vec<Range<usize>> {
    let tokens = &source.tokens;
    let derives = |at: &usize| {
        is(tokens, *at, "#") && is(tokens, at + 1, "[") && is(tokens, at + 2, "derive") && {
            let names = &tokens[at + 2..closing(tokens, at + 1)];
            names.iter().any(|name| TEXT_DERIVES.contains(&name.text.as_str()))
        }
    };
    (0..tokens.len()).filter(derives).map(|at| lines_of_item(source, tokens, at)).collect()
}

/// Returns the lines of the item with the attribute at an index.
fn lines_of_item(source: &Source, tokens: &[Token], at: usize) -> Range<usize> {
    let mut item = at;
    while is(tokens, item, "#") {
        item = closing(tokens, item + 1) + 1;
    }
    let end = item_end(tokens, item).min(tokens.len() - 1);
    let above: Vec<&str> = source.text.lines().take(tokens[at].line - 1).collect();
    let belongs = |line: &&&str| ["//", "#["].iter().any(|start| line.trim_start().starts_with(start));
    let start = tokens[at].line - above.iter().rev().take_while(belongs).count();
    start..tokens[end].line + 1
}

fn check(rule: fn(&Source) -> Vec<(usize, String)>, path: &str, text: &str, expect: &[&str]) {
    let found = rule(&Source::new(path, text));
    let found: Vec<_> = found.iter().map(|(line, what)| format!("{line}: {what}")).collect();
    assert_eq!(found, expect, "{path}: {text}");
}

#[test]
fn comments_open_with_their_subject() {
    let check = |path: &str, text: &str, expect: &[&str]| check(openings, path, text, expect);
    check("src/a.rs", "//! Reads a.\n/// Returns b,\n/// where c is d.\nfn what() {} // Why: e\n", &[]);
    check("src/a.rs", "const A: &str = \"\n// What is this\n\";\n// Whatever", &[]);
    check("docs/a.md", "// What this is", &[]);
    check("src/a.rs", "//! What a is.", &["1: `What` opens a comment: begin with its subject"]);
    check(
        "crates/a/src/b.rs",
        "a();\n/// Whether a is b.",
        &["2: `Whether` opens a comment: begin with its subject"],
    );
    check("tests/a.rs", "    // - How it goes", &["1: `How` opens a comment: begin with its subject"]);
    check("benches/a.rs", "/// Whose: a", &["1: `Whose` opens a comment: begin with its subject"]);
}

#[test]
fn texts_for_users_are_no_comments() {
    let check = |text: &str, expect: &[&str]| check(openings, "src/cli/a.rs", text, expect);
    let found = |line: usize| format!("{line}: `Which` opens a comment: begin with its subject");
    check("/// Which a.\n#[derive(Debug, clap::Args)]\nstruct A {\n    /// Which b.\n    b: u8,\n}\n", &[]);
    check(
        "/// Which a.\n#[serde(default)]\n#[derive(JsonSchema)]\n#[a(b)]\nenum A {\n    /// Which b.\n    B,\n}\n",
        &[],
    );
    check("#[derive(Args)]\nstruct A {\n    // Which b.\n    b: u8,\n}\n", &[&found(3)]);
    check("#[derive(Args)]\nstruct A;\n/// Which b.\nstruct B;\n", &[&found(3)]);
    check("#[derive(Debug)]\nstruct A {\n    /// Which b.\n    b: u8,\n}\n", &[&found(3)]);
}

#[test]
fn words_that_nobody_says_are_found() {
    let check = |text: &str, expect: &[&str]| check(unsaid, "tests/a.rs", text, expect);
    check("// The retold story of manewing, with `told`.\nlet told = \"anew\";", &[]);
    check(
        "/// Whoever is told.",
        &["1: `told` in a comment: write plain English", "1: `whoever` in a comment: write plain English"],
    );
    check(
        "// It comes to\n// b, (anew).",
        &["1: `comes to` in a comment: write plain English", "2: `anew` in a comment: write plain English"],
    );
    check(
        "// It lets go of itself.",
        &[
            "1: `lets go` in a comment: write plain English",
            "1: `of itself` in a comment: write plain English",
        ],
    );
}

#[test]
fn wide_comments_are_found() {
    let line = |length: usize| format!("    // {}", "é".repeat(length - 7));
    check(wide, "src/a.rs", &line(100), &[]);
    check(wide, "src/a.rs", &format!("a(); {}", line(100)), &[]);
    check(wide, "src/a.rs", &line(101), &["1: a comment line of 101 characters, at most 100"]);
    check(wide, "tests/a.rs", &line(101), &[]);
}
