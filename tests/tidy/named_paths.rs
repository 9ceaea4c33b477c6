//! Checks that the documents about the code name only files that exist, and only items that are in
//! the named file.
//!
//! In: a document, its folder, and a function that looks up a path.
//! Out: the paths in backticks or links that do not exist; the items that their file does not have.

/// Folders of the repository that a path in a document begins with.
const ROOTS: [&str; 10] =
    ["benches/", "charts/", "config/", "crates/", "docs/", "examples/", "fuzz/", "src/", "tests/", ".ci/"];
/// Ends of a file name without a folder: a file beside the document, or beside the path before it.
const ENDS: [&str; 2] = [".rs", ".md"];

/// Finds the lines with a path that does not exist. A name without a folder, such as `writer.rs`, is
/// searched beside the document and beside the paths of its line.
pub(crate) fn missing(document: &str, folder: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in document.lines().enumerate() {
        let words: Vec<&str> = line.split(|char: char| !is_part(char)).map(trimmed).collect();
        let mut folders = vec![folder.to_owned()];
        let rooted: Vec<&str> = words.iter().copied().filter(|word| is_rooted(word)).collect();
        folders.extend(rooted.iter().filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())));
        for word in words {
            let file = ENDS.iter().any(|end| word.len() > end.len() && word.ends_with(end));
            let is_there = match is_rooted(word) {
                true => exists(word),
                false if file => folders.iter().any(|folder| exists(&joined(folder, word))),
                false => true,
            };
            // A placeholder such as tests/NAME.rs is no path.
            if !is_there && !word.contains("NAME") {
                found.push(format!("{}: {word}", index + 1));
            }
        }
    }
    found
}

/// Finds the lines with "`item` in `path`" whose file does not contain the name of the item. A path
/// without a folder, such as `round.rs`, is beside another path of its line.
pub(crate) fn missing_items(document: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in document.lines().enumerate() {
        let parts: Vec<&str> = line.split('`').collect();
        let quoted = |at: usize| parts.get(at).copied().unwrap_or_default();
        let folders = parts.iter().filter(|part| is_rooted(part));
        let folders: Vec<&str> = folders.filter_map(|path| Some(path.rsplit_once('/')?.0)).collect();
        for at in (1..parts.len()).step_by(2).filter(|at| quoted(at + 1) == " in ") {
            let (item, path) = (quoted(at), quoted(at + 2));
            let beside = || folders.iter().find_map(|folder| read(&joined(folder, path)));
            let Some(text) = read(path).or_else(beside) else { continue };
            let name = item.rsplit("::").next().unwrap_or(item);
            let mut words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
            if !words.any(|word| word == name) {
                found.push(format!("{}: {item} is not in {path}", index + 1));
            }
        }
    }
    found
}

fn is_part(char: char) -> bool {
    char.is_ascii_alphanumeric() || "/._-".contains(char)
}

fn trimmed(word: &str) -> &str {
    word.trim_end_matches('.')
}

fn is_rooted(word: &str) -> bool {
    ROOTS.iter().any(|root| word.starts_with(root))
}

/// Joins a folder and a relative path, with `..` resolved.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn a_path_that_is_gone_is_found() {
    let there = ["src/", "src/a.rs", "src/b/", "src/b/AGENTS.md", "src/b/c.rs", "README.md"];
    let check = |folder: &str, text: &str, expect: &[&str]| {
        assert_eq!(missing(text, folder, |path| there.contains(&path)), expect, "{text}");
    };
    check("", "`src/` has `src/a.rs`, (src/b/), and src/a.rs. See [README](README.md).", &[]);
    check("", "`src/b/c.rs`, and `AGENTS.md` beside it, tests/NAME.rs, 3.5, and/or", &[]);
    check("src/b", "`c.rs`, `../a.rs`, `../../README.md`", &[]);
    check("", "one\n`src/d.rs` and `src/a.rs`", &["2: src/d.rs"]);
    check("", "`c.rs` and [x](docs/gone.md)", &["1: c.rs", "1: docs/gone.md"]);
    check("src/b", "`a.rs`", &["1: a.rs"]);
}

#[test]
fn an_item_that_is_not_in_its_file_is_found() {
    let read = |path: &str| match path {
        "src/a.rs" => Some("pub fn poll() {}".to_owned()),
        "src/b.rs" => Some("struct Plan; fn replan() {}".to_owned()),
        _ => None,
    };
    let check = |text: &str, expect: &[&str]| assert_eq!(missing_items(text, read), expect, "{text}");
    check("| poll | `poll` in `src/a.rs` and `Plan` in `b.rs` |", &[]);
    check("`Sync::poll` in `src/a.rs`, `plan` in `src/gone.rs`", &[]);
    check("one\n`plan` in `src/b.rs`", &["2: plan is not in src/b.rs"]);
    check("`src/a.rs`: `poll` in `b.rs`", &["1: poll is not in b.rs"]);
}
