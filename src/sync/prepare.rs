//! From a revision to what the cluster should hold: the pure stations, fed from the repository.
//!
//! In: a repository, a revision, and what the Sync asks for. Out: a [`Prepared`] commit, or [`Trouble`] that says
//! what is wrong and where. A commit that changes nothing that was read the last time is not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::rendering::Means;
use super::wish::Wish;
use crate::api::SpecHash;
use crate::cluster::Failure;
use crate::desired::{DesiredSet, Scopes, desired};
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::render::helm::Capabilities;
use crate::render::{Rendered, missing};
use crate::report::Trouble;
use crate::source::{Error, Ids, ObjectHash, Reading, Repository, Revision, Snapshot};

/// What a commit comes to.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) revision: Revision,
    /// What was read for it; the same ids mean the same files.
    pub(crate) ids: Ids,
    /// The id of what lies at the path.
    pub(crate) tree: Option<ObjectHash>,
    /// The folders that are named from elsewhere, and have to be brought.
    named: Arc<[Box<str>]>,
    /// The repositories of submodules, whose mirrors stay as long as these are held.
    #[expect(dead_code, reason = "it is held, and nothing is asked of it")]
    beside: Arc<[Repository]>,
    /// What Git and the Sync say.
    pub(crate) rendered: Arc<DesiredSet>,
    /// What a chart was shown of the server.
    server: Option<Arc<Capabilities>>,
    /// A digest of that.
    pub(crate) digest: SpecHash,
    /// The same without what is left to scalers.
    pub(crate) desired: Arc<DesiredSet>,
    /// Where each object that others scale keeps its number of replicas.
    pub(crate) left: BTreeMap<ObjectId, Box<str>>,
    /// What was known of kinds; a set in which some kinds were not known is made anew when more is.
    pub(crate) complete: bool,
}

impl Prepared {
    /// True if it may come to something else when the server serves other kinds.
    pub(crate) fn looks_at_kinds(&self) -> bool {
        self.server.as_ref().is_some_and(|shown| !shown.served.is_empty())
    }
}

/// The most problems that are told.
const MAX_PROBLEMS: usize = 20;

/// Prepares a revision, with what was prepared last as a hint.
pub(crate) async fn prepare(
    repository: &Repository,
    revision: &Revision,
    wish: &Wish,
    means: Means<'_>,
    last: Option<&Prepared>,
    by: Instant,
) -> Result<Prepared, Trouble> {
    let mut last = last.filter(|last| last.complete);
    if !means.are_as(last.and_then(|last| last.server.as_deref())).await? {
        last = None;
    }
    let (scopes, metrics) = (means.cluster.kinds().scopes(), means.metrics);
    if let Some(last) = last.filter(|last| last.revision.commit == revision.commit) {
        return Ok(Prepared { revision: revision.clone(), ..last.clone() });
    }
    let earlier = last.map(|last| last.ids.clone()).unwrap_or_default();
    let Read { snapshot, beside } =
        match brought(repository, revision, wish, &earlier, last, by, metrics).await? {
            Some(read) => read,
            None => match last {
                Some(last) => {
                    let tree = tree(repository, revision, wish, by).await?;
                    return Ok(Prepared { revision: revision.clone(), tree, ..last.clone() });
                }
                // What was never read has changed.
                None => return Err(stopped()),
            },
        };
    let (options, target) = (wish.options.clone(), wish.target_namespace.clone());
    let ignore = wish.ignore.clone();
    let (files, mut ids, modules) = (snapshot.files, snapshot.ids, snapshot.beside);
    let tree = tree(repository, revision, wish, by).await?;
    let (rendered, server) = means.rendered(files, options, by).await?;
    // Rendering is work for a processor, and must not keep others from being served.
    let made = tokio::task::spawn_blocking(move || wanted(rendered, &target, &scopes));
    let made = tokio::time::timeout_at(by.into(), made).await.map_err(|_| too_slow())?;
    let (made, read) = made.unwrap_or_else(|_| Err(stopped()))?;
    let rendered = Arc::new(made.ignoring(&ignore));
    // What lies in a submodule has no id here; there the folders as a whole count.
    if let Some(read) = read.filter(|_| modules.is_empty()) {
        let paths = read.iter().map(String::as_str);
        ids = repository.ids(revision, paths, by).await.map_err(of_source)?;
    }
    let complete = rendered.objects().iter().all(|object| object.scope.is_some());
    let (revision, desired, left) = (revision.clone(), rendered.clone(), BTreeMap::new());
    let digest = rendered.digest();
    Ok(Prepared {
        revision,
        ids,
        tree,
        named: beside,
        beside: modules.into(),
        rendered,
        server,
        digest,
        desired,
        left,
        complete,
    })
}

/// What a render wants, and the paths that it depends on where these are not whole folders.
fn wanted(
    rendered: Rendered,
    target: &str,
    scopes: &Scopes,
) -> Result<(DesiredSet, Option<BTreeSet<String>>), Trouble> {
    match rendered {
        Rendered::Incomplete(incomplete) => Err(of_problems(
            incomplete.problems.first().map_or("RenderFailed", |problem| problem.reason()),
            &incomplete.problems,
        )),
        Rendered::Complete(complete) => {
            let read = complete.read().cloned();
            let made = desired(complete, target, scopes).map_err(|problems| {
                of_problems(problems.first().map_or("RenderFailed", |first| first.reason()), &problems)
            })?;
            Ok((made, read))
        }
    }
}

/// The id of what lies at the path of a Sync.
async fn tree(
    repository: &Repository,
    revision: &Revision,
    wish: &Wish,
    by: Instant,
) -> Result<Option<ObjectHash>, Trouble> {
    let found = repository.ids(revision, [wish.options.path.as_str()], by).await.map_err(of_source)?;
    Ok(found.into_values().next().flatten())
}

/// The files of a revision, and which folders had to be brought besides its own.
struct Read {
    snapshot: Snapshot,
    beside: Arc<[Box<str>]>,
}

/// The most times that folders are brought which others name: as deep may they be nested.
const MAX_ROUNDS: usize = 64;

/// Brings the files that a render reads; none if they are as they were.
async fn brought(
    repository: &Repository,
    revision: &Revision,
    wish: &Wish,
    earlier: &Ids,
    last: Option<&Prepared>,
    by: Instant,
    metrics: &Metrics,
) -> Result<Option<Read>, Trouble> {
    let folders = [wish.options.path.as_str()];
    let mut earlier = earlier.clone();
    // What was named the last time most often is named again, and is brought at once.
    let mut beside: BTreeSet<Box<str>> = last.iter().flat_map(|last| last.named.iter().cloned()).collect();
    for _ in 0..MAX_ROUNDS {
        let begun = Instant::now();
        let wanted: Vec<Box<str>> = beside.iter().cloned().collect();
        let reading = match wish.submodules {
            true => repository.read_with_modules(revision, (&folders, &wanted), &earlier, by).await,
            false => repository.read_anew(revision, (&folders, &wanted), &earlier, by).await,
        };
        count(metrics, &reading, begun);
        let Some(snapshot) = reading.map_err(of_source)?.snapshot else { return Ok(None) };
        let (files, options) = (snapshot.files.clone(), wish.options.clone());
        let missing =
            tokio::task::spawn_blocking(move || missing(&files, &options)).await.unwrap_or_default();
        let before = beside.len();
        beside.extend(missing.into_iter().map(Into::into));
        if beside.len() == before {
            return Ok(Some(Read { snapshot, beside: wanted.into() }));
        }
        earlier = Ids::new();
    }
    let message = format!("kustomizations name folders that name folders, more than {MAX_ROUNDS} deep");
    Err(Trouble { reason: "KustomizeInvalid", message, problems: Vec::new(), lasting: true })
}

/// Counts what a reading took; one that failed is one that could not fetch, as far as anybody knows.
fn count(metrics: &Metrics, reading: &Result<Reading, Error>, begun: Instant) {
    match reading {
        Ok(reading) => {
            reading.fetched.iter().for_each(|took| metrics.git("fetch", *took, None));
            metrics.git("read", reading.took, None);
        }
        Err(error) => metrics.git("fetch", begun.elapsed(), Some(error.reason())),
    }
}

/// Why a repository gave nothing.
pub(crate) fn of_source(error: Error) -> Trouble {
    Trouble {
        reason: error.reason(),
        message: error.to_string(),
        problems: Vec::new(),
        lasting: error.needs_new_input(),
    }
}

/// Why the cluster gave nothing.
pub(crate) fn of_failure(failure: &Failure) -> Trouble {
    let reason = match failure.code() {
        Some(401 | 403) => "RightsMissing",
        Some(_) | None => "ClusterUnreachable",
    };
    Trouble { reason, message: failure.to_string(), problems: Vec::new(), lasting: false }
}

fn of_problems(reason: &'static str, problems: &[impl std::fmt::Display]) -> Trouble {
    let told: Vec<String> = problems.iter().take(MAX_PROBLEMS).map(ToString::to_string).collect();
    let message = match told.as_slice() {
        [only] if problems.len() == 1 => only.clone(),
        [first, ..] => format!("{first} (and {} more)", problems.len() - 1),
        [] => "the render is not complete".to_owned(),
    };
    Trouble { reason, message, problems: told, lasting: true }
}

pub(crate) fn too_slow() -> Trouble {
    let message = "rendering took longer than spec.timeout".to_owned();
    Trouble { reason: "RenderFailed", message, problems: Vec::new(), lasting: false }
}

fn stopped() -> Trouble {
    let message = "the render was stopped".to_owned();
    Trouble { reason: "Stopped", message, problems: Vec::new(), lasting: false }
}
