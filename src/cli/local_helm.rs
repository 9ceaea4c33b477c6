//! Renders charts on the command line with the helm of the user.
//!
//! It is the helm that `MOORLINE_HELM` names, else the one on PATH. It is isolated as in the
//! daemon, as far as the kernel supports it. Missing protections are accepted: the charts are the
//! user's own, and helm alone would have none.

use std::path::Path;

use anyhow::Context as _;

use super::temporary_folder::TemporaryFolder;
use crate::helm::{Helm, HelmError, IsolationLevel};
use crate::render::helm::Capabilities;
use crate::render::{RenderOptions, Rendered};
use crate::tree::FileTree;

/// A helm, and the folder of its runs, which is removed on drop.
pub(super) struct LocalHelm {
    pub(super) helm: Helm,
    #[expect(dead_code, reason = "it is held, and goes with this")]
    work: TemporaryFolder,
}

impl LocalHelm {
    pub(super) fn find() -> anyhow::Result<Self> {
        let named = std::env::var_os("MOORLINE_HELM").filter(|named| !named.is_empty());
        Self::with_program(Path::new(&named.unwrap_or_else(|| "helm".into())))
    }

    /// Uses the helm of this name or path.
    pub(super) fn with_program(program: &Path) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let work = TemporaryFolder::new()?;
        Ok(Self {
            helm: Helm::new(program, own, work.path()).with_isolation(IsolationLevel::BestEffort),
            work,
        })
    }

    /// Renders a folder of any kind.
    pub(super) fn render(&self, tree: FileTree, options: RenderOptions) -> anyhow::Result<Rendered> {
        self.wait(self.helm.render(tree, options, Capabilities::default()))
    }

    /// Renders a kustomization; also returns its files with the rendered charts.
    pub(super) fn render_kustomization(
        &self,
        tree: FileTree,
        options: RenderOptions,
    ) -> anyhow::Result<(FileTree, Rendered)> {
        self.wait(self.helm.render_kustomization("", tree, options))
    }

    fn wait<T: Send>(&self, answer: impl Future<Output = Result<T, HelmError>> + Send) -> anyhow::Result<T> {
        // No server is contacted: helm has a version and kinds of its own. The runtime lives on a
        // thread of its own, because a verb that uses a cluster already runs inside another
        // runtime, which must not block.
        let work = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().build().context("cannot start the runtime")?;
            anyhow::Ok(runtime.block_on(answer)?)
        };
        let rendered = std::thread::scope(|scope| scope.spawn(work).join());
        rendered.unwrap_or_else(|_| Err(HelmError::Stopped.into()))
    }
}
