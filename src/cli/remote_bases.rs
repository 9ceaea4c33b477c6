//! Remote bases for a render on the command line, fetched as the daemon does, into a temporary
//! folder.
//!
//! In: the URL prefixes that the user allows. Out: trees with the files of the repositories that
//! kustomizations name. Without an allowed prefix nothing is created and no server is contacted.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};

use super::mount_flags::MountFlags;
use super::temporary_folder::TemporaryFolder;
use crate::controller::reconcile::remote_bases::{
    LatestRevisions, RemoteBaseContext, ResolvedBases, TrackedBases,
};
use crate::kustomize::MissingInputs;
use crate::metrics::Metrics;
use crate::report::ReconcileError;
use crate::source::{AllowList, HostPolicy, Repositories};
use crate::tree::FileTree;

/// The longest that all fetches together may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// The allowed prefixes, and the bases that were fetched so far.
#[derive(Debug)]
pub(super) struct RemoteBases {
    allowed: AllowList,
    mounts: MountFlags,
    found: ResolvedBases,
    fetcher: Option<BaseFetcher>,
    deadline: Instant,
}

#[derive(Debug)]
struct BaseFetcher {
    repositories: Repositories,
    metrics: Metrics,
    heads: LatestRevisions,
    #[cfg_attr(not(test), expect(dead_code, reason = "it is held, and goes with this"))]
    folder: TemporaryFolder,
}

impl RemoteBases {
    pub(super) fn new(allowed: AllowList) -> Self {
        Self {
            allowed,
            mounts: MountFlags::default(),
            found: ResolvedBases::default(),
            fetcher: None,
            deadline: Instant::now() + FETCH_TIMEOUT,
        }
    }

    /// Puts folders of the local disk in place of the mounts of a Sync.
    pub(super) fn with_mounts(self, mounts: &MountFlags) -> Self {
        Self { mounts: mounts.clone(), ..self }
    }

    /// Returns the folders in place of mounts.
    pub(super) fn mounts(&self) -> &MountFlags {
        &self.mounts
    }

    /// Returns the tree with the files of all bases that were fetched so far.
    pub(super) fn mount(&mut self, files: FileTree) -> anyhow::Result<FileTree> {
        let Some(open) = &self.fetcher else { return Ok(files) };
        let (found, by) = (&mut self.found, self.deadline);
        open.wait(async || found.mount(files, by).await)
    }

    /// Fetches missing bases. Returns the folders that are missing in the tree itself, and true if
    /// there is something to mount again.
    pub(super) fn fetch_missing(
        &mut self,
        missing: MissingInputs,
        files: &FileTree,
    ) -> anyhow::Result<(BTreeSet<Box<str>>, bool)> {
        if missing.remotes.is_empty() && self.fetcher.is_none() || self.allowed.is_empty() {
            // The render reports bases that are not allowed.
            return Ok((missing.folders.into_iter().map(Into::into).collect(), false));
        }
        if self.fetcher.is_none() {
            self.fetcher = Some(BaseFetcher::new()?);
        }
        let Some(open) = &self.fetcher else { return Ok((BTreeSet::new(), false)) };
        let (found, allowed, by) = (&mut self.found, &self.allowed, self.deadline);
        let followed = TrackedBases::default();
        let context = RemoteBaseContext {
            repositories: &open.repositories,
            heads: &open.heads,
            allowed,
            followed: &followed,
            asker: "",
            sync: Box::default(),
            metrics: &open.metrics,
            pinned: false,
            fresh: FETCH_TIMEOUT,
        };
        open.wait(async || found.take(missing, files, &context, by).await)
    }

    /// Each repository that was fetched, with its commit.
    pub(super) fn fetched(&self) -> Vec<String> {
        self.found.descriptions()
    }
}

impl BaseFetcher {
    fn new() -> anyhow::Result<Self> {
        let folder = TemporaryFolder::new()?;
        Ok(Self {
            repositories: Repositories::new(folder.path(), None, HostPolicy::allow_all())?,
            metrics: Metrics::new()?,
            heads: LatestRevisions::default(),
            folder,
        })
    }

    /// Waits on a thread of its own, because the caller may be on a runtime that must not block.
    fn wait<T: Send>(
        &self,
        work: impl AsyncFnOnce() -> Result<T, ReconcileError> + Send,
    ) -> anyhow::Result<T> {
        let wait = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("cannot start the runtime")?;
            let done = runtime.block_on(work());
            // A fetch from a silent server may still hold a thread; waiting for it would hang the
            // command.
            runtime.shutdown_timeout(Duration::from_millis(100));
            done.map_err(|reconcile_error| anyhow!("{}", reconcile_error.message))
        };
        let done = thread::scope(|scope| scope.spawn(wait).join());
        done.map_err(|_| anyhow!("fetching remote bases was stopped"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{self, RenderOptions};

    #[tokio::test]
    async fn it_may_be_asked_by_who_must_not_wait() {
        let (text, prefix) = ("resources: [\"http://127.0.0.1:9/a/b\"]\n", "http://127.0.0.1:9");
        let tree = FileTree::from_texts([("kustomization.yaml", text)]);
        let mut bases = RemoteBases::new(AllowList::new("--allow-remote", [prefix]).unwrap());
        let missing = render::missing_inputs(&tree, &RenderOptions::default());
        let error = bases.fetch_missing(missing, &tree).unwrap_err().to_string();
        assert!(
            error.starts_with("kustomization.yaml:1:13: the remote base http://127.0.0.1:9/a/b: "),
            "{error}"
        );
        let folder = bases.fetcher.as_ref().map(|open| open.folder.path().to_owned()).unwrap();
        assert!(folder.is_dir());
        drop(bases);
        assert!(!folder.exists());
    }
}
