//! Finds the helm program.
//!
//! In: a name or a path. Out: [`Program`], with an identity that changes with the program: another
//! version of helm may render other objects from the same chart.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::HelmError;

/// An executable program.
#[derive(Debug, Clone)]
pub(super) struct Program {
    path: PathBuf,
    identity: String,
}

impl Program {
    /// Finds the program of this name on PATH, or at this path.
    pub(super) fn find(named: &Path) -> Result<Self, HelmError> {
        let is_path = named.components().count() > 1;
        let on_path = std::env::var_os("PATH").filter(|_| !is_path).unwrap_or_default();
        let places = std::env::split_paths(&on_path).map(|folder| folder.join(named));
        let mut places = is_path.then(|| named.to_owned()).into_iter().chain(places);
        let found = places.find_map(|place| {
            let metadata =
                std::fs::metadata(&place).ok().filter(|it| it.is_file() && it.mode() & 0o111 != 0)?;
            // Helm runs in another folder, so a relative path would point to another file.
            Some((std::path::absolute(place).ok()?, metadata))
        });
        let Some((path, of)) = found else { return Err(HelmError::Missing { program: named.to_owned() }) };
        let identity = format!("{}\0{}\0{}\0{}\0", path.display(), of.len(), of.mtime(), of.mtime_nsec());
        Ok(Self { path, identity })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Identity: equal for the same program.
    pub(super) fn identity(&self) -> &[u8] {
        self.identity.as_bytes()
    }
}
