//! Finds every path in code, with the trees of `use` expanded.

use super::source::{Source, Token, closing, is, is_word};

/// A path such as `crate::plan::Action`, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
    /// Enclosing inline modules of this file.
    pub(crate) inside: Vec<String>,
    pub(crate) kind: Kind,
}

/// Context in which a path is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In `use` or `extern crate`.
    Use,
    /// In `pub use`.
    PubUse,
    /// Name of a called macro.
    Macro,
    /// Anywhere else in code.
    Plain,
}

/// Returns all paths of a file, including single identifiers, without test code.
pub(crate) fn paths(source: &Source) -> Vec<Path> {
    let mut walk = Walk { tokens: &source.tokens, inside: Vec::new(), found: Vec::new() };
    let mut at = 0;
    while at < source.tokens.len() {
        at = walk.step(at);
    }
    walk.found.into_iter().filter(|path| !source.is_test(path.line)).collect()
}

struct Walk<'a> {
    tokens: &'a [Token],
    /// Name and closing brace of each open inline module.
    inside: Vec<(String, usize)>,
    found: Vec<Path>,
}

impl Walk<'_> {
    fn step(&mut self, at: usize) -> usize {
        self.inside.retain(|(_, end)| at < *end);
        let token = &self.tokens[at];
        let before = |text: &str| at > 0 && is(self.tokens, at - 1, text);
        match token.text.as_str() {
            "mod" if is(self.tokens, at + 2, "{") => {
                let end = closing(self.tokens, at + 2);
                self.inside.push((self.tokens[at + 1].text.clone(), end));
                at + 3
            }
            "use" if !is(self.tokens, at + 1, "<") => {
                let kind = if before("pub") { Kind::PubUse } else { Kind::Use };
                self.tree(at + 1, &[], kind)
            }
            "crate" if before("extern") => self.tree(at + 1, &[], Kind::Use),
            // A lifetime or a field name is no path; the operand of a range is one.
            _ if before("'") || (before(".") && !(at > 1 && is(self.tokens, at - 2, "."))) => at + 1,
            _ if is_word(token) && !self.continues(at) => self.tree(at, &[], Kind::Plain),
            _ => at + 1,
        }
    }

    /// True if the identifier at an index continues an earlier path.
    fn continues(&self, at: usize) -> bool {
        at >= 2
            && is(self.tokens, at - 1, "::")
            && (is_word(&self.tokens[at - 2]) || is(self.tokens, at - 2, ">"))
    }

    /// Reads a path or a tree of paths after `prefix`, and returns the index after it.
    fn tree(&mut self, start: usize, prefix: &[String], kind: Kind) -> usize {
        let line = self.tokens.get(start).map_or(0, |token| token.line);
        let mut segments = prefix.to_vec();
        let mut at = start;
        if is(self.tokens, at, "::") {
            at += 1;
        }
        loop {
            match self.tokens.get(at) {
                Some(token) if is_word(token) || token.text == "*" => segments.push(token.text.clone()),
                Some(token) if token.text == "{" => return self.group(at, &segments, kind),
                _ => return at.max(start + 1),
            }
            at += 1;
            let goes_on = is(self.tokens, at, "::") && !is(self.tokens, at + 1, "<");
            if !goes_on {
                break;
            }
            at += 1;
        }
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let kind = match kind {
            Kind::Plain if is(self.tokens, at, "!") && !is(self.tokens, at + 1, "=") => Kind::Macro,
            kind => kind,
        };
        let inside = self.inside.iter().map(|(name, _)| name.clone()).collect();
        self.found.push(Path { line, segments, inside, kind });
        if kind != Kind::Plain && is(self.tokens, at, "as") { at + 2 } else { at }
    }

    fn group(&mut self, open: usize, prefix: &[String], kind: Kind) -> usize {
        let end = closing(self.tokens, open);
        let mut at = open + 1;
        while at < end {
            at = if is(self.tokens, at, ",") { at + 1 } else { self.tree(at, prefix, kind) };
        }
        end + 1
    }
}

fn texts(text: &str) -> Vec<String> {
    let long = |path: &Path| path.segments.len() > 1 || path.kind != Kind::Plain;
    paths(&Source::new("src/a.rs", text))
        .iter()
        .filter(|path| long(path))
        .map(|path| path.segments.join("::"))
        .collect()
}

#[test]
fn trees_are_written_out() {
    let check = |text: &str, expect: &[&str]| assert_eq!(texts(text), expect, "{text}");
    check(
        "use crate::{plan::{self, Action as A}, tree};",
        &["crate::plan", "crate::plan::Action", "crate::tree"],
    );
    check("pub(crate) use super::*;", &["super::*"]);
    check("let a: Vec<crate::b::C> = x::<d::E>::f();", &["crate::b::C", "d::E"]);
    check("self.std::<A>(); println!(\"{}\", b); a != b;", &["println"]);
    check("a.b::<C>(0..crate::d::E)", &["crate::d::E"]);
    check("::std::fs::read(\"a::b\") // c::d", &["std::fs::read"]);
    check("extern crate git2; fn f<'a>() -> impl T + use<'a> {}", &["git2"]);
    check("use a::b; #[cfg(test)] mod tests {\n use c::d;\n}", &[]);
    check("use a::b;\n#[cfg(test)]\nmod tests {\n use c::d;\n}", &["a::b"]);
}

#[test]
fn modules_in_braces_are_known() {
    let source = Source::new("src/a.rs", "mod b { use super::x::Y; mod c { super::z(); } } use super::d;");
    let found: Vec<_> = paths(&source)
        .into_iter()
        .filter(|path| path.segments[0] == "super")
        .map(|path| (path.inside.join("/"), path.segments.join("::")))
        .collect();
    let expect = [("b", "super::x::Y"), ("b/c", "super::z"), ("", "super::d")];
    assert_eq!(found, expect.map(|(inside, path)| (inside.to_owned(), path.to_owned())));
}
