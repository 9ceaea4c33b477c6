//! Checks that the folder of a mount is free in a revision.
//!
//! In: a revision, and the folders of mounts.
//! Out: the first thing of the repository that is in the place of one of them, or in its way.

use std::time::Instant;

use super::super::error::Error;
use super::super::revision::{ObjectHash, Revision};
use super::super::snapshot::{MODE_FOLDER, MODE_KIND, find, root};
use super::{JobNeed, Repository, RepositoryState};

/// File or folder of a repository that is in the place of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupiedPlace {
    /// Folder of the mount.
    pub mount: Box<str>,
    /// Path in the repository.
    pub path: Box<str>,
    /// True for a folder.
    pub is_folder: bool,
}

impl Repository {
    /// Returns what is in the place of one of these folders in `revision`; none if all are free.
    pub async fn occupied_place(
        &self,
        revision: &Revision,
        folders: Vec<Box<str>>,
        by: Instant,
    ) -> Result<Option<OccupiedPlace>, Error> {
        let (revision, need) = (revision.clone(), JobNeed::commit(revision.commit));
        let read = move |state: &mut RepositoryState| {
            state.with(&revision, by, |repository, commit| {
                for folder in &folders {
                    if let Some((path, is_folder)) = way_to(repository, commit, folder)? {
                        let mount = folder.clone();
                        return Ok(Some(OccupiedPlace { mount, path, is_folder }));
                    }
                }
                Ok(None)
            })
        };
        Ok(self.run(need, by, read).await?.0)
    }
}

/// Returns what is at a path, or the file, link or submodule on the way to it; true for a folder.
fn way_to(
    repository: &git2::Repository,
    commit: ObjectHash,
    path: &str,
) -> Result<Option<(Box<str>, bool)>, Error> {
    let root = root(repository, commit)?;
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    for front in ends.map(|end| &path[..end]) {
        match find(&root, front)? {
            Some((mode, _)) if mode & MODE_KIND == MODE_FOLDER && front.len() < path.len() => {}
            Some((mode, _)) => return Ok(Some((front.into(), mode & MODE_KIND == MODE_FOLDER))),
            None => break,
        }
    }
    Ok(None)
}
