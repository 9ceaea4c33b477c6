//! Places that Cargo names only to targets of the root package: the repository, the program under
//! test, and a folder for files of tests.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Folder of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate is two folders deep")
}

/// The program, which Cargo builds before the targets of the root package, beside their folder.
pub fn moorline() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let program = built(1).join("moorline");
        assert!(
            program.is_file(),
            "there is no {}: only a target of the root package has it",
            program.display()
        );
        program
    });
    &PROGRAM
}

/// Folder for files of tests, as `CARGO_TARGET_TMPDIR`.
pub fn temporary() -> PathBuf {
    let folder = built(2).join("tmp");
    std::fs::create_dir_all(&folder).expect("the target folder can be written to");
    folder
}

/// The folder so many levels above that of the running program, `target/PROFILE/deps`.
fn built(levels: usize) -> PathBuf {
    let running = std::env::current_exe().expect("a program knows its path");
    running.ancestors().nth(levels + 1).expect("Cargo builds into target/PROFILE/deps").to_owned()
}
