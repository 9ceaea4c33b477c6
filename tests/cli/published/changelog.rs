//! The changelog has what a release needs, and the script that prints its notes refuses a version
//! that is not ready.

use std::process::Command;

use super::{root, text};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_changelog_has_the_version_of_the_program() {
    let changelog = text("CHANGELOG.md");
    let sections: Vec<&str> = changelog.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(sections.first(), Some(&"## [Unreleased]"));
    // Before the first release, all entries are under Unreleased.
    let newest = sections.get(1).map(|section| section.starts_with(&format!("## [{VERSION}] - ")));
    assert!(newest != Some(false), "the newest section is not of {VERSION}: {sections:?}");
}

#[test]
fn notes_are_the_section_without_its_heading() {
    let section = "\n### Added\n\n- One.\n\n  More.\n\n";
    let (code, out, _) = notes(
        VERSION,
        &format!("# C\n\n## [{VERSION}] - 2026-02-28\n{section}## [0.0.9] - 2026-02-28\n- x\n"),
    );
    assert_eq!((code, out.as_str()), (0, "### Added\n\n- One.\n\n  More.\n"));
}

#[test]
fn a_version_that_is_not_ready_is_refused() {
    let check = |heading: &str, body: &str, expect: &str| {
        let (code, out, said) = notes(VERSION, &format!("# C\n\n## [{heading}\n{body}"));
        assert!(code == 1 && out.is_empty() && said.contains(expect), "{heading}: {code}, {out}, {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    check("99.0.0] - 2026-01-01", "- x\n", "has no section");
    check(&format!("{VERSION}] - unreleased"), "- x\n", "has no date");
    check(&format!("{VERSION}] 2026-01-01"), "- x\n", "has no date");
    check(&format!("{VERSION}] - 2026-02-29"), "- x\n", "has no date");
    check(&format!("{VERSION}] - 2999-01-01"), "- x\n", "is dated 2999-01-01, and today is");
    check(&format!("{VERSION}] - 2026-01-01"), "\n### Added\n\n## [0.0.1] - 2025-01-01\n- x\n", "is empty");
    check(&format!("{VERSION}] - 2026-01-01"), "- x\n## [0.0.1] - 2026-02-01\n- y\n", "is dated before");
    let again = format!("- x\n## [{VERSION}] - 2026-01-01\n- y\n");
    check(&format!("{VERSION}] - 2026-01-01"), &again, "two sections");
    let (code, _, said) = notes("99.0.0", "## [99.0.0] - 2026-01-01\n- x\n");
    assert!(code == 1 && said.contains("is not that of Cargo.toml"), "{said}");
}

/// Exit code, output and errors of the script.
fn notes(version: &str, changelog: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("CHANGELOG.md");
    std::fs::write(&file, changelog).expect("a file");
    let script = root().join(".ci/release-notes.sh");
    let output = Command::new("sh").arg(script).arg(version).arg(&file).output().expect("sh starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}
