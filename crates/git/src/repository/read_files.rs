//! Reads a revision: the files below some folders, and author and subject of the commit.
//!
//! In: a revision, folders, and the object ids of the last read.
//! Out: a [`ReadResult`], with a snapshot unless nothing has changed; or a [`CommitSummary`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::error::Error;
use super::super::revision::{ObjectHash, Revision};
use super::super::snapshot::{self, ObjectIds, Snapshot};
use super::{JobNeed, Repository, RepositoryState};
use crate::read_limits::ReadLimits;
use moorline_core::sanitize::sanitize;
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

/// Maximum number of characters of a subject and of a name.
const MAX_CHARACTERS: usize = 100;

/// The author and the subject of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitSummary {
    /// First line of the message.
    pub subject: String,
    /// Name of the author.
    pub author: String,
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
    /// Paths in `extra_folders` are included if they exist; `within` limits memory and selects the
    /// files.
    pub async fn read_changed(
        &self,
        revision: &Revision,
        (folders, extra_folders): (&[&str], &[Box<str>]),
        earlier: &ObjectIds,
        within: &ReadLimits,
        by: Instant,
    ) -> Result<ReadResult, Error> {
        let reading = self.read_again(revision, (folders, extra_folders), earlier, within, by).await?;
        reading.snapshot.iter().try_for_each(|snapshot| is_outside_of_modules(snapshot, revision))?;
        Ok(reading)
    }

    pub(super) async fn read_again(
        &self,
        revision: &Revision,
        (folders, extra_folders): (&[&str], &[Box<str>]),
        earlier: &ObjectIds,
        within: &ReadLimits,
        by: Instant,
    ) -> Result<ReadResult, Error> {
        let (folders, earlier) = (boxed(folders), earlier.clone());
        let (extra_folders, memory) = (extra_folders.to_vec(), &self.mirrors.memory);
        let asked = Arc::new((revision.clone(), folders, extra_folders, earlier));
        loop {
            let (asked, of_job, of_memory) = (asked.clone(), within.clone(), memory.clone());
            let job = move |state: &mut RepositoryState| {
                let (revision, folders, extra_folders, earlier) = &*asked;
                let begun = clock::now();
                let (snapshot, fetched) = state.with(revision, by, |repository, commit| {
                    // An error of the ids is reported better by the read.
                    let same = snapshot::ids(repository, commit, earlier).is_ok_and(|ids| ids == *earlier);
                    match same && !earlier.is_empty() {
                        true => Ok(Read::Same),
                        false if !of_memory.back_now(&of_job.memory_limit) => Ok(Read::Waits),
                        false => snapshot::read(repository, commit, folders, extra_folders, &of_job)
                            .map(Read::Anew),
                    }
                })?;
                let took = clock::since(begun).saturating_sub(fetched.unwrap_or_default());
                Ok((snapshot, fetched, took))
            };
            let (read, fetched, took) = self.run(JobNeed::commit(revision.commit), by, job).await?;
            let snapshot = match read {
                Read::Same => None,
                Read::Anew(snapshot) => Some(snapshot),
                // The lock of the repository is released here: a Sync that has memory may need it
                // before it returns any.
                Read::Waits if memory.back(&within.memory_limit, by).await => continue,
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
        let paths = paths.into_iter().map(|path| (path.into(), None)).collect();
        let (revision, need) = (revision.clone(), JobNeed::commit(revision.commit));
        let read = move |state: &mut RepositoryState| {
            state.with(&revision, by, |it, commit| snapshot::ids(it, commit, &paths))
        };
        Ok(self.run(need, by, read).await?.0)
    }

    /// Returns the id of the object at a path in `revision`, none if missing, and the commit's
    /// summary.
    pub async fn object_at(
        &self,
        revision: &Revision,
        path: &str,
        by: Instant,
    ) -> Result<(Option<ObjectHash>, CommitSummary), Error> {
        let paths = ObjectIds::from([(path.into(), None)]);
        let (revision, need) = (revision.clone(), JobNeed::commit(revision.commit));
        let read = move |state: &mut RepositoryState| {
            state.with(&revision, by, |it, commit| {
                let found = snapshot::ids(it, commit, &paths)?;
                let words = read_summary(it, commit).unwrap_or_default();
                Ok((found.into_values().next().flatten(), words))
            })
        };
        Ok(self.run(need, by, read).await?.0)
    }

    /// Returns the author and the subject of `revision`; none if they cannot be read.
    pub async fn commit_summary(&self, revision: &Revision, by: Instant) -> Option<CommitSummary> {
        let (revision, need) = (revision.clone(), JobNeed::commit(revision.commit));
        let read = move |state: &mut RepositoryState| {
            state.with(&revision, by, |it, commit| Ok(read_summary(it, commit)))
        };
        self.run(need, by, read).await.ok()?.0
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

/// Reads the summary of a commit; none if it cannot be read.
fn read_summary(repository: &git2::Repository, commit: ObjectHash) -> Option<CommitSummary> {
    let commit = repository.find_commit(commit.oid()).ok()?;
    let subject = clean(commit.summary_bytes().unwrap_or_default());
    Some(CommitSummary { subject, author: clean(commit.author().name_bytes()) })
}

fn clean(text: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(text).chars().filter(|char| !is_unseen(*char)).collect();
    let text = sanitize(text.trim());
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// True for a character without width, or one that only affects the display of others.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bounded_and_harmless() {
        assert_eq!(clean(b" Add the shop\n"), "Add the shop");
        assert_eq!(clean(b"\x1b[31mred\x07"), "\u{fffd}[31mred\u{fffd}");
        assert_eq!(clean("a\u{202e}b\u{2066}c".as_bytes()), "a\u{fffd}b\u{fffd}c");
        assert_eq!(clean("ad\u{200b}m\u{feff}in\u{200d}\u{61c}".as_bytes()), "admin");
        assert_eq!(clean(b"caf\xe9"), "caf\u{fffd}");
        assert_eq!(clean("é".repeat(200).as_bytes()), "é".repeat(100) + "…");
        assert_eq!(clean("é".repeat(100).as_bytes()), "é".repeat(100));
    }
}
