//! Remote bases for a render on the command line, fetched as the daemon does, into a temporary
//! folder.
//!
//! In: the URL prefixes that the user allows. Out: trees with the files of the repositories that
//! kustomizations name. Without an allowed prefix nothing is created and no server is contacted.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};

use super::scratch::Scratch;
use crate::metrics::Metrics;
use crate::render::Missing;
use crate::report::Trouble;
use crate::source::{AllowList, Hosts, Repositories};
use crate::sync::bases::{Bases, Followed, Ground, Heads};
use crate::tree::FileTree;

/// The longest that all fetches together may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The allowed prefixes, and the bases that were fetched so far.
#[derive(Debug)]
pub(super) struct RemoteBases {
    allowed: AllowList,
    found: Bases,
    open: Option<Open>,
    by: Instant,
}

#[derive(Debug)]
struct Open {
    repositories: Repositories,
    metrics: Metrics,
    heads: Heads,
    #[cfg_attr(not(test), expect(dead_code, reason = "it is held, and goes with this"))]
    folder: Scratch,
}

impl RemoteBases {
    pub(super) fn new(allowed: AllowList) -> Self {
        Self { allowed, found: Bases::default(), open: None, by: Instant::now() + PATIENCE }
    }

    /// Returns the tree with the files of all bases that were fetched so far.
    pub(super) fn mount(&mut self, files: FileTree) -> anyhow::Result<FileTree> {
        let Some(open) = &self.open else { return Ok(files) };
        let (found, by) = (&mut self.found, self.by);
        open.wait(async || found.mount(files, by).await)
    }

    /// Fetches missing bases. Returns the folders that are missing in the tree itself, and true if
    /// there is something to mount again.
    pub(super) fn take(
        &mut self,
        missing: Missing,
        files: &FileTree,
    ) -> anyhow::Result<(BTreeSet<Box<str>>, bool)> {
        if missing.remotes.is_empty() && self.open.is_none() || self.allowed.is_empty() {
            // The render reports bases that are not allowed.
            return Ok((missing.folders.into_iter().map(Into::into).collect(), false));
        }
        if self.open.is_none() {
            self.open = Some(Open::new()?);
        }
        let Some(open) = &self.open else { return Ok((BTreeSet::new(), false)) };
        let (found, allowed, by) = (&mut self.found, &self.allowed, self.by);
        let followed = Followed::default();
        let ground = Ground {
            repositories: &open.repositories,
            heads: &open.heads,
            allowed,
            followed: &followed,
            asker: "",
            sync: Box::default(),
            metrics: &open.metrics,
            pinned: false,
            fresh: PATIENCE,
        };
        open.wait(async || found.take(missing, files, &ground, by).await)
    }

    /// Each repository that was fetched, with its commit.
    pub(super) fn told(&self) -> Vec<String> {
        self.found.told()
    }
}

impl Open {
    fn new() -> anyhow::Result<Self> {
        let folder = Scratch::new()?;
        Ok(Self {
            repositories: Repositories::new(folder.path(), None, Hosts::anywhere())?,
            metrics: Metrics::new()?,
            heads: Heads::default(),
            folder,
        })
    }

    /// Waits on a thread of its own, because the caller may be on a runtime that must not block.
    fn wait<T: Send>(&self, work: impl AsyncFnOnce() -> Result<T, Trouble> + Send) -> anyhow::Result<T> {
        let wait = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("cannot start the runtime")?;
            let done = runtime.block_on(work());
            // A fetch from a silent server may still hold a thread; waiting for it would hang the
            // command.
            runtime.shutdown_timeout(Duration::from_millis(100));
            done.map_err(|trouble| anyhow!("{}", trouble.message))
        };
        let done = thread::scope(|scope| scope.spawn(wait).join());
        done.map_err(|_| anyhow!("fetching remote bases was stopped"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{self, Options};

    #[tokio::test]
    async fn it_may_be_asked_by_who_must_not_wait() {
        let (text, prefix) = ("resources: [\"http://127.0.0.1:9/a/b\"]\n", "http://127.0.0.1:9");
        let tree = FileTree::from_texts([("kustomization.yaml", text)]);
        let mut bases = RemoteBases::new(AllowList::new("--allow-remote", [prefix]).unwrap());
        let missing = render::missing(&tree, &Options::default());
        let error = bases.take(missing, &tree).unwrap_err().to_string();
        assert!(
            error.starts_with("kustomization.yaml:1:13: the remote base http://127.0.0.1:9/a/b: "),
            "{error}"
        );
        let folder = bases.open.as_ref().map(|open| open.folder.path().to_owned()).unwrap();
        assert!(folder.is_dir());
        drop(bases);
        assert!(!folder.exists());
    }
}
