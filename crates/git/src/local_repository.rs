//! A repository on the local disk, read in place: nothing is copied or written.
//!
//! In: its path.
//! Out: revisions and snapshots. Only commits count; uncommitted changes are ignored.

use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository};

use super::error::Error;
use super::mirror::{no_reference, parents};
use super::revision::{AdvertisedRef, History, ObjectHash, Reference, Revision};
use crate::ancestry::relate;
use crate::upload_pack::MAX_REFS;

/// A repository on the local disk.
#[derive(Debug)]
pub(super) struct LocalRepository {
    path: PathBuf,
}

impl LocalRepository {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Resolves `reference` to its current revision.
    pub(super) fn resolve(&self, reference: &Reference) -> Result<Revision, Error> {
        let repository = open(&self.path)?;
        let listed = match reference {
            Reference::Head => vec![self.head(&repository)?],
            Reference::Branch(_)
            | Reference::Tag(_)
            | Reference::Named(_)
            | Reference::Semver(_)
            | Reference::Artifact(_) => self.list(&repository).map_err(|error| self.unreadable(&error))?,
            Reference::Commit(commit) => {
                self.has(&repository, *commit)?;
                Vec::new()
            }
        };
        reference.choose(&listed).ok_or_else(|| no_reference(reference, &listed))
    }

    /// Calls `read`, if `commit` exists.
    pub(super) fn with<T>(
        &self,
        commit: ObjectHash,
        read: impl Fn(&Repository) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let repository = open(&self.path)?;
        self.has(&repository, commit)?;
        read(&repository)
    }

    /// Relates `old` and `new`.
    pub(super) fn history(&self, old: ObjectHash, new: ObjectHash) -> Result<History, Error> {
        let repository = open(&self.path)?;
        Ok(relate(old, new, |commit| parents(&repository, commit)))
    }

    fn has(&self, repository: &Repository, commit: ObjectHash) -> Result<(), Error> {
        match repository.find_commit(commit.oid()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::NoCommit { commit: commit.to_string().into() }),
        }
    }

    fn head(&self, repository: &Repository) -> Result<AdvertisedRef, Error> {
        let head = match repository.head() {
            Ok(head) => head,
            Err(error) if error.code() == ErrorCode::UnbornBranch => return Err(Error::Empty),
            Err(error) => return Err(self.unreadable(&error)),
        };
        let commit = head.peel_to_commit().map_err(|error| self.unreadable(&error))?;
        let symbolic = head.name().ok().filter(|name| *name != "HEAD").map(Into::into);
        Ok(AdvertisedRef { name: "HEAD".into(), id: ObjectHash::of(commit.id()), peeled: None, symbolic })
    }

    fn list(&self, repository: &Repository) -> Result<Vec<AdvertisedRef>, git2::Error> {
        let mut listed = Vec::new();
        for found in repository.references()?.take(MAX_REFS) {
            let found = found?;
            let (Ok(name), Some(id)) = (found.name(), found.target()) else { continue };
            let Ok(commit) = found.peel_to_commit() else { continue };
            let peeled = (commit.id() != id).then(|| ObjectHash::of(commit.id()));
            let id = ObjectHash::of(id);
            listed.push(AdvertisedRef { name: name.into(), id, peeled, symbolic: None });
        }
        Ok(listed)
    }

    fn unreadable(&self, error: &git2::Error) -> Error {
        unreadable(&self.path, error)
    }
}

/// Opens the repository at `path`, or the one in its `.git`; never one in a parent folder.
pub(super) fn open(path: &Path) -> Result<Repository, Error> {
    Repository::open(path).map_err(|error| unreadable(path, &error))
}

/// Returns the reason for which a folder is not a repository; none if it is one.
pub fn why_not_a_repository(path: &Path) -> Option<String> {
    let shown = path.display();
    match path.metadata() {
        Err(error) => Some(format!("there is no folder {shown}: {error}")),
        Ok(_) => open(path).err().map(|_| format!("{shown} is not a Git repository; `git init` creates one")),
    }
}

/// Returns the URLs of the remotes of a work tree; empty without remotes, or if it is no
/// repository.
pub fn remotes(work_tree: &Path) -> Vec<String> {
    let Ok(repository) = open(work_tree) else { return Vec::new() };
    let names: Vec<String> = match repository.remotes() {
        Ok(names) => names.iter().flatten().flatten().take(MAX_REFS).map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    };
    let url = |name: &String| repository.find_remote(name).ok()?.url().ok().map(str::to_owned);
    names.iter().filter_map(url).collect()
}

fn unreadable(path: &Path, error: &git2::Error) -> Error {
    let cause = match error.code() {
        ErrorCode::Owner => {
            "it belongs to another user; `git config --global --add safe.directory PATH` allows it"
        }
        _ => error.message(),
    };
    Error::Local { path: path.display().to_string().into(), cause: cause.into() }
}
