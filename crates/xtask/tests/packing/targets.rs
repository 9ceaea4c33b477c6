//! The targets of rustup that a release needs: they are added, or the command that adds them is
//! said.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use moorline_test_support::programs::find;

use crate::support::{folder, word};

const OTHER: &str = "aarch64-unknown-linux-musl";

/// Writes a program for the shell.
fn script(path: &Path, lines: &str) {
    fs::write(path, format!("#!/bin/sh\n{lines}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can run");
}

/// Builds a release where a compiler without the library is on PATH, and returns what is said. It
/// never succeeds: no other program that a release needs is there.
fn build(programs: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["dist", "--target", OTHER, "--out", word(&programs.join("dist"))])
        .env("PATH", programs)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_missing_target_of_rustup_is_added_or_the_command_is_said() {
    let (Some(git), Some(mkdir)) = (find("git"), find("mkdir")) else { return };
    let programs = folder("missing-target");
    symlink(git, programs.join("git")).expect("a link");
    let library = programs.join("library");
    script(&programs.join("rustc"), &format!("echo {}", library.display()));
    let said = build(&programs);
    let part = format!("rustup is not on PATH: install rustup and run `rustup target add {OTHER}`");
    assert!(said.contains(&part), "{said}");

    // One that adds nothing, and one that adds the library.
    let (rustup, asked) = (programs.join("rustup"), programs.join("asked"));
    script(&rustup, &format!("echo \"$*\" >> {}", asked.display()));
    let said = build(&programs);
    assert!(said.contains("rustc on PATH is not the one of rustup"), "{said}");
    script(
        &rustup,
        &format!("echo \"$*\" >> {}; {} {}", asked.display(), mkdir.display(), library.display()),
    );
    let said = build(&programs);
    assert!(!said.contains("rustup") && !said.contains("library"), "{said}");
    let add = format!("target add {OTHER}\n");
    assert_eq!(fs::read_to_string(&asked).expect("it was asked"), add.repeat(2));
}
