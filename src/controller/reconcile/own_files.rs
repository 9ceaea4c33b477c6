//! Reads the files of the repository itself, without those of mounts and remote bases.
//!
//! In: a revision, the paths that a render needs, and the object ids of the last read. Out: a
//! snapshot, with the files of Git LFS that are on disk; none if nothing has changed. Each read is
//! measured.

use std::collections::BTreeSet;
use std::time::Instant;

use super::lfs_files::LfsFetches;
use super::mounts;
use crate::clock;
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::ValidatedSpec;
use crate::metrics::{GitOperation, Metrics};
use crate::report::ReconcileError;
use crate::source::{Error, ObjectIds, ReadLimits, ReadResult, Repository, Revision, Snapshot};

/// Reads the files of the repository itself; `None` if they are unchanged.
pub(super) async fn read_own_files(
    (repository, revision): (&Repository, &Revision),
    valid_spec: &ValidatedSpec,
    (extra_folders, within): (&BTreeSet<Box<str>>, &ReadLimits),
    (earlier, lfs): (&ObjectIds, &mut LfsFetches),
    by: Instant,
    metrics: &Metrics,
) -> Result<Option<Snapshot>, ReconcileError> {
    let begun = clock::now();
    let (path, mut wanted) =
        (valid_spec.options.path.as_str(), extra_folders.iter().cloned().collect::<Vec<_>>());
    let folders = if mounts::may_be_mounted(valid_spec) { Vec::new() } else { vec![path] };
    if folders.is_empty() {
        wanted.push(path.into());
    }
    let reading = match valid_spec.submodules {
        true => repository.read_with_submodules(revision, (&folders, &wanted), earlier, within, by).await,
        false => repository.read_changed(revision, (&folders, &wanted), earlier, within, by).await,
    };
    count(metrics, &reading, begun);
    match reading.map_err(source_error)?.snapshot {
        Some(snapshot) => lfs.filled(repository, snapshot, by).await.map(Some),
        None => Ok(None),
    }
}

/// Records the duration of a read in the metrics; a failed read counts as a failed fetch.
pub(super) fn count(metrics: &Metrics, reading: &Result<ReadResult, Error>, begun: Instant) {
    match reading {
        Ok(reading) => {
            reading.fetched.iter().for_each(|took| metrics.git_operation(GitOperation::Fetch, *took, None));
            metrics.git_operation(GitOperation::Read, reading.took, None);
        }
        Err(error) => metrics.git_operation(GitOperation::Fetch, clock::since(begun), Some(error.reason())),
    }
}
