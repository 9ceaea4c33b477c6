//! A temporary folder for one command, on a machine that others use as well.
//!
//! It is always created by this process, readable by this user only, and removed on drop.

use std::fs::DirBuilder;
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The folder.
#[derive(Debug)]
pub(super) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub(super) fn new() -> anyhow::Result<Self> {
        // The keys of the hasher come from the operating system's random source, so the name cannot
        // be guessed.
        let name = format!("moorline-{:016x}", RandomState::new().hash_one(std::process::id()));
        let folder = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| format!("{}: cannot be created", folder.display()))?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A failure leaves temporary files only.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
