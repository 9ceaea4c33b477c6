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
mod child;
mod failure;
pub mod fence;
mod program;
mod shelf;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::fair::Line;
use crate::render::helm::{Capabilities, Invocation, invocation, printing, told};
use crate::render::{Incomplete, Kind, Options, Rendered, charted, render};
use crate::tree::{FileTree, NoRoom};
use cache::Cache;
use child::{Ended, Place, WorkFolder};
pub use failure::HelmFailure;
pub use fence::Strength;
use fence::{Verdict, Walls};
use program::Program;
use shelf::Shelf;

/// The most runs of helm at a time: each may use all the memory that its limit permits.
const MAX_RUNS: usize = 2;

/// The longest that helm may take for one chart.
const DEADLINE: Duration = Duration::from_secs(30);

/// The most rounds of building one kustomization because of missing charts. Most need one: all
/// their charts are found in the first round.
const MAX_ROUNDS: usize = 64;

/// Runs helm and caches its output; cheap to clone.
#[derive(Clone)]
pub struct Helm(Arc<Inner>);

struct Inner {
    /// The configured program.
    program: PathBuf,
    /// This program, whose hidden verb isolates helm.
    fence: PathBuf,
    /// Parent of the runs' folders.
    work: PathBuf,
    deadline: Duration,
    cache: Cache,
    runs: Line,
    strength: Strength,
    /// The available protections, once they were probed.
    walls: OnceLock<Option<Walls>>,
}

impl Helm {
    /// Uses the helm of this name or path, with run folders in `work`. Folders that an earlier
    /// process has left there are removed.
    pub fn new(program: impl Into<PathBuf>, fence: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        let work = work.into();
        WorkFolder::remove_all(&work);
        Self::with(program.into(), fence.into(), work, DEADLINE, Cache::default())
    }

    /// Like [`Helm::new`], but also keeps the output on disk, in a folder of its own in `work`.
    pub fn keeping(program: impl Into<PathBuf>, fence: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        let work = work.into();
        WorkFolder::remove_all(&work);
        let cache = Cache::on(Shelf::at(work.join("kept")));
        Self::with(program.into(), fence.into(), work, DEADLINE, cache)
    }

    /// Sets the time limit of a run.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Self(Arc::new(Inner { deadline, ..self.0.anew() }))
    }

    /// Sets the isolation that is required.
    #[must_use]
    pub fn behind(self, strength: Strength) -> Self {
        Self(Arc::new(Inner { strength, ..self.0.anew() }))
    }

    fn with(program: PathBuf, fence: PathBuf, work: PathBuf, deadline: Duration, cache: Cache) -> Self {
        let (runs, walls, strength) = (Line::new(MAX_RUNS), OnceLock::new(), Strength::default());
        Self(Arc::new(Inner { program, fence, work, deadline, cache, runs, strength, walls }))
    }

    /// A warning about a missing protection, if one is missing.
    pub async fn caution(&self) -> Option<String> {
        let this = self.0.clone();
        match apart(move || this.walls().map(|walls| walls.verdict(this.strength))).await.ok()?? {
            Verdict::Weaker(said) => Some(said),
            Verdict::Stands | Verdict::Refused(_) => None,
        }
    }

    /// Renders a folder of any kind.
    pub async fn rendered(
        &self,
        tree: FileTree,
        options: Options,
        server: Capabilities,
    ) -> Result<Rendered, HelmFailure> {
        self.rendered_for("", tree, options, server).await
    }

    /// Like [`Helm::render`], for a Sync of this namespace: if many wait for helm, the namespaces
    /// take turns.
    pub async fn rendered_for(
        &self,
        who: &str,
        tree: FileTree,
        options: Options,
        server: Capabilities,
    ) -> Result<Rendered, HelmFailure> {
        if options.kind.chosen(&tree, &options.path) != Kind::Helm {
            return Ok(self.charts_printed(who, tree, options).await?.1);
        }
        let variables = options.variables.clone();
        let run = match apart(move || invocation(&tree, &options, &server)).await? {
            Ok(run) => Arc::new(run),
            Err(problem) => {
                let (objects, skipped) = (Vec::new(), Vec::new());
                return Ok(Rendered::Incomplete(Incomplete {
                    objects,
                    skipped,
                    problems: vec![problem],
                    wanted: Vec::new(),
                    unfetched: Vec::new(),
                }));
            }
        };
        let output = self.output(who, run.clone()).await?;
        apart(move || {
            let _turn = run.room.turn();
            charted(&run, output, variables.as_deref())
        })
        .await
    }

    /// Renders a folder that is no chart; also returns its files with the output of the charts that
    /// it names.
    pub async fn charts_printed(
        &self,
        who: &str,
        mut tree: FileTree,
        options: Options,
    ) -> Result<(FileTree, Rendered), HelmFailure> {
        let options = Arc::new(options);
        for _ in 0..MAX_ROUNDS {
            let (files, asked) = (tree.clone(), options.clone());
            let rendered = apart(move || {
                let _turn = files.room().turn();
                render(&files, &asked)
            })
            .await?;
            let wanted = match &rendered {
                Rendered::Incomplete(incomplete) => incomplete.wanted.clone(),
                Rendered::Complete(_) => Vec::new(),
            };
            if wanted.is_empty() {
                return Ok((tree, rendered));
            }
            for run in wanted {
                let output = self.output(who, run.clone()).await?;
                tree = printing(tree, &run, &output);
            }
        }
        let what = format!(
            "the charts of one kustomization were asked for {MAX_ROUNDS} times over; make several of it"
        );
        Err(HelmFailure::Exceeded { what: what.into() })
    }

    /// Returns helm's output for a run, from the cache if possible.
    async fn output(&self, who: &str, run: Arc<Invocation>) -> Result<Arc<[u8]>, HelmFailure> {
        let program = Program::find(&self.0.program)?;
        let key = Sha256::new().chain_update(program.identity()).chain_update(run.digest());
        let (this, who) = (self.clone(), who.to_owned());
        self.0.cache.get(key.finalize().into(), || async move { this.run(&who, program, run).await }).await
    }

    async fn run(&self, who: &str, program: Program, run: Arc<Invocation>) -> Result<Arc<[u8]>, HelmFailure> {
        let no_room = |no_room: NoRoom| HelmFailure::Exceeded { what: no_room.to_string().into() };
        run.room.take(fence::MEMORY).map_err(no_room)?;
        let _turn = self.0.runs.take(who).await;
        let room = run.room.clone();
        let this = self.0.clone();
        apart(move || {
            this.walls();
            tracing::debug!(chart = run.shown(), "helm is started");
            let place = Place {
                program: program.path(),
                fence: &this.fence,
                work: &this.work,
                strength: this.strength,
                deadline: this.deadline,
            };
            match child::run(&run, &place)? {
                Ended::Well(output) => Ok(output.into()),
                Ended::Refused(words) => Err(HelmFailure::Failed { text: told(&run, &words).into() }),
            }
        })
        .await
        .inspect(|_| room.give(fence::MEMORY))?
    }
}

impl Inner {
    /// A copy with no probed protections, whose settings can be changed.
    fn anew(&self) -> Self {
        Self {
            program: self.program.clone(),
            fence: self.fence.clone(),
            work: self.work.clone(),
            deadline: self.deadline,
            cache: self.cache.clone(),
            runs: Line::new(MAX_RUNS),
            strength: self.strength,
            walls: OnceLock::new(),
        }
    }

    /// The available protections, probed once; `None` if the probe fails.
    fn walls(&self) -> Option<&Walls> {
        let ask = || {
            let walls = child::walls(&self.fence);
            let said = walls.as_ref().map_or_else(|| "unknown".to_owned(), Walls::to_string);
            tracing::debug!(walls = said, "helm runs behind a fence");
            walls
        };
        self.walls.get_or_init(ask).as_ref()
    }
}

/// Runs work that needs the processor or waits for a process on a thread where it blocks no other
/// task.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, HelmFailure> {
    crate::chance::aside(work).await.map_err(|_| HelmFailure::Stopped)
}
