//! Rules for sizes: files and functions that are too long must be split.

use super::source::{Source, is, is_word, item_end};

const FILE_LINES: usize = 400;
/// Files that the longer names made longer than that. Split a file rather than adding it here.
const LONG_FILES: [&str; 3] =
    ["crates/cluster/src/autoscalers.rs", "src/controller/resource/mod.rs", "src/controller/status/mod.rs"];
const LONG_FILE_LINES: usize = 470;
const FUNCTION_LINES: usize = 90;
const MAIN_LINES: usize = 20;

/// Finds a file with too many lines, not counting tests.
pub(crate) fn long_file(source: &Source) -> Vec<(usize, String)> {
    let code = source.lines().filter(|(line, _)| !source.is_test(*line)).count();
    let listed = LONG_FILES.contains(&source.path.as_str());
    let most = if listed { LONG_FILE_LINES } else { FILE_LINES };
    let long = code > most;
    long.then(|| (1, format!("{code} lines of code, at most {most}: split it"))).into_iter().collect()
}

/// Finds functions with too many lines, from `fn` to the closing brace.
pub(crate) fn long_functions(source: &Source) -> Vec<(usize, String)> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        let Some(name) = tokens.get(at + 1).filter(|name| is_word(name)) else { continue };
        let end = item_end(tokens, at).min(tokens.len() - 1);
        let lines = tokens[end].line - token.line + 1;
        if is(tokens, end, "}") && lines > FUNCTION_LINES {
            found.push((token.line, format!("{} has {lines} lines, at most {FUNCTION_LINES}", name.text)));
        }
    }
    found
}

/// Finds a `main.rs` that does more than call the command line.
pub(crate) fn long_main(source: &Source) -> Vec<(usize, String)> {
    let lines = source.lines().count();
    let long = source.path == "src/main.rs" && lines > MAIN_LINES;
    long.then(|| (1, format!("{lines} lines, at most {MAIN_LINES}"))).into_iter().collect()
}

fn check(rule: fn(&Source) -> Vec<(usize, String)>, path: &str, text: &str, expect: &[&str]) {
    let found = rule(&Source::new(path, text));
    let found: Vec<_> = found.iter().map(|(line, what)| format!("{line}: {what}")).collect();
    assert_eq!(found, expect, "{path}");
}

#[test]
fn long_files_are_found() {
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// a\n".repeat(500));
    check(long_file, "src/a.rs", &("a();\n".repeat(400) + &tests), &[]);
    check(
        long_file,
        "src/a.rs",
        &(tests + &"a();\n".repeat(401)),
        &["1: 401 lines of code, at most 400: split it"],
    );
    check(long_file, LONG_FILES[0], &"a();\n".repeat(470), &[]);
    check(long_file, LONG_FILES[0], &"a();\n".repeat(471), &["1: 471 lines of code, at most 470: split it"]);
}

#[test]
fn long_functions_are_found() {
    let function = |inner: usize| format!("struct A;\nfn f(a: [u8; 2]) {{\n{}}}\n", "{ a; }\n".repeat(inner));
    check(long_functions, "src/a.rs", &function(88), &[]);
    check(long_functions, "tests/a.rs", &function(89), &["2: f has 91 lines, at most 90"]);
    let declared = format!("trait A {{ fn f();\n{} }}", "const A: fn(u8) = b;\n".repeat(100));
    check(long_functions, "src/a.rs", &declared, &[]);
}

#[test]
fn a_long_main_is_found() {
    check(long_main, "src/main.rs", &"a\n".repeat(20), &[]);
    check(long_main, "src/main.rs", &"a\n".repeat(21), &["1: 21 lines, at most 20"]);
    check(long_main, "src/cli/main.rs", &"a\n".repeat(21), &[]);
}
