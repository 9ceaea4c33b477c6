//! Remote bases for a render on the command line: fetched as the daemon does, into a folder that is gone afterwards.
//!
//! In: which prefixes a person allows. Out: trees with the files of the repositories that kustomizations name. Without any prefix
//! nothing is made and nobody is asked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};

use crate::metrics::Metrics;
use crate::render::Missing;
use crate::report::Trouble;
use crate::source::{AllowList, Repositories};
use crate::sync::bases::{Bases, Followed, Ground, Heads};
use crate::tree::FileTree;

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a person allows, and what was fetched so far.
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
    runtime: tokio::runtime::Runtime,
    heads: Heads,
    folder: PathBuf,
}

impl RemoteBases {
    pub(super) fn new(allowed: AllowList) -> Self {
        Self { allowed, found: Bases::default(), open: None, by: Instant::now() + PATIENCE }
    }

    /// The tree with the files of what was named so far.
    pub(super) fn mount(&mut self, files: FileTree) -> anyhow::Result<FileTree> {
        let Some(open) = &self.open else { return Ok(files) };
        let (found, by) = (&mut self.found, self.by);
        open.wait(async || found.mount(files, by).await)
    }

    /// Takes in what is missing; what of it lies in the tree itself, and whether there is anything to be mounted anew.
    pub(super) fn take(
        &mut self,
        missing: Missing,
        files: &FileTree,
    ) -> anyhow::Result<(BTreeSet<Box<str>>, bool)> {
        if missing.remotes.is_empty() && self.open.is_none() || self.allowed.is_empty() {
            // What is named and not allowed is for the render to say.
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
            metrics: &open.metrics,
            pinned: false,
            fresh: PATIENCE,
        };
        open.wait(async || found.take(missing, files, &ground, by).await)
    }

    /// Each repository that was fetched, and its commit.
    pub(super) fn told(&self) -> Vec<String> {
        self.found.told()
    }
}

impl Open {
    fn new() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("moorline-{}-bases", std::process::id()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            repositories: Repositories::new(&folder, None)?,
            metrics: Metrics::new()?,
            runtime: runtime.context("cannot start the runtime")?,
            heads: Heads::default(),
            folder,
        })
    }

    /// Waits on a thread of its own, because whoever asks may be on one that must not wait.
    fn wait<T: Send>(&self, work: impl AsyncFnOnce() -> Result<T, Trouble> + Send) -> anyhow::Result<T> {
        let done = thread::scope(|scope| scope.spawn(|| self.runtime.block_on(work())).join());
        done.map_err(|_| anyhow!("fetching remote bases was stopped"))?
            .map_err(|trouble| anyhow!("{}", trouble.message))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // What is left of it is nobody's loss.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
