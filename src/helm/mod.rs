//! Renders Helm charts by running helm in isolation.
//!
//! In: a file tree, options, and the server's capabilities. Out: [`Rendered`], or [`HelmError`].
//! Everything but charts is rendered in this process. For a chart, helm is started (`process.rs`)
//! in isolation (`isolation.rs`), unless the same input was rendered before (`cache.rs`): charts
//! may draw random numbers, and drawing them again would look like a change in Git.
//!
//! `helm template` can reach the network in three ways: chart repositories, for missing
//! dependencies, and those are refused before helm starts; the API server, for
//! `lookup`, which needs a flag and an address that are not given here; and name
//! servers, for `getHostByName`, which returns an empty text unless a flag enables it.
//! Plugins and post-renderers do not exist here. So the isolation denies nothing that a
//! chart may do; it protects against faults in helm itself. The required protections
//! are a setting ([`IsolationLevel`]); the available ones are probed once.

mod cache;
mod disk_cache;
mod error;
pub mod isolation;
mod memory_folder;
mod process;
mod program;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::fair_queue::FairQueue;
use crate::render::helm::{Capabilities, Invocation, error_message, invocation, with_helm_output};
use crate::render::{Incomplete, RenderOptions, Rendered, SourceType, render, render_helm_output};
use crate::tree::{FileTree, MemoryLimitError};
use cache::{CacheStorage, RenderCache};
use disk_cache::DiskCache;
pub use error::HelmError;
pub use isolation::IsolationLevel;
use isolation::{IsolationVerdict, Protections};
use process::{RunResult, RunSettings, WorkFolder, WorkPlace};
use program::Program;

/// The most runs of helm at a time: each may use all the memory that its limit permits.
const MAX_RUNS: usize = 2;

/// The longest that helm may take for one chart.
const DEADLINE: Duration = Duration::from_secs(30);

/// The most rounds of building one kustomization because of missing charts. Most need one: all
/// their charts are found in the first round.
const MAX_ROUNDS: usize = 64;

/// Runs helm and caches its output; cheap to clone.
#[derive(Clone)]
pub struct Helm(Arc<HelmInner>);

struct HelmInner {
    /// The configured program.
    program: PathBuf,
    /// This program, whose hidden verb isolates helm.
    isolation_program: PathBuf,
    /// Parent of the runs' folders.
    work: PathBuf,
    deadline: Duration,
    cache: RenderCache,
    runs: FairQueue,
    level: IsolationLevel,
    /// The available protections, once they were probed.
    protections: OnceLock<Option<Protections>>,
}

impl Helm {
    /// Uses the helm of this name or path, with run folders in `work`. Folders that an earlier
    /// process has left there are removed.
    pub fn new(program: impl Into<PathBuf>, fence: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        let work = work.into();
        WorkFolder::remove_all(&WorkPlace::on_disk(&work));
        Self::build(program.into(), fence.into(), work, DEADLINE, RenderCache::default())
    }

    /// Like [`Helm::new`], but also keeps the output on disk, in a folder of its own in `work`.
    pub fn with_disk_cache(
        program: impl Into<PathBuf>,
        fence: impl Into<PathBuf>,
        work: impl Into<PathBuf>,
    ) -> Self {
        let work = work.into();
        WorkFolder::remove_all(&WorkPlace::on_disk(&work));
        WorkFolder::remove_all(&memory_folder::place(&work));
        let cache = RenderCache::with_disk(DiskCache::open(work.join("kept")));
        Self::build(program.into(), fence.into(), work, DEADLINE, cache)
    }

    /// Sets the time limit of a run.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self(Arc::new(HelmInner { deadline, ..self.0.clone_unprobed() }))
    }

    /// Sets the isolation that is required.
    #[must_use]
    pub fn with_isolation(self, strength: IsolationLevel) -> Self {
        Self(Arc::new(HelmInner { level: strength, ..self.0.clone_unprobed() }))
    }

    fn build(
        program: PathBuf,
        fence: PathBuf,
        work: PathBuf,
        deadline: Duration,
        cache: RenderCache,
    ) -> Self {
        let (runs, walls, strength) = (FairQueue::new(MAX_RUNS), OnceLock::new(), IsolationLevel::default());
        Self(Arc::new(HelmInner {
            program,
            isolation_program: fence,
            work,
            deadline,
            cache,
            runs,
            level: strength,
            protections: walls,
        }))
    }

    /// A warning about a missing protection, if one is missing.
    pub async fn isolation_warning(&self) -> Option<String> {
        let this = self.0.clone();
        match run_blocking(move || this.probed_protections().map(|walls| walls.judge(this.level)))
            .await
            .ok()??
        {
            IsolationVerdict::Degraded(said) => Some(said),
            IsolationVerdict::Sufficient | IsolationVerdict::Refused(_) => None,
        }
    }

    /// Renders a folder of any kind.
    pub async fn render(
        &self,
        tree: FileTree,
        options: RenderOptions,
        server: Capabilities,
    ) -> Result<Rendered, HelmError> {
        self.render_for("", tree, options, server).await
    }

    /// Like [`Helm::render`], for a Sync of this namespace: if many wait for helm, the namespaces
    /// take turns.
    pub async fn render_for(
        &self,
        who: &str,
        tree: FileTree,
        options: RenderOptions,
        server: Capabilities,
    ) -> Result<Rendered, HelmError> {
        if options.source_type(&tree) != SourceType::Helm {
            return Ok(self.render_kustomization(who, tree, options).await?.1);
        }
        let variables = options.variables.clone();
        let run = match run_blocking(move || invocation(&tree, &options, &server)).await? {
            Ok(run) => Arc::new(run),
            Err(refusal) => {
                let (objects, skipped) = (Vec::new(), Vec::new());
                return Ok(Rendered::Incomplete(Incomplete {
                    objects,
                    skipped,
                    problems: vec![*refusal.problem],
                    wanted_runs: Vec::new(),
                    missing_charts: Vec::new(),
                    missing_dependencies: refusal.missing,
                }));
            }
        };
        let output = self.output(who, run.clone()).await?;
        run_blocking(move || {
            let _turn = run.memory_limit.wait_for_processor();
            render_helm_output(&run, output, variables.as_deref())
        })
        .await
    }

    /// Renders a folder that is no chart; also returns its files with the output of the charts that
    /// it names.
    pub async fn render_kustomization(
        &self,
        who: &str,
        mut tree: FileTree,
        options: RenderOptions,
    ) -> Result<(FileTree, Rendered), HelmError> {
        let options = Arc::new(options);
        for _ in 0..MAX_ROUNDS {
            let (files, asked) = (tree.clone(), options.clone());
            let rendered = run_blocking(move || {
                let _turn = files.memory_limit().wait_for_processor();
                render(&files, &asked)
            })
            .await?;
            let wanted = match &rendered {
                Rendered::Incomplete(incomplete) => incomplete.wanted_runs.clone(),
                Rendered::Complete(_) => Vec::new(),
            };
            if wanted.is_empty() {
                return Ok((tree, rendered));
            }
            for run in wanted {
                let output = self.output(who, run.clone()).await?;
                tree = with_helm_output(tree, &run, &output);
            }
        }
        let what = format!("the kustomization still needs charts after {MAX_ROUNDS} rounds; split it");
        Err(HelmError::Exceeded { what: what.into() })
    }

    /// Returns helm's output for a run, from the cache if possible.
    async fn output(&self, who: &str, run: Arc<Invocation>) -> Result<Arc<[u8]>, HelmError> {
        let program = Program::find(&self.0.program)?;
        let key = Sha256::new().chain_update(program.identity()).chain_update(run.digest());
        let (this, who) = (self.clone(), who.to_owned());
        let storage = if run.contains_secret() { CacheStorage::Memory } else { CacheStorage::Disk };
        self.0
            .cache
            .get((key.finalize().into(), storage), || async move { this.run(&who, program, run).await })
            .await
    }

    async fn run(&self, who: &str, program: Program, run: Arc<Invocation>) -> Result<Arc<[u8]>, HelmError> {
        let no_room = |no_room: MemoryLimitError| HelmError::Exceeded { what: no_room.to_string().into() };
        // Files in memory count like the memory of helm itself.
        let in_memory: usize = match run.contains_secret() {
            true => run.files().map(|(_, bytes)| bytes.len()).sum(),
            false => 0,
        };
        let cost = crate::helm::isolation::MAX_MEMORY_BYTES + in_memory as u64;
        run.memory_limit.reserve(cost).map_err(no_room)?;
        let _turn = self.0.runs.acquire(who).await;
        let memory_limit = run.memory_limit.clone();
        let this = self.0.clone();
        run_blocking(move || {
            this.probed_protections();
            tracing::debug!(chart = run.display_folder(), "helm is started");
            let place = RunSettings {
                program: program.path(),
                fence: &this.isolation_program,
                work: &this.work,
                strength: this.level,
                deadline: this.deadline,
            };
            match crate::helm::process::run(&run, &place)? {
                RunResult::Succeeded(output) => Ok(output.into()),
                RunResult::Failed(words) => {
                    Err(HelmError::Failed { text: error_message(&run, &words).into() })
                }
            }
        })
        .await
        .inspect(|_| memory_limit.give_back(cost))?
    }
}

impl HelmInner {
    /// A copy with no probed protections, whose settings can be changed.
    fn clone_unprobed(&self) -> Self {
        Self {
            program: self.program.clone(),
            isolation_program: self.isolation_program.clone(),
            work: self.work.clone(),
            deadline: self.deadline,
            cache: self.cache.clone(),
            runs: FairQueue::new(MAX_RUNS),
            level: self.level,
            protections: OnceLock::new(),
        }
    }

    /// The available protections, probed once; `None` if the probe fails.
    fn probed_protections(&self) -> Option<&Protections> {
        let ask = || {
            let walls = crate::helm::process::probe_protections(&self.isolation_program);
            let said = walls.as_ref().map_or_else(|| "unknown".to_owned(), Protections::to_string);
            tracing::debug!(walls = said, "helm runs in isolation");
            walls
        };
        self.protections.get_or_init(ask).as_ref()
    }
}

/// Runs work that needs the processor or waits for a process on a thread where it blocks no other
/// task.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, HelmError> {
    crate::chance::spawn_blocking_deterministic(work).await.map_err(|_| HelmError::Stopped)
}
