//! Reads the files of a revision, below some folders.
//!
//! In: a revision, folders, and the object ids of the last read.
//! Out: a [`ReadResult`], with a snapshot unless nothing has changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::error::Error;
use super::super::revision::{ObjectHash, Revision};
use super::super::snapshot::{self, ObjectIds, Snapshot};
use super::{JobNeed, Repository, State};
use crate::commit_summary;
use crate::commit_summary::CommitSummary;
use crate::read_limits::ReadLimits;
use moorline_runtime::clock;

/// Result of [`Repository::read_changed`].
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// The files; none if they are unchanged.
    pub snapshot: Option<Snapshot>,
    /// Duration of the fetch, if one was necessary.
    pub fetched: Option<Duration>,
    /// Duration of the read.
    pub took: Duration,
}

impl Repository {
    /// Reads the files below `folders` in `revision`, fetched if necessary. Paths are from the
    /// root; an empty one is the root. Links are recorded, and their targets inside the repository
    /// are read as well.
    pub async fn read(&self, revision: &Revision, folders: &[&str], by: Instant) -> Result<Snapshot, Error> {
        let snapshot = self.read_here(revision, folders, &ReadLimits::default(), by).await?;
        is_outside_of_modules(&snapshot, revision)?;
        Ok(snapshot)
    }

    pub(super) async fn read_here(
        &self,
        revision: &Revision,
        folders: &[&str],
        within: &ReadLimits,
        by: Instant,
    ) -> Result<Snapshot, Error> {
        let reading = self.read_again(revision, (folders, &[]), &ObjectIds::new(), within, by).await?;
        // There is no earlier snapshot to compare with.
        reading.snapshot.ok_or(Error::Stopped)
    }

    /// Reads the files unless all ids of an earlier [`Snapshot`] of these folders are unchanged.
    /// Paths in `beside` are included if they exist; `within` limits the memory and selects the
    /// files.
    pub async fn read_changed(
        &self,
        revision: &Revision,
        (folders, beside): (&[&str], &[Box<str>]),
        earlier: &ObjectIds,
        within: &ReadLimits,
        by: Instant,
    ) -> Result<ReadResult, Error> {
        let reading = self.read_again(revision, (folders, beside), earlier, within, by).await?;
        reading.snapshot.iter().try_for_each(|snapshot| is_outside_of_modules(snapshot, revision))?;
        Ok(reading)
    }

    pub(super) async fn read_again(
        &self,
        revision: &Revision,
        (folders, beside): (&[&str], &[Box<str>]),
        earlier: &ObjectIds,
        within: &ReadLimits,
        by: Instant,
    ) -> Result<ReadResult, Error> {
        let (commit, folders, earlier) = (revision.commit, boxed(folders), earlier.clone());
        let (beside, memory) = (beside.to_vec(), &self.house.memory);
        let asked = Arc::new((folders, beside, earlier));
        loop {
            let (asked, of_job, of_memory) = (asked.clone(), within.clone(), memory.clone());
            let job = move |state: &mut State| {
                let (folders, beside, earlier) = &*asked;
                let begun = clock::now();
                let (snapshot, fetched) = state.with(commit, by, |repository| {
                    // An error of the ids is reported better by the read.
                    let same = snapshot::ids(repository, commit, earlier).is_ok_and(|ids| ids == *earlier);
                    match same && !earlier.is_empty() {
                        true => Ok(Read::Same),
                        false if !of_memory.back_now(&of_job.room) => Ok(Read::Waits),
                        false => snapshot::read(repository, commit, folders, beside, &of_job).map(Read::Anew),
                    }
                })?;
                let took = clock::since(begun).saturating_sub(fetched.unwrap_or_default());
                Ok((snapshot, fetched, took))
            };
            let (read, fetched, took) = self.run(JobNeed::commit(commit), by, job).await?;
            let snapshot = match read {
                Read::Same => None,
                Read::Anew(snapshot) => Some(snapshot),
                // The lock of the repository is released here: a Sync that has memory may need it
                // before it returns any.
                Read::Waits if memory.back(&within.room, by).await => continue,
                Read::Waits => return Err(Error::NoMemory),
            };
            return Ok(ReadResult { snapshot, fetched, took });
        }
    }

    /// Returns the ids of the objects at these paths in `revision`; none for missing paths.
    pub async fn ids<'a>(
        &self,
        revision: &Revision,
        paths: impl IntoIterator<Item = &'a str>,
        by: Instant,
    ) -> Result<ObjectIds, Error> {
        let (commit, paths) = (revision.commit, paths.into_iter().map(|path| (path.into(), None)).collect());
        let read = move |state: &mut State| state.with(commit, by, |it| snapshot::ids(it, commit, &paths));
        Ok(self.run(JobNeed::commit(commit), by, read).await?.0)
    }

    /// Returns the id of the object at a path in `revision`, none if missing, and the commit's
    /// summary.
    pub async fn object_at(
        &self,
        revision: &Revision,
        path: &str,
        by: Instant,
    ) -> Result<(Option<ObjectHash>, CommitSummary), Error> {
        let (commit, paths) = (revision.commit, ObjectIds::from([(path.into(), None)]));
        let read = move |state: &mut State| {
            state.with(commit, by, |it| {
                let found = snapshot::ids(it, commit, &paths)?;
                let words = commit_summary::read(it, commit).unwrap_or_default();
                Ok((found.into_values().next().flatten(), words))
            })
        };
        Ok(self.run(JobNeed::commit(commit), by, read).await?.0)
    }

    /// Returns the author and the subject of `revision`; none if they cannot be read.
    pub async fn commit_summary(&self, revision: &Revision, by: Instant) -> Option<CommitSummary> {
        let commit = revision.commit;
        let read = move |state: &mut State| state.with(commit, by, |it| Ok(commit_summary::read(it, commit)));
        self.run(JobNeed::commit(commit), by, read).await.ok()?.0
    }
}

/// Outcome of a read.
enum Read {
    /// The files are unchanged.
    Same,
    /// The files.
    Anew(Snapshot),
    /// There is no memory for them now. No server is needed any more.
    Waits,
}

/// Checks that no requested folder is in a submodule.
fn is_outside_of_modules(snapshot: &Snapshot, revision: &Revision) -> Result<(), Error> {
    let problem = "is in a submodule, which is not fetched (spec.source.git.submodules)";
    snapshot.inside.first().map_or(Ok(()), |path| Err(snapshot::no_path(path, problem, revision.commit)))
}

fn boxed(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|name| (*name).into()).collect()
}
