//! Compares everything that is written twice: the README, pages of `docs/`, Cargo.toml, the Makefile,
//! `.ci/run` and `config/`.
//!
//! Each comparison is a function over texts, so that the tests beside it can show it a difference.

mod advisories;
mod opponents;

use std::fs;
use std::path::Path;

pub(crate) mod kinds;

fn text(path: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(place).unwrap_or_else(|error| panic!("{path} is compared with other files: {error}"))
}

#[test]
fn the_readme_names_the_oldest_rust() {
    let oldest = same_oldest_rust(&text("README.md"), env!("CARGO_PKG_RUST_VERSION"));
    assert_eq!(oldest, Ok(()));
}

#[test]
fn ci_runs_the_readme_s_test_command() {
    assert_eq!(same_test_command(&text("README.md"), &text(".ci/run")), Ok(()));
}

#[test]
fn the_readme_s_targets_exist() {
    for page in ["README.md", "CONTRIBUTING.md", "docs/install.md"] {
        assert_eq!(targets_exist(&text(page), &text("Makefile")), Ok(()), "{page}");
    }
}

#[test]
fn every_target_is_explained() {
    assert_eq!(targets_explained(&text("Makefile")), Ok(()));
}

#[test]
fn the_readme_shows_the_table_of_exit_codes() {
    let table: Vec<(u8, &str)> =
        moorline::cli::exit::TABLE.iter().map(|(exit, meaning)| (exit.code(), *meaning)).collect();
    assert_eq!(same_exit_codes(&text("docs/cli.md"), &table), Ok(()));
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_docs() {
    let (readme, comparison) = (text("README.md"), text("docs/comparison.md"));
    let table = readme.lines().skip_while(|line| !line.starts_with("| 1,000 objects |"));
    let shown: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    let measured: Vec<&str> = comparison.lines().filter(|line| line.starts_with('|')).collect();
    assert!(shown.len() > 3, "{shown:?}");
    assert_eq!(shown.iter().find(|row| !measured.contains(row)), None);
}

#[test]
fn the_paths_of_the_architecture_exist() {
    let exists = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists();
    assert_eq!(paths_exist(&text("ARCHITECTURE.md"), exists), Ok(()));
}

#[test]
fn every_annotation_that_counts_is_in_the_readme() {
    use moorline::api;
    // Annotations that Moorline writes itself, or that belong on a Sync or on what it was made from.
    let others = [
        api::ADOPTED_FROM_ANNOTATION,
        api::APPROVE_ANNOTATION,
        api::APPROVED_BY_ANNOTATION,
        api::BEFORE_ADOPTION_ANNOTATION,
        api::DELETION_ANNOTATION,
        api::HOLD_BY_ANNOTATION,
        api::HOLD_REASON_ANNOTATION,
        api::HOLD_REVISION_ANNOTATION,
        api::ID_ANNOTATION,
        api::JOURNAL_ANNOTATION,
        api::MOVES_TO_ANNOTATION,
        api::OVERRIDE_ANNOTATION,
        api::OVERRIDE_BY_ANNOTATION,
        api::OVERRIDE_REASON_ANNOTATION,
        api::PROOF_ANNOTATION,
        api::REQUEST_ANNOTATION,
        api::REQUESTED_BY_ANNOTATION,
        api::SPEC_HASH_ANNOTATION,
        api::SUSPEND_BY_ANNOTATION,
        api::SYNC_SET_ANNOTATION,
        api::SYNC_SET_HASH_ANNOTATION,
        api::VERSION_ANNOTATION,
    ];
    let page = text("docs/annotations.md");
    for key in api::ANNOTATIONS.iter().filter(|key| !others.contains(key)) {
        assert!(page.contains(&format!("`{key}: ")), "docs/annotations.md does not explain {key}");
    }
}

#[test]
fn every_action_of_the_console_is_in_the_list_of_what_the_daemon_does_for_people() {
    use moorline::serve::actions::ActionKind;
    let page = text("docs/console-rights.md");
    let part = |from: &str, to: &str| {
        let rest = page.split_once(from).expect("a table").1;
        rest.split(to).next().unwrap_or_default().to_owned()
    };
    let rights = |kind: ActionKind| match kind.verb() {
        Some(verb) => format!("| `{}` | verb `{verb}` on Syncs |", kind.name()),
        None => format!("| `{}` | `patch` on the workload |", kind.name()),
    };
    let names = |table: &str| -> Vec<String> {
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        rows.map(str::to_owned).collect()
    };
    let all = ActionKind::ALL.map(|kind| kind.name().to_owned());
    let acts = part("\n## Act\n", "\n## ");
    assert_eq!(names(&acts), all);
    assert_eq!(names(&part("<!-- beyond -->", "<!-- end of beyond -->")), all);
    for kind in ActionKind::ALL {
        assert!(acts.contains(&rights(kind)), "docs/console-rights.md: {}", rights(kind));
    }
}

#[test]
fn the_readme_explains_every_event() {
    let page = text("docs/events.md");
    let (_, events) = page.split_once("\n## Reasons\n").expect("a section");
    let rows =
        events.split("\n## ").next().unwrap_or_default().lines().filter(|line| line.starts_with("| `"));
    let told: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(told, moorline::api::EventReason::ALL.map(|reason| reason.to_string()));
}

#[test]
fn the_readme_shows_every_verb() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_moorline")).arg("--help").output();
    let help = String::from_utf8(help.expect("the binary runs").stdout).expect("help is text");
    let verbs =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs = verbs.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help");
    let verbs: Vec<&str> = verbs.collect();
    assert!(verbs.contains(&"render"), "{help}");
    for verb in verbs {
        assert!(
            text("docs/cli.md").contains(&format!("moorline {verb} ")),
            "docs/cli.md does not show {verb}"
        );
    }
}

#[test]
fn the_definition_in_config_is_the_printed_one() {
    for kind in ["syncs", "notifiers", "syncsets", "changewindows", "namespacechangewindows"] {
        let printed = std::process::Command::new(env!("CARGO_BIN_EXE_moorline")).args(["crd", kind]).output();
        let printed = String::from_utf8(printed.expect("the binary runs").stdout).expect("YAML is text");
        let file = format!("config/crd/moorline.dev_{kind}.yaml");
        assert!(
            printed == text(&file),
            "{file} is not what the binary prints; update both with\n\n    MOORLINE_WRITE_DOCS=1 cargo test -p moorline-api\n"
        );
    }
}

#[test]
fn the_kinds_in_the_docs_are_those_of_the_rules() {
    let (document, tables) = (text("docs/health.md"), kinds::tables());
    let start = document.find(kinds::OPEN).expect("docs/health.md has the first marker");
    let end = document.find(kinds::CLOSE).expect("docs/health.md has the last marker") + kinds::CLOSE.len();
    if std::env::var_os("MOORLINE_WRITE_DOCS").is_some_and(|value| value == "1") {
        let written = format!("{}{tables}{}", &document[..start], &document[end..]);
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/health.md"), written)
            .expect("it can be written");
        return;
    }
    assert!(
        document[start..end] == tables,
        "the tables of docs/health.md are not those of the rules; write them anew with\n\n    \
         MOORLINE_WRITE_DOCS=1 cargo test --test cli documents::the_kinds\n"
    );
}

#[test]
fn the_sample_shows_every_field_of_a_sync() {
    let sample = text("config/samples/sync.yaml");
    let words: Vec<&str> = sample.split(|char: char| !char.is_alphanumeric() && char != ':').collect();
    let definition = moorline::api::definition().expect("the definition is JSON");
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let mut open = vec![definition.pointer(spec).expect("a schema of the spec")];
    while let Some(schema) = open.pop() {
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            assert!(words.contains(&format!("{name}:").as_str()), "the sample does not show {name}");
            open.extend([property, &property["items"]]);
        }
    }
}

/// Every `Rust 1.…` of the README is the `rust-version` of Cargo.toml, and there is one.
fn same_oldest_rust(readme: &str, oldest: &str) -> Result<(), String> {
    let named = readme.match_indices("Rust 1.").map(|(at, _)| version(&readme[at + "Rust ".len()..]));
    let named: Vec<_> = named.collect();
    match named.iter().find(|named| **named != oldest) {
        Some(other) => Err(format!("the README names Rust {other}, Cargo.toml {oldest}")),
        None if named.is_empty() => Err(format!("the README does not say `Rust {oldest}`")),
        None => Ok(()),
    }
}

/// The last command of `.ci/run` stands in a block of code under a heading of the README about tests.
fn same_test_command(readme: &str, script: &str) -> Result<(), String> {
    let command = script.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with('#'));
    let command = command.ok_or(".ci/run runs nothing")?;
    let (mut code, mut tests) = (false, false);
    for line in readme.lines() {
        match line {
            _ if line.starts_with("```") => code = !code,
            _ if code && tests && command_of(line) == command => return Ok(()),
            _ if !code && line.starts_with('#') => tests = line.to_lowercase().contains("test"),
            _ => {}
        }
    }
    Err(format!("the README has no block of code with `{command}` under a heading about tests"))
}

/// A line of a block of code without its remark.
fn command_of(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim()
}

/// Every `make target` in the code of the README is a target of the Makefile.
fn targets_exist(readme: &str, makefile: &str) -> Result<(), String> {
    let targets = targets(makefile);
    let mut code = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            code = !code;
            continue;
        }
        let inline = line.split('`').skip(1).step_by(2);
        let commands: Vec<&str> = if code { vec![command_of(line)] } else { inline.collect() };
        for command in commands {
            let mut words = command.split_whitespace();
            let made = if words.next() == Some("make") { words } else { "".split_whitespace() };
            let unknown = made.filter(|word| !word.contains('=')).find(|word| !targets.contains(word));
            if let Some(unknown) = unknown {
                return Err(format!("the README says `{command}`; the Makefile has no target {unknown}"));
            }
        }
    }
    Ok(())
}

/// Every target has a word for `make help`, and is one that never is a file.
fn targets_explained(makefile: &str) -> Result<(), String> {
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).ok_or("no .PHONY")?;
    let phony: Vec<_> = phony.split_whitespace().collect();
    let explained = makefile.lines().filter(|line| line.contains(" ## ")).filter_map(target);
    let explained: Vec<_> = explained.collect();
    let targets = targets(makefile);
    match targets.iter().find(|target| !phony.contains(target) || !explained.contains(target)) {
        Some(target) => Err(format!("{target} is not in .PHONY, or not explained after ##")),
        None if phony.len() != targets.len() => Err(".PHONY names something that is no target".to_owned()),
        None => Ok(()),
    }
}

fn targets(makefile: &str) -> Vec<&str> {
    makefile.lines().filter_map(target).collect()
}

/// The target that a line of a Makefile begins.
fn target(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(':')?;
    let is_name = name.starts_with(char::is_lowercase)
        && name.chars().all(|char| char.is_ascii_lowercase() || char == '-')
        && !rest.starts_with('=');
    is_name.then_some(name)
}

/// The version number that a text begins with.
fn version(text: &str) -> &str {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// The README's table of exit codes (between `<!-- exit codes -->` and the next blank line) has the rows of the
/// program's own: the code and its meaning, in the same words.
fn same_exit_codes(readme: &str, codes: &[(u8, &str)]) -> Result<(), String> {
    const MARKER: &str = "<!-- exit codes -->";
    let rows = codes.iter().map(|(code, meaning)| format!("| {code} | {meaning} |"));
    let expect = format!("{MARKER}\n| code | meaning |\n|---|---|\n{}", rows.collect::<Vec<_>>().join("\n"));
    let shown =
        readme.find(MARKER).map(|at| readme[at..].split("\n\n").next().unwrap_or_default().trim_end());
    match shown {
        Some(shown) if shown == expect => Ok(()),
        _ => Err(format!("the README's table of exit codes is not this one:\n\n{expect}\n")),
    }
}

/// Every path below `src/` that a document names is there, and it names some. A folder is named with a slash at its end.
fn paths_exist(document: &str, exists: impl Fn(&str) -> bool) -> Result<(), String> {
    let inside = |char: char| char.is_ascii_alphanumeric() || "/._-".contains(char);
    let words = document.split(|char: char| !inside(char));
    let paths = words.filter(|word| word.starts_with("src/")).map(|word| word.trim_end_matches('.'));
    let paths: Vec<&str> = paths.collect();
    match paths.iter().find(|path| !exists(path)) {
        Some(gone) => Err(format!("{gone} is named and does not exist")),
        None if paths.is_empty() => Err("no path below src/ is named".to_owned()),
        None => Ok(()),
    }
}

#[test]
fn a_path_that_is_gone_is_found() {
    let exists = |path: &str| ["src/", "src/a.rs", "src/b/"].contains(&path);
    assert_eq!(paths_exist("`src/` has `src/a.rs`: as (src/b/), and src/a.rs.", exists), Ok(()));
    let gone = Err("src/c.rs is named and does not exist".to_owned());
    assert_eq!(paths_exist("- `src/a.rs`\n- x: `src/c.rs`; y: `src/b/`", exists), gone);
    assert!(paths_exist("nothing", exists).is_err());
}

#[test]
fn another_rust_in_the_readme_is_found() {
    assert_eq!(same_oldest_rust("Needs Rust 1.95. (Rust 1.95)", "1.95"), Ok(()));
    let other = "the README names Rust 1.94, Cargo.toml 1.95".to_owned();
    assert_eq!(same_oldest_rust("Rust 1.95 or Rust 1.94.", "1.95"), Err(other));
    assert!(same_oldest_rust("Rust", "1.95").is_err());
}

#[test]
fn another_test_command_is_found() {
    let readme =
        "# A\n## Testing\n```sh\n# all\nmake test   # minutes\n```\n## More\n```sh\ncargo test\n```\n";
    assert_eq!(same_test_command(readme, "#!/bin/sh\nset -e\nmake test\n# end\n"), Ok(()));
    assert!(same_test_command(readme, "make test-core\n").is_err());
    assert!(same_test_command(readme, "cargo test\n").is_err(), "it stands under another heading");
    assert!(same_test_command("## Tests\nmake test\n", "make test").is_err(), "it is no code");
}

#[test]
fn unknown_targets_are_found() {
    let makefile = ".PHONY: test deny\nCARGO := a\ntest: x ## all\n\tmake: no\ndeny: ## b\n";
    assert_eq!(targets(makefile), ["test", "deny"]);
    assert_eq!(targets_explained(makefile), Ok(()));
    assert!(targets_explained(&makefile.replace(" ## all", "")).is_err());
    assert!(targets_explained(&makefile.replace(" deny\n", "\n")).is_err());
    assert!(targets_explained(&makefile.replace(" deny\n", " deny gone\n")).is_err());

    assert_eq!(
        targets_exist("`make test` and make sense\n```\nmake deny A=1 # x\ncargo\n```", makefile),
        Ok(())
    );
    assert!(targets_exist("run `make tset`", makefile).is_err());
    assert!(targets_exist("```sh\nmake test denied\n```", makefile).is_err());
}

#[test]
fn another_table_of_exit_codes_is_found() {
    let codes = [(0, "done"), (2, "wrong usage")];
    let readme =
        "<!-- exit codes -->\n| code | meaning |\n|---|---|\n| 0 | done |\n| 2 | wrong usage |\n\nMore.";
    assert_eq!(same_exit_codes(readme, &codes), Ok(()));
    assert!(same_exit_codes(readme, &codes[..1]).is_err());
    assert!(same_exit_codes(&readme.replace("done", "fine"), &codes).is_err());
    assert!(same_exit_codes("", &codes).is_err());
}

#[test]
fn the_table_of_answers_is_the_one_in_the_code() {
    let rows = moorline::cluster::answers();
    let lines: String =
        rows.iter().map(|row| format!("| {} |\n", row.join(" | ").replace("  ", " "))).collect();
    let shown = text("docs/answers.md");
    assert!(shown.contains(&lines), "docs/answers.md does not show the table:\n\n{lines}");
}
