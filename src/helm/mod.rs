//! Charts, rendered by helm behind a fence.
//!
//! In: a tree, options, and what the server can do. Out: [`Rendered`], or [`HelmFailure`]. What is no chart is rendered here in this
//! process; for a chart helm is started (`child.rs`), behind walls (`fence.rs`), unless the same input was rendered before
//! (`cache.rs`): charts may draw random numbers, and what is drawn anew would be a change that nobody made.
//!
//! What `helm template` could reach in the network at all: repositories of charts, for dependencies that are missing, and those are
//! refused before it is started; the API server, for `lookup`, which it asks only when told to, and for which it has no address here;
//! name servers, for `getHostByName`, which gives an empty text unless it is told otherwise. It has no plugins and no
//! post-renderer. So the walls hold back nothing that a chart may do; they are there for the day on which helm is wrong. How many of them
//! have to stand is a setting ([`Strength`]); what stands is asked once.

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

/// The most runs of helm at a time: each may take the memory that the fence leaves it.
const MAX_RUNS: usize = 2;

/// How long helm may take for one chart.
const DEADLINE: Duration = Duration::from_secs(30);

/// The most times that a kustomization is built because charts of it were missing. Most name all of theirs the first time.
const MAX_ROUNDS: usize = 64;

/// Where helm is, and what it rendered before; cheap to clone.
#[derive(Clone)]
pub struct Helm(Arc<Inner>);

struct Inner {
    /// The program, as it was named.
    program: PathBuf,
    /// This program, which is its own fence.
    fence: PathBuf,
    /// Where the folders of the runs are made.
    work: PathBuf,
    deadline: Duration,
    cache: Cache,
    runs: Line,
    strength: Strength,
    /// Which walls stand, once that was asked.
    walls: OnceLock<Option<Walls>>,
}

impl Helm {
    /// A helm of this name or path, whose runs have their folders in `work`. What a process that is gone left there is removed.
    pub fn new(program: impl Into<PathBuf>, fence: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        let work = work.into();
        WorkFolder::remove_all(&work);
        Self::with(program.into(), fence.into(), work, DEADLINE, Cache::default())
    }

    /// The same, which keeps what was rendered in a folder of its own there.
    pub fn keeping(program: impl Into<PathBuf>, fence: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        let work = work.into();
        WorkFolder::remove_all(&work);
        let cache = Cache::on(Shelf::at(work.join("kept")));
        Self::with(program.into(), fence.into(), work, DEADLINE, cache)
    }

    /// The same, which gives a run less time.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Self(Arc::new(Inner { deadline, ..self.0.anew() }))
    }

    /// The same, which runs helm only behind a fence of this strength.
    #[must_use]
    pub fn behind(self, strength: Strength) -> Self {
        Self(Arc::new(Inner { strength, ..self.0.anew() }))
    }

    fn with(program: PathBuf, fence: PathBuf, work: PathBuf, deadline: Duration, cache: Cache) -> Self {
        let (runs, walls, strength) = (Line::new(MAX_RUNS), OnceLock::new(), Strength::default());
        Self(Arc::new(Inner { program, fence, work, deadline, cache, runs, strength, walls }))
    }

    /// What is to be said of the fence behind which charts are rendered, if a wall is missing.
    pub async fn caution(&self) -> Option<String> {
        let this = self.0.clone();
        match apart(move || this.walls().map(|walls| walls.verdict(this.strength))).await.ok()?? {
            Verdict::Weaker(said) => Some(said),
            Verdict::Stands | Verdict::Refused(_) => None,
        }
    }

    /// What a folder comes to, whatever it is.
    pub async fn rendered(
        &self,
        tree: FileTree,
        options: Options,
        server: Capabilities,
    ) -> Result<Rendered, HelmFailure> {
        self.rendered_for("", tree, options, server).await
    }

    /// The same for a Sync of this namespace: where many wait for helm, each namespace has its turn.
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

    /// A folder that is no chart, with what helm prints for the charts that it names, and what it comes to.
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

    /// What helm prints for this: what it printed before, if it was asked before.
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
    /// The same, of which nothing was asked.
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

    /// Which walls stand here; none if the fence does not say.
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

/// Does what takes time for a processor, or waits for another process, where it keeps nobody from being served.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, HelmFailure> {
    crate::chance::aside(work).await.map_err(|_| HelmFailure::Stopped)
}
