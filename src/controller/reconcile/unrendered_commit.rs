//! Evidence about the objects of a commit that a Sync cannot render, or has not rendered yet.
//!
//! In: the commit, and the last render.
//! Out: [`Evidence`].
//!
//! Plain files are read one by one. For a kustomization or a chart only one fact counts: a change
//! of any file that its last render read.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::prepare::PreparedRevision;
use super::render_memory;
use super::request::ReconcileRequest;
use crate::api::SyncName;
use crate::chance;
use crate::clock;
use crate::controller::Context;
use crate::controller::peers::claim_evidence::Evidence;
use crate::controller::peers::render_attempts::{FailedAttempt, FilesHash};
use crate::controller::spec::ValidatedSpec;
use crate::render::{FolderContents, SourceType};
use crate::source::{Error, ObjectIds, ReadLimits, Revision};
use crate::tree::{FileTree, MemoryLimit};

/// A commit that a Sync has not rendered.
pub(crate) struct UnrenderedCommit<'a> {
    pub(crate) context: &'a Context,
    pub(crate) owner: &'a SyncName,
    /// The newest request.
    pub(crate) order: &'a ReconcileRequest,
    pub(crate) revision: &'a Revision,
}

impl UnrenderedCommit<'_> {
    /// Publishes the evidence to the other Syncs of the repository. It is computed once per commit,
    /// and once more when an earlier complete render becomes available.
    pub(crate) async fn tell(&self, last: Option<&PreparedRevision>) {
        let peers = &self.context.peers;
        let commit = self.revision.commit;
        // Unchanged files say nothing about another version of the chart, or about other mounts.
        let beside = |revision: &Revision| (revision.chart.clone(), revision.mounts.clone());
        let last = last.filter(|last| beside(&last.revision) == beside(self.revision));
        let known = peers.last_failed_attempt(self.owner).filter(|tried| tried.commit == commit);
        if known.is_some_and(|tried| tried.is_final || last.is_none()) {
            return;
        }
        let FoundEvidence { evidence, files, was_read } = self.evidence(last).await;
        let is_final = was_read && (last.is_some() || !matches!(evidence, Evidence::Anything(_)));
        let (evidence, memory) = evidence.kept(self.context.sources.repositories.memory(), self.owner);
        let (evidence, cluster) = (Arc::new(evidence), Some(self.order.cluster.in_any_term()));
        let tried = FailedAttempt { commit, evidence, memory, files, same_in: Vec::new(), is_final, cluster };
        peers.record_failed_attempt(
            self.owner,
            self.order.spec_revision,
            tried.after(peers.last_failed_attempt(self.owner).as_ref()),
        );
    }

    /// Returns the evidence, and a hash of the files.
    async fn evidence(&self, last: Option<&PreparedRevision>) -> FoundEvidence {
        let ReconcileRequest { repository, valid_spec, .. } = self.order;
        if !valid_spec.mounts.is_empty() {
            // The files of mounts are not searched.
            return FoundEvidence::new(Evidence::Anything(FolderContents::unsearched()), None);
        }
        let by = clock::now() + valid_spec.timeout;
        let options = &valid_spec.options;
        let path = options.path.as_str();
        // Evidence is optional, so a commit that takes much memory has none.
        let within = ReadLimits {
            memory_limit: MemoryLimit::with_bytes(render_memory::FIRST),
            choose: render_memory::choose(valid_spec),
        };
        let asked = (&[path][..], &[][..]);
        let reading = repository.read_changed(self.revision, asked, &ObjectIds::new(), &within, by).await;
        let files = match reading.map(|reading| reading.snapshot) {
            Ok(Some(snapshot)) => snapshot.files,
            Err(Error::NoPath { .. }) => return FoundEvidence::new(Evidence::Nothing, None),
            // It is too large to be read, which does not change.
            Ok(None) => return FoundEvidence::new(Evidence::Anything(FolderContents::unsearched()), None),
            Err(_) => {
                return FoundEvidence {
                    was_read: false,
                    ..FoundEvidence::new(Evidence::Anything(FolderContents::unsearched()), None)
                };
            }
        };
        match options.source_type(&files) {
            SourceType::Auto | SourceType::Plain => {
                let ids = repository.ids(self.revision, [path], by).await.ok();
                let evidence = match contents(files, valid_spec).await {
                    Some(contents) => Evidence::Files(contents),
                    None => Evidence::Anything(FolderContents::unsearched()),
                };
                FoundEvidence::new(evidence, ids.as_ref().map(hash))
            }
            SourceType::Kustomize | SourceType::Helm => {
                let anything = || async {
                    Evidence::Anything(
                        contents(files, valid_spec).await.unwrap_or_else(FolderContents::unsearched),
                    )
                };
                let Some(last) = last else { return FoundEvidence::new(anything().await, None) };
                let paths = last.ids.keys().map(|path| &**path);
                match repository.ids(self.revision, paths, by).await {
                    Ok(ids) if ids == last.ids => FoundEvidence::new(Evidence::Nothing, Some(hash(&ids))),
                    Ok(ids) => FoundEvidence::new(anything().await, Some(hash(&ids))),
                    Err(_) => FoundEvidence { was_read: false, ..FoundEvidence::new(anything().await, None) },
                }
            }
        }
    }
}

/// Evidence from the files of a commit.
struct FoundEvidence {
    evidence: Evidence,
    /// Hash of the files, if they are known.
    files: Option<FilesHash>,
    /// False if reading the files failed, so that a retry may find more.
    was_read: bool,
}

impl FoundEvidence {
    fn new(evidence: Evidence, files: Option<FilesHash>) -> Self {
        Self { evidence, files, was_read: true }
    }
}

/// Hashes files by their Git ids.
fn hash(ids: &ObjectIds) -> FilesHash {
    let lines = ids.iter().map(|(path, id)| format!("{path} {id:?}\n"));
    Sha256::digest(lines.collect::<String>().as_bytes()).into()
}

/// Reads the contents of files one by one.
async fn contents(files: FileTree, valid_spec: &ValidatedSpec) -> Option<FolderContents> {
    let options = valid_spec.options.clone();
    let read = move || {
        let _turn = files.memory_limit().wait_for_processor();
        FolderContents::from_tree(&files, &options)
    };
    chance::spawn_blocking_deterministic(read).await.ok()
}
