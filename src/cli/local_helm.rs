//! The helm of the person who types: what renders charts on the command line.
//!
//! It is the one that `MOORLINE_HELM` names, else the one on PATH. It runs behind the same fence as in the
//! daemon, or what the kernel here has of it: these are the person's own charts, and helm alone would have none.

use std::path::Path;

use anyhow::Context as _;

use super::scratch::Scratch;
use crate::helm::{Helm, HelmFailure, Strength};
use crate::render::helm::Capabilities;
use crate::render::{Options, Rendered};
use crate::tree::FileTree;

/// A helm, and the folder of its runs, which is gone when this is.
pub(super) struct LocalHelm {
    pub(super) helm: Helm,
    #[expect(dead_code, reason = "it is held, and goes with this")]
    work: Scratch,
}

impl LocalHelm {
    pub(super) fn find() -> anyhow::Result<Self> {
        let named = std::env::var_os("MOORLINE_HELM").filter(|named| !named.is_empty());
        Self::of(Path::new(&named.unwrap_or_else(|| "helm".into())))
    }

    /// The one of this name or path.
    pub(super) fn of(program: &Path) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let work = Scratch::new()?;
        Ok(Self { helm: Helm::new(program, own, work.path()).behind(Strength::BestEffort), work })
    }

    /// What a folder comes to, whatever it is.
    pub(super) fn rendered(&self, tree: FileTree, options: Options) -> anyhow::Result<Rendered> {
        self.wait(self.helm.rendered(tree, options, Capabilities::default()))
    }

    /// A kustomization with what is printed for its charts, and what it comes to.
    pub(super) fn printed(&self, tree: FileTree, options: Options) -> anyhow::Result<(FileTree, Rendered)> {
        self.wait(self.helm.charts_printed("", tree, options))
    }

    fn wait<T: Send>(
        &self,
        answer: impl Future<Output = Result<T, HelmFailure>> + Send,
    ) -> anyhow::Result<T> {
        // No server is asked: helm has a version and kinds of its own. The runtime is made and dropped on a thread of its
        // own, because a verb that asks a cluster runs inside another runtime, which must not block.
        let work = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().build().context("cannot start the runtime")?;
            anyhow::Ok(runtime.block_on(answer)?)
        };
        let rendered = std::thread::scope(|scope| scope.spawn(work).join());
        rendered.unwrap_or_else(|_| Err(HelmFailure::Stopped.into()))
    }
}
