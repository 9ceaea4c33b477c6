//! The repositories of a set: polls and files.
//!
//! In: the Git generators of a set. Out: a revision of each repository, and the selected files.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;

use super::super::Context;
use super::set_repository::{GeneratorSource, SetRepository, validated};
use crate::api::{GitGenerator, SyncName, SyncSet};
use crate::cluster::Cluster;
use crate::controller::reconcile_errors::source_error;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{FileSelection, ObjectIds, ReadLimits, Reference, Repository, Revision};
use crate::sync_set::{read_folders, select_files};
use crate::tree::FileTree;

/// The repository of a Git generator.
pub(super) struct SetSource {
    generator: GitGenerator,
    repository: SetRepository,
}

impl SetSource {
    /// Creates the source of a generator, without a request.
    pub(super) fn new(
        context: &Context,
        name: &SyncName,
        set: &SyncSet,
        generator: &GitGenerator,
    ) -> Result<Self, ReconcileError> {
        let disk = context.process.disk();
        let valid_spec = validated(disk, name, set, GeneratorSource::Git(generator))?;
        Ok(Self { generator: generator.clone(), repository: SetRepository::new(valid_spec) })
    }

    /// Returns the URL.
    pub(super) fn url(&self) -> &str {
        &self.generator.url
    }

    /// Returns the URL, and what is followed there.
    pub(super) fn place(&self) -> (&str, &Reference) {
        (&self.generator.url, &self.repository.valid_spec.reference)
    }

    /// Reads the Secret again before the next poll.
    pub(super) fn close(&mut self) {
        self.repository.close();
    }

    /// Finds the newest revision.
    pub(super) async fn poll(
        &mut self,
        context: &Context,
        of: (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
        by: Instant,
    ) -> Result<Revision, ReconcileError> {
        let open = self.repository.open(context, of, inputs_changed).await?;
        open.resolve(&self.repository.valid_spec.reference, by).await.map_err(source_error)
    }

    /// Reads the files of a revision that the generator selects.
    pub(super) async fn read(&self, revision: &Revision, by: Instant) -> Result<FileTree, ReconcileError> {
        let Some(repository) = self.repository.opened() else { return Err(closed()) };
        read_selected(repository, &self.generator, revision, by).await
    }
}

/// Reads the files of a revision that a generator selects.
pub(in crate::controller) async fn read_selected(
    repository: &Repository,
    generator: &GitGenerator,
    revision: &Revision,
    by: Instant,
) -> Result<FileTree, ReconcileError> {
    let folders = read_folders(generator);
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let generator = generator.clone();
    let choose = move |tree: &FileTree| FileSelection::Only(select_files(&generator, tree));
    let within = ReadLimits { choose: Arc::new(choose), ..ReadLimits::default() };
    let earlier = ObjectIds::default();
    let read = repository.read_changed(revision, (&folders, &[]), &earlier, &within, by).await;
    Ok(read.map_err(source_error)?.snapshot.ok_or_else(closed)?.files)
}

fn closed() -> ReconcileError {
    let message = "the repository is read again".to_owned();
    ReconcileError { cause: ErrorCause::Progressing, message, problems: Vec::new(), permanent: false }
}
