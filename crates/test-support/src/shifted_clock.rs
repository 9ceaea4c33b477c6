//! A clock that a test can set, for a program that it starts.
//!
//! In: a folder.
//! Out: the library of `shifted_clock.c`, which a program loads first by `LD_PRELOAD`;
//! `TEST_CLOCK_SHIFT` names the file with the seconds.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::places;

/// Builds the library of the clock.
pub fn shifted_clock(folder: &Path) -> PathBuf {
    let library = folder.join("clock.so");
    let source = places::repository().join("crates/test-support/src/shifted_clock.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()), "cc builds a library");
    library
}
