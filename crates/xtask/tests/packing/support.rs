//! The tool, and the binary that it packs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use moorline_test_support::programs::report_skipped;

/// Target of the binary on this machine, in the words of the table of targets.
pub(crate) const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

/// Architecture of this machine in the words of OCI.
pub(crate) const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

/// Time of everything that the tests pack.
const TIME: &str = "1700000000";

/// Runs a task.
pub(crate) fn xtask(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(arguments)
        .env("SOURCE_DATE_EPOCH", TIME)
        .env("MOORLINE_SOURCE", "https://example.com/moorline");
    command.output().expect("the tool starts")
}

/// Runs a task that succeeds, and returns what it printed.
pub(crate) fn done(arguments: &[&str]) -> String {
    let output = xtask(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs a task that fails, and returns its exit code and what it said.
pub(crate) fn refused(arguments: &[&str]) -> (i32, String) {
    let output = xtask(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The binary to pack, without what only a debugger reads.
pub(crate) fn binary() -> Option<&'static Path> {
    static BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    BINARY.get_or_init(stripped).as_deref()
}

fn stripped() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("MOORLINE_STATIC_BINARY") {
        return Some(path.into());
    }
    let folder = Path::new(env!("CARGO_BIN_EXE_xtask")).parent().expect("a folder");
    let (built, stripped) =
        (folder.join("moorline"), Path::new(env!("CARGO_TARGET_TMPDIR")).join("moorline"));
    if !built.is_file() {
        report_skipped("there is no moorline beside the tool; `cargo build` makes it");
        return None;
    }
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(&built).status().expect("strip starts");
    assert!(status.success(), "strip: {status}");
    Some(stripped)
}

/// Empty folder of one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A path as a word of a command line.
pub(crate) fn word(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}
