//! docs/troubleshooting.md has every reason that Moorline gives, and none that it does not.
//!
//! In: the code of the program and its crates, and the page. Out: nothing, or the words that one has and the other has not. A reason is
//! found where it is made: in the functions that are called `reason`, in fields of that name, in remarks, in the words for what
//! stays, and as variants of the enums of the API.

use std::collections::BTreeSet;
use std::path::Path;

/// Reasons that are not ours: the YAML reader's own classes are all reported as `YamlInvalid`, and the sandbox speaks as an API
/// server does.
const UNSEEN: [&str; 2] = ["crates/yaml/", "crates/sandbox/"];

/// The enums whose variants are reasons, each reported by where it is used.
const ENUMS: [&str; 3] = ["Reason::", "EventReason::", "FailureReason::"];

/// Files that declare them; the API server has an enum of the same name.
const DECLARED: [&str; 3] =
    ["crates/api/src/condition.rs", "crates/api/src/event.rs", "crates/engine/src/plan/outcome.rs"];

/// Calls before a reason that is a text of its own.
const MAKERS: [&str; 10] = [
    "Tone::Warning, ",
    "reason: ",
    "ErrorCause::Input(",
    "one(id, ",
    "remark(",
    "plain(",
    "Task::Leave(Err(",
    "Orphans::all(",
    ".all_stay(leaving, ",
    "\"\", definition), ",
];

#[test]
fn the_page_has_every_reason_and_no_other() {
    let mut made: BTreeSet<String> = moorline::cluster::answers().iter().map(|row| row[2].clone()).collect();
    let declared = DECLARED.map(|file| std::fs::read_to_string(root().join(file)).expect("a file")).concat();
    let folders = ["src", "crates"].into_iter().flat_map(|folder| sources(&root().join(folder)));
    for (_, text) in folders.filter(|(path, _)| !UNSEEN.iter().any(|unseen| path.starts_with(unseen))) {
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        made.extend(reasons(code, &declared));
    }
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the page");
    let told = told(&page);
    let missing: Vec<_> = made.difference(&told).collect();
    let too_many: Vec<_> = told.difference(&made).collect();
    assert!(
        missing.is_empty() && too_many.is_empty(),
        "docs/troubleshooting.md does not explain {missing:?}, and explains what nobody says: {too_many:?}"
    );
    assert!(told.len() > 100, "{told:?}");
}

#[test]
fn every_reason_is_explained_and_has_a_remedy() {
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the page");
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{line}");
    }
}

#[test]
fn every_renamed_reason_is_listed() {
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the page");
    let listed: Vec<&str> = page.lines().filter(|line| line.contains("` is now `")).collect();
    let renamed: Vec<String> =
        moorline::api::FORMER_REASONS.iter().map(|(was, now)| format!("- `{was}` is now `{now}`.")).collect();
    assert_eq!(listed, renamed);
    let (explained, renamed) = (told(&page), moorline::api::FORMER_REASONS);
    for (was, now) in renamed {
        assert!(explained.contains(*now) && !explained.contains(*was), "{was} is {now}");
    }
}

/// The reasons that a file makes; `declared` has the variants of the enums, a line each.
fn reasons(code: &str, declared: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // A function of that name, to the line that closes it.
    for (at, _) in code.match_indices("fn reason(") {
        let body = code[at..].split("\n    }\n").next().unwrap_or_default();
        found.extend(body.split('"').skip(1).step_by(2).filter(|text| is_reason(text)).map(str::to_owned));
    }
    for maker in MAKERS {
        for (at, _) in code.match_indices(maker) {
            // As far as the end of the statement.
            let rest = code[at + maker.len()..].split([';', '{', '\n']).next().unwrap_or_default();
            found.extend(rest.split('"').nth(1).filter(|text| is_reason(text)).map(str::to_owned));
        }
    }
    for name in ENUMS {
        for (at, _) in code.match_indices(name) {
            let variant: String =
                code[at + name.len()..].chars().take_while(char::is_ascii_alphanumeric).collect();
            found.extend(Some(variant).filter(|variant| declared.contains(&format!("    {variant},\n"))));
        }
    }
    found
}

/// True for one word in camel case.
fn is_reason(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_uppercase())
        && text.chars().any(|char| char.is_ascii_lowercase())
        && text.chars().all(|char| char.is_ascii_alphanumeric())
}

/// The words of the first columns of the page.
fn told(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file that is no test, with its path.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.strip_prefix(root()).expect("inside").to_string_lossy().into_owned();
        match entry.is_dir() {
            true => all.extend(sources(&entry)),
            false if name.ends_with(".rs") && !name.ends_with("/tests.rs") && !name.contains("/tests/") => {
                all.push((name, std::fs::read_to_string(&entry).expect("a file")));
            }
            false => {}
        }
    }
    all
}

#[test]
fn reasons_are_found_where_they_are_made() {
    let code = "    fn reason(&self) -> &'static str {\n        match self {\n            A => \"One\",\n        }\n    }\n\
        let x = Trouble { reason: \"Two\", message };\nremark(\"Three\", text);\n\
        (Reason::Four, EventReason::ALL, Reason::Strange)\nOrphans::all(Some(cluster), name, \"Five\");\n\
        let other = \"Six\"; assert!(reason == \"Seven\")";
    let expect = ["Five", "Four", "One", "Three", "Two"].map(str::to_owned);
    assert_eq!(reasons(code, "    Four,\n"), BTreeSet::from(expect));
    assert_eq!(told("| reason |\n| `One` | a | b |\ntext `Two`\n"), BTreeSet::from(["One".to_owned()]));
}
