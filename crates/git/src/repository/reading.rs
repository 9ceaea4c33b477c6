//! The files of a revision, read for whoever names folders of it.
//!
//! In: a revision, folders, and what was read the last time. Out: [`Reading`], a snapshot unless nothing has changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::commit_words::{self, CommitWords};
use super::super::error::Error;
use super::super::revision::{ObjectHash, Revision};
use super::super::snapshot::{self, Ids, Snapshot};
use super::super::within::Within;
use super::{Need, Repository, State};
use moorline_runtime::clock;

/// What [`Repository::read_anew`] came to.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The files; none if they are as they were.
    pub snapshot: Option<Snapshot>,
    /// How long it took to fetch them, if they were not here.
    pub fetched: Option<Duration>,
    /// How long it took to read them.
    pub took: Duration,
}

impl Repository {
    /// The files below `folders` in `revision`, fetched if need be. Names are from the root; an empty one is the
    /// root itself. Links are recorded, and what they lead to inside the repository is read as well.
    pub async fn read(&self, revision: &Revision, folders: &[&str], by: Instant) -> Result<Snapshot, Error> {
        let snapshot = self.read_here(revision, folders, &Within::default(), by).await?;
        is_outside_of_modules(&snapshot, revision)?;
        Ok(snapshot)
    }

    pub(super) async fn read_here(
        &self,
        revision: &Revision,
        folders: &[&str],
        within: &Within,
        by: Instant,
    ) -> Result<Snapshot, Error> {
        let reading = self.read_again(revision, (folders, &[]), &Ids::new(), within, by).await?;
        // There is no earlier one that could be the same.
        reading.snapshot.ok_or(Error::Stopped)
    }

    /// The same, unless all ids of an earlier [`Snapshot`] of these folders still stand: then no file is read. What lies
    /// `beside` the folders is brought, too, as far as it is there; and no more `within` than there is room for.
    pub async fn read_anew(
        &self,
        revision: &Revision,
        (folders, beside): (&[&str], &[Box<str>]),
        earlier: &Ids,
        within: &Within,
        by: Instant,
    ) -> Result<Reading, Error> {
        let reading = self.read_again(revision, (folders, beside), earlier, within, by).await?;
        reading.snapshot.iter().try_for_each(|snapshot| is_outside_of_modules(snapshot, revision))?;
        Ok(reading)
    }

    pub(super) async fn read_again(
        &self,
        revision: &Revision,
        (folders, beside): (&[&str], &[Box<str>]),
        earlier: &Ids,
        within: &Within,
        by: Instant,
    ) -> Result<Reading, Error> {
        let (commit, folders, earlier) = (revision.commit, boxed(folders), earlier.clone());
        let (beside, memory) = (beside.to_vec(), &self.house.memory);
        let asked = Arc::new((folders, beside, earlier));
        loop {
            let (asked, of_job, of_memory) = (asked.clone(), within.clone(), memory.clone());
            let job = move |state: &mut State| {
                let (folders, beside, earlier) = &*asked;
                let begun = clock::now();
                let (snapshot, fetched) = state.with(commit, by, |repository| {
                    // Whatever is wrong with the ids, the reading says it better.
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
            let (read, fetched, took) = self.run(Need::commit(commit), by, job).await?;
            let snapshot = match read {
                Read::Same => None,
                Read::Anew(snapshot) => Some(snapshot),
                // The lock of the repository is free here: a Sync that has memory may need it before it gives any back.
                Read::Waits if memory.back(&within.room, by).await => continue,
                Read::Waits => return Err(Error::Crowded),
            };
            return Ok(Reading { snapshot, fetched, took });
        }
    }

    /// The ids of what lies at these paths in `revision`, none where nothing lies.
    pub async fn ids<'a>(
        &self,
        revision: &Revision,
        paths: impl IntoIterator<Item = &'a str>,
        by: Instant,
    ) -> Result<Ids, Error> {
        let (commit, paths) = (revision.commit, paths.into_iter().map(|path| (path.into(), None)).collect());
        let read = move |state: &mut State| state.with(commit, by, |it| snapshot::ids(it, commit, &paths));
        Ok(self.run(Need::commit(commit), by, read).await?.0)
    }

    /// The id of what lies at a path in `revision`, none where nothing lies; and the words of the commit.
    pub async fn place(
        &self,
        revision: &Revision,
        path: &str,
        by: Instant,
    ) -> Result<(Option<ObjectHash>, CommitWords), Error> {
        let (commit, paths) = (revision.commit, Ids::from([(path.into(), None)]));
        let read = move |state: &mut State| {
            state.with(commit, by, |it| {
                let found = snapshot::ids(it, commit, &paths)?;
                let words = commit_words::read(it, commit).unwrap_or_default();
                Ok((found.into_values().next().flatten(), words))
            })
        };
        Ok(self.run(Need::commit(commit), by, read).await?.0)
    }

    /// The author and the subject of `revision`; none if they cannot be read.
    pub async fn words(&self, revision: &Revision, by: Instant) -> Option<CommitWords> {
        let commit = revision.commit;
        let read = move |state: &mut State| state.with(commit, by, |it| Ok(commit_words::read(it, commit)));
        self.run(Need::commit(commit), by, read).await.ok()?.0
    }
}

/// The files of a commit, as far as they could be read.
enum Read {
    /// They are the same as before.
    Same,
    /// The files.
    Anew(Snapshot),
    /// There is no memory for them now. All else is there that a server could withhold.
    Waits,
}

/// Makes sure that no folder that was asked for lies in a submodule.
fn is_outside_of_modules(snapshot: &Snapshot, revision: &Revision) -> Result<(), Error> {
    let problem = "is in a submodule, which is not fetched (spec.source.git.submodules)";
    snapshot.inside.first().map_or(Ok(()), |path| Err(snapshot::no_path(path, problem, revision.commit)))
}

fn boxed(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|name| (*name).into()).collect()
}
