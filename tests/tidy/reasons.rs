//! Rule for reasons: code decides on enums, not on the texts of reasons.
//!
//! In: a file. Out: the lines that compare the text of a reason with a literal or a constant.

use super::source::{Source, Token, closing, is, is_word};

/// Folders and files that read reasons which somebody else wrote, as text: an API server, another
/// controller, or a daemon into the status of a Sync.
const READERS: [&str; 5] = [
    "crates/cluster/src/api_error.rs",
    "crates/health/src/",
    "crates/sandbox/src/",
    "src/cli/",
    "src/serve/page/",
];

/// Methods that look into a text.
const TEXT_METHODS: [&str; 3] = ["contains", "ends_with", "starts_with"];

/// Finds comparisons of a reason with a text.
pub(crate) fn compared_as_text(source: &Source) -> Vec<(usize, String)> {
    if !source.is_program() || READERS.iter().any(|reader| source.path.starts_with(reader)) {
        return Vec::new();
    }
    let tokens = &source.tokens;
    let names_reason = |at: &usize| tokens[*at].text == "reason" && !source.is_test(tokens[*at].line);
    let compared = (0..tokens.len()).filter(names_reason).filter(|at| is_compared(tokens, *at));
    compared
        .map(|at| (tokens[at].line, "a reason is compared as text: decide on its enum".to_owned()))
        .collect()
}

/// True if the reason at an index is compared with a text, on either side of it.
fn is_compared(tokens: &[Token], reason: usize) -> bool {
    let mut after = reason + 1;
    for rest in [&["(", ")"][..], &[".", "as_str", "(", ")"]] {
        if rest.iter().enumerate().all(|(ahead, text)| is(tokens, after + ahead, text)) {
            after += rest.len();
        }
    }
    let looks_inside =
        is(tokens, after, ".") && tokens.get(after + 1).is_some_and(|it| TEXT_METHODS.contains(&&*it.text));
    let equals = |at| (is(tokens, at, "=") || is(tokens, at, "!")) && is(tokens, at + 1, "=");
    let before = expression_start(tokens, reason);
    looks_inside
        || (equals(after) && is_text(tokens, after + 2))
        || (before >= 3 && equals(before - 2) && is_text(tokens, before - 3))
        || (before >= 1 && is(tokens, before - 1, "match") && has_text_arm(tokens, after))
}

/// Returns the start of the path or chain that ends at an index.
fn expression_start(tokens: &[Token], end: usize) -> usize {
    let mut start = end;
    while start > 0 {
        let token = &tokens[start - 1];
        let is_named = || [".", "::", "("].iter().any(|next| is(tokens, start, next));
        match &*token.text {
            "." | "::" | "&" | "*" => start -= 1,
            // The arguments of a call.
            ")" => start = opening(tokens, start - 1),
            "match" | "if" | "return" => break,
            _ if is_word(token) && is_named() => start -= 1,
            _ => break,
        }
    }
    start
}

/// Returns the index of the parenthesis that the one at `close` closes, or 0.
fn opening(tokens: &[Token], close: usize) -> usize {
    let mut depth = 0;
    for at in (0..=close).rev() {
        match &*tokens[at].text {
            ")" => depth += 1,
            "(" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    0
}

/// True for a literal of text, or a constant that is no variant of an enum.
fn is_text(tokens: &[Token], at: usize) -> bool {
    let Some(token) = tokens.get(at) else { return false };
    let is_constant = token.text.len() > 1
        && is_word(token)
        && token.text.chars().all(|char| char.is_ascii_uppercase() || char == '_');
    token.text == "\"" || is_constant
}

/// True if an arm of the `match` whose block opens at an index is a literal of text.
fn has_text_arm(tokens: &[Token], open: usize) -> bool {
    let arms = open..closing(tokens, open);
    let ends_pattern = |at: usize| {
        is(tokens, at, "|") || is(tokens, at, "if") || (is(tokens, at, "=") && is(tokens, at + 1, ">"))
    };
    is(tokens, open, "{") && arms.into_iter().any(|at| is(tokens, at, "\"") && ends_pattern(at + 1))
}

#[test]
fn reasons_that_are_compared_as_text_are_found() {
    let check = |code: &str, found: bool| {
        let source = Source::new("src/controller/a.rs", code);
        assert_eq!(!compared_as_text(&source).is_empty(), found, "{code}");
    };
    check("fn f() { if why.reason == \"Forbidden\" {} }", true);
    check("fn f() { why.reason() != FORBIDDEN }", true);
    check("fn f() { \"Forbidden\" == error.reason() }", true);
    check("fn f() { *denied == *reason; FORBIDDEN == &*it.reason }", true);
    check("fn f() { match classify(&it).reason { \"Immutable\" => {} _ => {} } }", true);
    check("fn f() { match why.reason { A | B => \"x\", C if x => y } }", false);
    check("fn f() { condition.reason.as_str().starts_with(\"Repository\") }", true);
    check("fn f() { why.reason == FailureReason::Forbidden || last.reason == note.reason }", false);
    check("#[cfg(test)]\nmod tests { fn f() { assert!(why.reason == \"A\"); } }", false);
    let elsewhere = Source::new("crates/health/src/a.rs", "fn f() { it.reason == \"Error\" }");
    assert_eq!(compared_as_text(&elsewhere), []);
}
