//! Rules for attributes: exceptions use `expect`, and every exception has a reason.

use super::source::{Source, is};

/// Finds `allow`, which remains when it is no longer needed.
pub(crate) fn allowed_lints(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for attribute in source.attributes() {
        let allows = |at: &usize| is(attribute, *at, "allow") && is(attribute, at + 1, "(");
        let lints = (0..attribute.len()).filter(allows);
        let text = "`allow` stays when nothing needs it: write `expect(…, reason = \"…\")`";
        found.extend(lints.map(|at| (attribute[at].line, text.to_owned())));
    }
    found
}

/// Finds `expect` and `ignore` without a reason.
pub(crate) fn without_reason(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for attribute in source.attributes() {
        for (at, token) in attribute.iter().enumerate() {
            let reasoned = match token.text.as_str() {
                "expect" if is(attribute, at + 1, "(") => says_why(source, attribute, "reason"),
                "ignore" if at == 0 || is(attribute, at - 1, ",") => says_why(source, attribute, "ignore"),
                _ => true,
            };
            if !reasoned {
                found.push((token.line, format!("`{}` without a reason", token.text)));
            }
        }
    }
    found
}

/// True if an attribute has `key = "text"` with a non-empty text.
fn says_why(source: &Source, attribute: &[super::source::Token], key: &str) -> bool {
    (0..attribute.len()).any(|at| {
        let given = is(attribute, at, key) && is(attribute, at + 1, "=") && is(attribute, at + 2, "\"");
        // Tokens do not contain literals, so an empty one is searched in the text.
        let empty =
            || source.lines().any(|(line, text)| line == attribute[at].line && text.contains("= \"\""));
        given && !empty()
    })
}

/// Finds a module of tests that is compiled into the program.
pub(crate) fn tests_outside_tests(source: &Source) -> Vec<(usize, String)> {
    if !source.is_program() {
        return Vec::new();
    }
    let modules = source.tokens.windows(2).filter(|pair| pair[0].text == "mod" && pair[1].text == "tests");
    let compiled = modules.filter(|pair| !source.is_test(pair[0].line));
    compiled.map(|pair| (pair[0].line, "`mod tests` without `#[cfg(test)]`".to_owned())).collect()
}

fn check(rule: fn(&Source) -> Vec<(usize, String)>, text: &str, expect: &[&str]) {
    let found = rule(&Source::new("src/a.rs", text));
    let found: Vec<_> = found.iter().map(|(line, what)| format!("{line}: {what}")).collect();
    assert_eq!(found, expect, "{text}");
}

#[test]
fn lints_are_expected_not_allowed() {
    let found = "1: `allow` stays when nothing needs it: write `expect(…, reason = \"…\")`";
    check(allowed_lints, "#[expect(dead_code, reason = \"b\")]\nfn allow() { allow(1); [allow(2)]; }", &[]);
    check(allowed_lints, "// #[allow(dead_code)]", &[]);
    check(allowed_lints, "#[allow(dead_code)]", &[found]);
    check(allowed_lints, "#![allow(dead_code, reason = \"b\")]", &[found]);
    check(allowed_lints, "#[cfg_attr(test, allow(dead_code))]", &[found]);
}

#[test]
fn exceptions_have_reasons() {
    check(without_reason, "#[expect(dead_code, reason = \"b\")]\nfn f() { a.expect(\"x\"); }", &[]);
    check(without_reason, "#[ignore = \"needs an hour\"]\nfn ignore() {}\n#[serde(ignore)]\nstruct A;", &[]);
    check(without_reason, "#[expect(dead_code)]", &["1: `expect` without a reason"]);
    check(without_reason, "#[expect(dead_code, reason = \"\")]", &["1: `expect` without a reason"]);
    check(without_reason, "#[test]\n#[ignore]\nfn f() {}", &["2: `ignore` without a reason"]);
    check(without_reason, "#[ignore = \"\"]", &["1: `ignore` without a reason"]);
    check(without_reason, "#[cfg_attr(unix, ignore)]", &["1: `ignore` without a reason"]);
}

#[test]
fn modules_of_tests_are_for_tests() {
    check(tests_outside_tests, "#[cfg(test)]\nmod tests;", &[]);
    check(tests_outside_tests, "a!();\nmod tests;", &["2: `mod tests` without `#[cfg(test)]`"]);
}
