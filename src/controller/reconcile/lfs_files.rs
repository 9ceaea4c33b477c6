//! Puts the files of Git LFS that a render reads in the place of their pointers.
//!
//! In: a snapshot of the repository of a Sync. Out: the snapshot with the files that are on disk;
//! the others are fetched while no memory is reserved for the render, which then starts again.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::chance;
use crate::controller::reconcile_errors::{comes_from_elsewhere, source_cause, source_error, too_slow};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Error, LfsError, LfsFile, LfsProblem, Repository, Snapshot, fetch_lfs, fill_lfs};
use crate::tree::LfsPointers;

/// Most rounds of fetching for one render: a kustomization reads one file after the other.
const MAX_ROUNDS: usize = 64;

/// Files of Git LFS of one preparation.
#[derive(Debug, Default)]
pub(crate) struct LfsFetches {
    /// Pointers in the last snapshot whose files are not on disk.
    pointers: LfsPointers,
    /// Files that were fetched.
    fetched: BTreeSet<LfsFile>,
    rounds: usize,
}

impl LfsFetches {
    /// Returns the snapshot with the files that are on disk.
    pub(super) async fn filled(
        &mut self,
        repository: &Repository,
        mut snapshot: Snapshot,
        by: Instant,
    ) -> Result<Snapshot, ReconcileError> {
        self.pointers = LfsPointers::default();
        if !LfsPointers::are_in(&snapshot.files) {
            return Ok(snapshot);
        }
        let repository = repository.clone();
        let filling = chance::spawn_blocking_deterministic(move || {
            let left = fill_lfs(&repository, &mut snapshot)?;
            Ok((snapshot, left))
        });
        let filled = tokio::time::timeout_at(by.into(), filling).await.map_err(|_| too_slow())?;
        let filled = filled.unwrap_or(Err(Error::Stopped));
        let (snapshot, left) = filled.map_err(source_error)?;
        self.pointers = left;
        Ok(snapshot)
    }

    /// True if the last render read pointers whose files have to be fetched.
    pub(super) fn is_wanting(&self) -> bool {
        self.pointers.were_read().next().is_some()
    }

    /// Fetches the files that the last render read. A server may send them from another host, so
    /// that the text of a stranger gets none.
    pub(super) async fn fetch(
        &mut self,
        repository: &Repository,
        is_for_strangers: bool,
        by: Instant,
    ) -> Result<(), ReconcileError> {
        let one = |(path, pointer): (&str, &_)| LfsFile { path: path.into(), pointer: Clone::clone(pointer) };
        let wanted: Vec<LfsFile> = self.pointers.were_read().map(one).collect();
        let Some(first) = wanted.first().cloned() else { return Ok(()) };
        if is_for_strangers {
            return Err(comes_from_elsewhere("a file of Git LFS that comes from elsewhere"));
        }
        self.pointers = LfsPointers::default();
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(lfs_error(&first.error(LfsProblem::Repeated)));
        }
        self.fetched.extend(wanted);
        // The bounds are those of all files together; the ones on disk cost no request.
        fetch_lfs(repository, self.fetched.iter().cloned().collect(), by)
            .await
            .map_err(|error| lfs_error(&error))
    }
}

/// Maps an error of Git LFS to a reconcile error.
fn lfs_error(error: &LfsError) -> ReconcileError {
    ReconcileError {
        cause: match &error.problem {
            LfsProblem::Server(cause) => source_cause(cause),
            _ => ErrorCause::Input(error.reason()),
        },
        message: error.to_string(),
        problems: Vec::new(),
        permanent: error.needs_new_input(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;
    use crate::source::{Address, Credentials, HostPolicy, Repositories};
    use crate::tree::FileTree;

    #[tokio::test]
    async fn the_text_of_a_stranger_gets_no_file_from_elsewhere() {
        let text = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{:064x}\nsize 1\n", 7);
        let tree = FileTree::from_texts([("a", text.as_str())]);
        let folder = tempfile::tempdir().unwrap();
        let repositories = Repositories::new(folder.path(), None, HostPolicy::allow_all()).unwrap();
        // Nobody listens at this port.
        let address = Address::remote("https://127.0.0.1:1/team/shop.git").unwrap();
        let repository = repositories.repository(&address, "", &Credentials::default()).unwrap();
        let by = clock::now() + Duration::from_secs(5);
        for (is_read, is_for_strangers, expect) in
            [(false, true, Ok(())), (true, true, Err(true)), (true, false, Err(false))]
        {
            let pointers = LfsPointers::of(&tree, |_| true);
            if is_read {
                let _ = tree.clone().with_lfs(pointers.clone()).read("a");
            }
            let mut fetches = LfsFetches { pointers, ..LfsFetches::default() };
            let fetched = fetches.fetch(&repository, is_for_strangers, by).await;
            let fetched = fetched.map_err(|error| error.message.contains("comes from elsewhere"));
            assert_eq!(fetched, expect, "{is_read} {is_for_strangers}");
        }
    }
}
