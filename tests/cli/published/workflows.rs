//! The workflows of the repository name only targets, programs and actions that there are, with no
//! more rights than they need.
//!
//! In: `.github/workflows`, the Makefile, and the scripts that install programs. Out: nothing, or
//! each fault with the workflow and the job.

use moorline_test_support::programs::{command, find};

use super::steps::{Job, commands, is_assignment, jobs, writes};
use super::{between, names, root, text};

/// Programs of every machine: those of POSIX, those that `.ci/run` expects, and the ways to install
/// others.
const EVERYWHERE: [&str; 16] = [
    ".ci/run", "apt-get", "cargo", "cp", "diff", "echo", "exit", "export", "git", "make", "mkdir", "rustup",
    "sed", "sh", "tar", "tr",
];
/// Programs of GitHub's machines that no other machine needs: a release is published only there.
const GITHUB: [&str; 1] = ["gh"];
/// Targets whose program a job has to install first, with `cargo install`.
const WITH_PROGRAM: [(&str, &str); 2] = [("fuzz", "cargo-fuzz"), ("deny", "cargo-deny")];
/// The only jobs that may write anything, and what.
const WRITERS: [(&str, &str, &str); 2] = [
    ("release.yml", "registry", "attestations id-token packages"),
    ("release.yml", "publish", "attestations contents id-token"),
];

fn all() -> Vec<(String, String)> {
    let names = names(".github/workflows", ".yml");
    assert_eq!(names, ["ci.yml", "nightly.yml", "release.yml"]);
    names.into_iter().map(|name| (name.clone(), text(&format!(".github/workflows/{name}")))).collect()
}

#[test]
fn actionlint_finds_no_fault() {
    let Some(actionlint) = find("actionlint") else { return };
    // Other programs that it would start, if they are there, are not part of the check.
    let mut check = command(&actionlint);
    let output = check.args(["-no-color", "-shellcheck=", "-pyflakes="]).current_dir(root()).output();
    let output = output.expect("actionlint starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn every_target_of_a_workflow_is_in_the_makefile() {
    let makefile = text("Makefile");
    let mut faults = Vec::new();
    for (workflow, yaml) in all() {
        for job in jobs(&yaml) {
            let found = job.commands.iter().filter_map(|words| made(words, &makefile).err());
            faults.extend(found.map(|fault| format!("{workflow}, {}: {fault}", job.name)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_workflow_makes_what_it_is_for() {
    let expected = [
        ("ci.yml", &["chart", "dist", "image", "site", "test-core", "test-minors", "tools"][..]),
        ("nightly.yml", &["deny", "dist", "fuzz", "simulation", "test-minors"]),
        ("release.yml", &["chart", "dist", "image", "release"]),
    ];
    for ((workflow, yaml), (name, targets)) in all().into_iter().zip(expected) {
        assert_eq!(workflow, name);
        let commands: Vec<Vec<String>> = jobs(&yaml).into_iter().flat_map(|job| job.commands).collect();
        let makes = |target: &&str| {
            commands.iter().any(|words| words[0] == "make" && words.iter().any(|word| word == target))
        };
        let unmade: Vec<&str> = targets.iter().copied().filter(|target| !makes(target)).collect();
        assert!(unmade.is_empty(), "{workflow} does not make {unmade:?}");
    }
    assert!(text(".github/workflows/ci.yml").contains("- run: .ci/run\n"), "ci.yml runs every test");
}

#[test]
fn a_workflow_starts_only_programs_that_are_there() {
    let mut faults = Vec::new();
    for (workflow, yaml) in all() {
        let found = jobs(&yaml).into_iter().flat_map(|job| missing(&job));
        faults.extend(found.map(|fault| format!("{workflow}, {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn actions_are_pinned_by_their_commit() {
    for (workflow, yaml) in all() {
        for line in yaml.lines().filter_map(|line| line.split_once("uses: ").map(|(_, action)| action)) {
            assert!(line.starts_with("./") || is_pinned(line), "{workflow}: {line}");
        }
    }
}

#[test]
fn a_workflow_reads_and_only_the_release_writes() {
    for (workflow, yaml) in all() {
        let whole: serde_yaml::Value = serde_yaml::from_str(&yaml).expect("YAML");
        assert_eq!(writes(&whole["permissions"]), Some(Vec::new()), "{workflow}");
        for job in jobs(&yaml) {
            let allowed = WRITERS.iter().find(|(file, name, _)| *file == workflow && *name == job.name);
            let writes = job.writes.unwrap_or_default().join(" ");
            assert_eq!(writes, allowed.map_or("", |(_, _, rights)| rights), "{workflow}, {}", job.name);
        }
    }
}

#[test]
fn nothing_that_is_released_comes_from_a_cache() {
    assert!(!text(".github/workflows/release.yml").contains("actions/cache@"));
}

#[test]
fn programs_have_the_versions_that_the_repository_builds_with() {
    let (tools, packaging) = (text(".ci/tools.sh"), text("crates/xtask/src/packaging/tools.rs"));
    let helm = between(&packaging, "HELM: (&str, &str) = (\"", "\"").expect("the version of helm");
    let go = between(&packaging, "GO: &str = \"go", "\"").expect("the version of Go");
    let mut rusts = Vec::new();
    for (workflow, yaml) in all() {
        assert_eq!(between(&yaml, "  GO: \"", "\""), Some(go), "{workflow}");
        rusts.push(between(&yaml, "  RUST: \"", "\"").expect("the version of Rust").to_owned());
        for words in jobs(&yaml).iter().flat_map(|job| &job.commands).filter(|words| words[0] == "go") {
            let module = words.last().expect("go install MODULE");
            let same = match module.rsplit('/').next().unwrap_or_default().split_once('@') {
                Some(("helm", version)) => version == helm,
                Some(("crane", _)) => tools.contains(module.as_str()),
                _ => true,
            };
            assert!(same, "{workflow}: {module} is not the version that the repository uses");
        }
    }
    rusts.dedup();
    assert_eq!(rusts.len(), 1, "{rusts:?}");
    let (oldest, built) = (env!("CARGO_PKG_RUST_VERSION"), rusts[0].rsplit_once('.').expect("a patch").0);
    assert_eq!(oldest, built, "a release is built by the oldest Rust that the README names");
}

/// `make TARGET... NAME=VALUE...`, with targets and variables of the Makefile.
fn made(words: &[String], makefile: &str) -> Result<(), String> {
    if words[0] != "make" {
        return Ok(());
    }
    let shown = words.join(" ");
    let mut arguments = words[1..].iter();
    while let Some(word) = arguments.next() {
        let known = match word.split_once('=') {
            _ if word == "-C" => arguments.next().is_some(),
            // The rest of an expression such as `${{ matrix.minor }}`.
            _ if word.starts_with("matrix.") || word == "}}" => true,
            Some((name, _)) if is_assignment(word) => makefile.contains(&format!("$({name})")),
            _ => makefile.lines().any(|line| line.starts_with(&format!("{word}:")) && line.contains(" ## ")),
        };
        if !known {
            return Err(format!("`{shown}`: the Makefile does not know {word}"));
        }
    }
    Ok(())
}

/// Commands of a job whose program neither is everywhere nor was installed by the job before.
fn missing(job: &Job) -> Vec<String> {
    let mut installed: Vec<String> = Vec::new();
    let mut missing = Vec::new();
    let has_go = job.actions.iter().any(|action| action.starts_with("actions/setup-go@"));
    for words in &job.commands {
        let (program, first) = (words[0].as_str(), words.get(1).map(String::as_str).unwrap_or_default());
        if first == "install" && program == "go" {
            let name = words.last().and_then(|module| module.rsplit('/').next()?.split('@').next());
            installed.extend(name.map(str::to_owned));
        }
        if first == "install" && program == "cargo" {
            installed.extend(words.get(2).cloned());
        }
        let is_installed = |name: &str| installed.iter().any(|one| one == name);
        let is_there = match program {
            "go" => has_go,
            "cargo" if ["mutants", "deny", "fuzz"].contains(&first) => {
                is_installed(&format!("cargo-{first}"))
            }
            "make" => WITH_PROGRAM.iter().all(|(target, name)| first != *target || is_installed(name)),
            _ => EVERYWHERE.contains(&program) || GITHUB.contains(&program) || is_installed(program),
        };
        let is_word = program.chars().next().is_some_and(|char| char.is_ascii_alphabetic() || char == '.');
        if is_word && !is_assignment(program) && !is_there {
            missing.push(format!("{}: no step installs what `{}` needs", job.name, words.join(" ")));
        }
    }
    missing
}

/// `OWNER/NAME@COMMIT # vVERSION`
fn is_pinned(action: &str) -> bool {
    let (name, version) = action.split_once(" # v").unwrap_or((action, ""));
    let commit = name.split_once('@').map(|(_, commit)| commit).unwrap_or_default();
    commit.len() == 40
        && commit.chars().all(|char| char.is_ascii_hexdigit())
        && version.split('.').count() == 3
}

#[test]
fn a_target_or_variable_that_is_not_there_is_found() {
    let makefile = "a b:\n\ntest: x ## all\n\techo $(SEEDS) $(addprefix --target ,$(TARGET))\n";
    let check = |script: &str| made(&commands(script)[0], makefile);
    assert_eq!(check("make test SEEDS=1 TARGET=x"), Ok(()));
    assert_eq!(check("make -C first/place test"), Ok(()));
    assert_eq!(check("echo tset"), Ok(()));
    assert!(check("make tset").is_err());
    assert!(check("make test SEED=1").is_err());
}

#[test]
fn a_program_that_nobody_installs_is_found() {
    let check = |steps: &str, expect: usize| {
        let found = missing(&jobs(&format!("jobs:\n  one:\n    steps:\n{steps}"))[0]);
        assert_eq!(found.len(), expect, "{steps}: {found:?}");
    };
    check("      - run: cargo build && make test\n", 0);
    check("      - run: cosign sign x\n", 1);
    check("      - run: go install example.com/cmd/cosign@v1\n      - run: cosign sign x\n", 1);
    let go = "      - uses: actions/setup-go@v6\n";
    check(&format!("{go}      - run: go install example.com/cmd/cosign@v1\n      - run: cosign sign x\n"), 0);
    check("      - run: make fuzz\n", 1);
    check("      - run: cargo install cargo-fuzz --locked\n      - run: make fuzz\n", 0);
}

#[test]
fn an_action_without_its_commit_is_found() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    assert!(is_pinned(&format!("a/b@{commit} # v1.2.3")));
    assert!(!is_pinned(&format!("a/b@{commit}")));
    assert!(!is_pinned("a/b@v1 # v1.2.3"));
}
