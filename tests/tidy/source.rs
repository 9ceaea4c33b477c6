//! Parsed form of one file for the rules.
//!
//! In: a path in the repository and a text.
//! Out: its lines, the tokens of its code, its comments, its module, and the line ranges of its
//! tests.

use std::ops::Range;

use super::mask::{self, Halves};
use super::table::{self, Row};

/// A token of code: an identifier, keyword or number, `::`, or one other character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// One file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) comments: String,
    /// Empty for a file in another language.
    pub(crate) tokens: Vec<Token>,
    /// True if the whole file belongs to a module of tests.
    is_test_file: bool,
    tests: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (tokens, comments) = match path.ends_with(".rs") {
            true => {
                let Halves { code, comments } = mask::halves(text);
                (tokens(&code), comments)
            }
            false => Default::default(),
        };
        let tests = test_items(&tokens);
        let is_test_file = path.ends_with("/tests.rs")
            || path.contains("src/") && path.contains("/tests/")
            || text.lines().any(|line| line == "#![cfg(test)]");
        Self { path: path.to_owned(), text: text.to_owned(), comments, tokens, is_test_file, tests }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the lines, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// True if a line belongs to an item under `#[cfg(test)]`, or the file to a module of tests.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.is_test_file || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// Returns the module path of a file of the program, outermost first: `engine/plan/prune` for
    /// `crates/engine/src/plan/prune.rs`. Empty for a `lib.rs` without a row, and for all other
    /// files.
    pub(crate) fn module(&self) -> Vec<&str> {
        let folder = self.crate_folder();
        let inside = match folder {
            Some(_) => self.path.split_once("/src/").map(|(_, inside)| inside),
            None => self.path.strip_prefix("src/"),
        };
        let Some(inside) = inside else { return Vec::new() };
        let name = inside.strip_suffix(".rs").unwrap_or(inside);
        let name = name.strip_suffix("/mod").unwrap_or(name);
        let parts = name.split('/').filter(|part| *part != "lib");
        let module: Vec<&str> = folder.into_iter().chain(parts).collect();
        if inside == "lib.rs" && Row::of(&module).is_none() { Vec::new() } else { module }
    }

    /// Returns the folder in `crates` for a source file of a crate, if the table contains the
    /// crate.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        let (folder, inside) = self.path.strip_prefix("crates/")?.split_once('/')?;
        (inside.starts_with("src/") && table::is_in_table(folder)).then_some(folder)
    }

    /// True for files that are compiled into the program.
    pub(crate) fn is_program(&self) -> bool {
        self.path.starts_with("src/") || self.crate_folder().is_some()
    }

    /// Returns the attributes, each as the tokens between its brackets.
    pub(crate) fn attributes(&self) -> Vec<&[Token]> {
        let opens = |at: &usize| {
            let is = |ahead: usize, text: &str| is(&self.tokens, at + ahead, text);
            is(0, "#") && (is(1, "[") || (is(1, "!") && is(2, "[")))
        };
        let starts = (0..self.tokens.len()).filter(opens);
        starts
            .filter_map(|at| {
                let first = at + if is(&self.tokens, at + 1, "!") { 3 } else { 2 };
                self.tokens.get(first..closing(&self.tokens, first - 1))
            })
            .collect()
    }
}

/// True if the token at an index has this text.
pub(crate) fn is(tokens: &[Token], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|token| token.text == text)
}

/// True if a token is an identifier, a keyword or a number.
pub(crate) fn is_word(token: &Token) -> bool {
    token.text.starts_with(|char: char| char.is_alphanumeric() || char == '_')
}

/// Returns the index of the bracket that closes the one at `open`, or the end if none does.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// Returns the end of the item that begins at `start`: its `;`, or its closing brace.
pub(crate) fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at,
            "{" => return closing(tokens, at),
            "(" | "[" => at = closing(tokens, at),
            _ => {}
        }
        at += 1;
    }
    tokens.len()
}

fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(rest.len());
            let length = match word {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                length => length,
            };
            tokens.push(Token { text: rest[..length].to_owned(), line: index + 1 });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Returns the lines of all items under `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn test_items(tokens: &[Token]) -> Vec<Range<usize>> {
    let starts = |at: &usize| {
        let follows =
            |texts: &[&str]| texts.iter().enumerate().all(|(ahead, text)| is(tokens, at + ahead, text));
        follows(&["#", "[", "cfg", "(", "test", ")", "]"])
            || follows(&["#", "[", "cfg", "(", "all", "(", "test", ","])
    };
    let lines = |at: usize| {
        let mut item = closing(tokens, at + 1) + 1;
        while is(tokens, item, "#") {
            item = closing(tokens, item + 1) + 1;
        }
        let end = item_end(tokens, item).min(tokens.len() - 1);
        tokens[at].line..tokens[end].line + 1
    };
    (0..tokens.len()).filter(starts).map(lines).collect()
}

#[test]
fn the_lines_of_tests_are_known() {
    let text = "a();\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n fn b() {}\n}\nc();\n#[cfg(test)]\nuse d;\nfn e() {}\n";
    let source = Source::new("src/a.rs", text);
    let tests: Vec<_> = (1..=10).filter(|line| source.is_test(*line)).collect();
    assert_eq!(tests, [2, 3, 4, 5, 6, 8, 9]);
    assert!(Source::new("src/a/tests.rs", "a();").is_test(1));
    assert!(Source::new("src/a/given.rs", "//! For tests.\n\n#![cfg(test)]\n\na();").is_test(5));
    assert!(!Source::new("src/a.rs", "#[cfg(not(test))]\nmod b {}").is_test(2));
}

#[test]
fn modules_follow_paths() {
    let check =
        |path: &str, module: &str| assert_eq!(Source::new(path, "").module().join("/"), module, "{path}");
    check("src/lib.rs", "");
    check("crates/engine/src/lib.rs", "");
    check("crates/git/src/lib.rs", "git");
    check("crates/xtask/src/main.rs", "");
    check("src/settings_watch.rs", "settings_watch");
    check("src/controller/mod.rs", "controller");
    check("crates/engine/src/plan/mod.rs", "engine/plan");
    check("crates/engine/src/plan/explain.rs", "engine/plan/explain");
    check("tests/tidy/main.rs", "");
}
