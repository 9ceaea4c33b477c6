//! Turns a revision into the desired set: fetches files, renders them, and canonicalises the
//! objects.
//!
//! In: a repository, a revision, and the spec of the Sync.
//! Out: a [`PreparedRevision`], or an error with the problems and their locations.
//!
//! A commit that changes no file of the last render is not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::lfs_files::LfsFetches;
use super::mounts;
use super::mounts::{KeptMount, ReadMounts};
use super::own_files::read_own_files;
use super::remote_bases;
use super::remote_bases::{RemoteBase, ResolvedBases};
use super::render_memory;
use super::render_memory::MemoryLimits;
use super::renderer::{ChartFetches, RenderContext};
use crate::chance;
use crate::controller::reconcile_errors::{source_error, too_slow};
use crate::controller::spec::ValidatedSpec;
use crate::desired::{DesiredSet, Scopes, SetDigest, build_desired_set};
use crate::object::ObjectId;
use crate::proof::KeyRing;
use crate::render::helm::Capabilities;
use crate::render::{Rendered, missing_inputs};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{
    CommitSummary, MemoryShare, ObjectHash, ObjectIds, ReadLimits, Repository, Revision, Snapshot,
};
use crate::tree::MemoryLimit;

/// A revision and its desired set.
#[derive(Debug, Clone)]
pub(crate) struct PreparedRevision {
    pub(crate) revision: Revision,
    /// Author and subject of the commit.
    pub(crate) summary: CommitSummary,
    /// Git object ids of the files that were read; equal ids mean equal files.
    pub(crate) ids: ObjectIds,
    /// Git id of the tree or file at the path.
    pub(crate) tree: Option<ObjectHash>,
    /// Folders that other folders reference, and that have to be fetched as well.
    extra_folders: Arc<[Box<str>]>,
    /// Repositories of submodules; holding them keeps their mirrors.
    #[expect(dead_code, reason = "keeps the resource alive")]
    submodule_repositories: Arc<[Repository]>,
    /// Remote bases.
    bases: Arc<[RemoteBase]>,
    /// Mounts of the source.
    mounts: Arc<[KeptMount]>,
    /// The desired set of Git and the Sync.
    pub(crate) rendered: Arc<DesiredSet>,
    /// Version and kinds of the server that a chart could read.
    server: Option<Arc<Capabilities>>,
    /// Warning about the isolation in which helm rendered a chart.
    pub(crate) caution: Option<Arc<str>>,
    /// Digest of `rendered`.
    pub(crate) digest: SetDigest,
    /// The desired set without the fields that are left to autoscalers.
    pub(crate) desired: Arc<DesiredSet>,
    /// Path of the number of replicas in each object that an autoscaler scales.
    pub(crate) unmanaged_replicas: BTreeMap<ObjectId, Box<str>>,
    /// Memory limit of the render; the next render most likely needs as much.
    memory_limit: u64,
    /// Memory reserved for its objects.
    #[expect(dead_code, reason = "keeps the resource alive")]
    kept: Arc<MemoryShare>,
    /// True if all kinds were served; else it is rendered again when more kinds are served.
    pub(crate) complete: bool,
}

impl PreparedRevision {
    /// Returns the same revision with hashes of the current keys. `recorded` is the revision that
    /// an earlier daemon recorded last.
    pub(crate) fn with_keys(mut self, keys: Option<Arc<KeyRing>>, recorded: Option<&str>) -> Self {
        let Some(keys) = keys else { return self };
        let is_recorded = recorded.is_some_and(|recorded| recorded == self.revision.to_string());
        if !self.rendered.has_keys(&keys, is_recorded) {
            let is_one = Arc::ptr_eq(&self.rendered, &self.desired);
            self.rendered = Arc::new(self.rendered.with_keys(&keys, is_recorded));
            self.desired = match is_one {
                true => self.rendered.clone(),
                false => Arc::new(self.desired.with_keys(&keys, is_recorded)),
            };
            self.digest = self.rendered.digest();
        }
        self
    }

    /// Returns true if the render depends on the kinds that the server serves.
    pub(crate) fn looks_at_kinds(&self) -> bool {
        self.server.as_ref().is_some_and(|shown| !shown.api_versions.is_empty())
    }
}

/// Most problems that are reported.
const MAX_PROBLEMS: usize = 20;

/// Prepares a revision; the last prepared one is reused if nothing has changed.
pub(crate) async fn prepare(
    repository: &Repository,
    revision: &Revision,
    valid_spec: &ValidatedSpec,
    context: RenderContext<'_>,
    last: Option<&PreparedRevision>,
    by: Instant,
) -> Result<PreparedRevision, ReconcileError> {
    let memory = context.base_context.repositories.memory();
    context.fetch_chart(valid_spec, revision, by).await?;
    // A repair of what is rendered already waits for no server.
    if last.is_none_or(|last| !last.revision.has_same_files(revision)) {
        context.fetch_mounts(revision, by).await?;
    }
    let mut limits = MemoryLimits::of(memory, valid_spec, last.map(|last| last.memory_limit));
    let mut charts = ChartFetches::default();
    loop {
        let (prepared, short) = {
            let memory_limit = limits.current();
            // Cancels the remaining work when this future is dropped.
            let _stop = memory_limit.stop_on_drop();
            let from = (repository, revision);
            (
                prepare_in(&memory_limit, from, valid_spec, (context, &mut charts), last, by).await,
                memory_limit.required_bytes(),
            )
        };
        match (&prepared, short) {
            (Err(_), Some(short)) => limits.grow(short)?,
            (Err(_), None)
                if !charts.wanted.is_empty() || charts.data_keys.is_wanting() || charts.lfs.is_wanting() => {}
            (Ok(_), _) | (Err(_), None) => {
                return prepared.map_err(|reconcile_error| charts.data_keys.judged(reconcile_error));
            }
        }
        let repositories = context.base_context.repositories;
        charts.lfs.fetch(repository, context.is_for_strangers, by).await?;
        charts.data_keys.fetch(repositories, context.base_context.asker, valid_spec, by).await;
        context.fetch_charts(valid_spec, &mut charts, by).await?;
    }
}

/// Prepares a revision within a memory limit.
async fn prepare_in(
    memory_limit: &MemoryLimit,
    (repository, revision): (&Repository, &Revision),
    valid_spec: &ValidatedSpec,
    (context, charts): (RenderContext<'_>, &mut ChartFetches),
    last: Option<&PreparedRevision>,
    by: Instant,
) -> Result<PreparedRevision, ReconcileError> {
    let base_context = context.base_context;
    let mut last = last.filter(|last| last.complete);
    // Another version of the chart is another render, also of the same files.
    last = last.filter(|last| last.revision.chart == revision.chart);
    if !context.is_server_unchanged(last.and_then(|last| last.server.as_deref())).await? {
        last = None;
    }
    let kept = match last {
        Some(last) => with_unchanged_sources(last, context, revision, by).await?,
        None => None,
    };
    if let Some(kept) = kept.as_ref().filter(|kept| kept.revision.has_same_files(revision)) {
        base_context.followed.set(kept.bases.to_vec());
        return Ok(PreparedRevision { revision: revision.clone(), ..kept.clone() });
    }
    let earlier = kept.as_ref().map(|kept| kept.ids.clone()).unwrap_or_default();
    // References rarely change, so the folders of the last time are fetched at once.
    let mut extra_folders: BTreeSet<Box<str>> =
        last.iter().flat_map(|last| last.extra_folders.iter().cloned()).collect();
    context.check_mount_places((repository, revision), by).await?;
    let Some((snapshot, bases, mounts)) = fetch_until_complete(
        (repository, revision),
        valid_spec,
        (memory_limit, &mut charts.lfs),
        &earlier,
        &mut extra_folders,
        by,
        context,
    )
    .await?
    else {
        // Files that were never read cannot be unchanged.
        let kept = kept.ok_or_else(stopped)?;
        base_context.followed.set(kept.bases.to_vec());
        let (tree, summary) = path_id_and_summary(repository, revision, valid_spec, by).await?;
        return Ok(PreparedRevision { revision: revision.clone(), summary, tree, ..kept });
    };
    let Snapshot { files, mut ids, submodule_repositories: modules, .. } = snapshot;
    let files = context.decrypted(files, valid_spec, charts, by).await?;
    let (rendered, server) = context.rendered(files.clone(), (valid_spec, revision), charts, by).await?;
    let caution = match &rendered {
        Rendered::Complete(complete) if complete.is_by_helm() => context.helm.isolation_warning().await,
        Rendered::Complete(_) | Rendered::Incomplete(_) => None,
    };
    let scopes = context.cluster.kinds().scopes();
    let (desired, read) =
        build_on_thread(rendered, files.memory_limit().clone(), valid_spec, scopes, by).await?;
    let rendered = Arc::new(desired.without_ignored_fields(&valid_spec.ignore));
    let kept = render_memory::kept(base_context.repositories.memory(), &base_context.sync, &rendered)?;
    let paths = || read.iter().flatten().map(String::as_str);
    let bases = bases.read(&files, paths(), by).await?;
    // Files in a submodule have no id here; for them the folders as a whole are compared.
    if read.is_some() && modules.is_empty() {
        let own = paths().filter(|path| files.split_mount(path).0.is_empty() && !mounts.holds(path));
        ids = repository.ids(revision, own, by).await.map_err(source_error)?;
    }
    let inputs: Option<Vec<&str>> = read.is_some().then(|| paths().collect());
    let mounts = mounts.kept(inputs.as_deref(), by).await?;
    let (tree, summary) = path_id_and_summary(repository, revision, valid_spec, by).await?;
    Ok(PreparedRevision {
        revision: revision.clone(),
        summary,
        ids,
        tree,
        extra_folders: extra_folders.into_iter().collect(),
        submodule_repositories: modules.into(),
        bases: bases.into(),
        mounts,
        desired: rendered.clone(),
        digest: rendered.digest(),
        complete: rendered.objects().iter().all(|object| object.scope.is_some()),
        rendered,
        server,
        caution: caution.map(Arc::from),
        unmanaged_replicas: BTreeMap::new(),
        memory_limit: memory_limit.limit(),
        kept,
    })
}

/// Returns the last render if its remote bases and its mounts have the same files today.
async fn with_unchanged_sources(
    last: &PreparedRevision,
    context: RenderContext<'_>,
    revision: &Revision,
    by: Instant,
) -> Result<Option<PreparedRevision>, ReconcileError> {
    let bases = remote_bases::renewed(&last.bases, context.base_context, by).await?;
    let mounts = context.renewed_mounts(&last.mounts, revision, by).await?;
    Ok(bases.zip(mounts).map(|(bases, mounts)| PreparedRevision { bases, mounts, ..last.clone() }))
}

/// Builds the desired set on a blocking thread: that is CPU-bound, and must not block the async
/// runtime.
async fn build_on_thread(
    rendered: Rendered,
    memory_limit: MemoryLimit,
    valid_spec: &ValidatedSpec,
    scopes: Scopes,
    by: Instant,
) -> Result<(DesiredSet, Option<BTreeSet<String>>), ReconcileError> {
    let target = valid_spec.target_namespace.clone();
    let built = chance::spawn_blocking_deterministic(move || {
        let _turn = memory_limit.wait_for_processor();
        desired_set(rendered, &target, &scopes)
    });
    let built = tokio::time::timeout_at(by.into(), built).await.map_err(|_| too_slow())?;
    built.unwrap_or_else(|_| Err(stopped()))
}

/// Returns the desired set of a render, and the paths that it depends on unless these are whole
/// folders.
fn desired_set(
    rendered: Rendered,
    target: &str,
    scopes: &Scopes,
) -> Result<(DesiredSet, Option<BTreeSet<String>>), ReconcileError> {
    match rendered {
        Rendered::Incomplete(incomplete) => Err(of_problems(
            incomplete.problems.first().map_or("RenderFailed", |problem| problem.reason()),
            &incomplete.problems,
        )),
        Rendered::Complete(complete) => {
            let read = complete.input_paths().cloned();
            let built = build_desired_set(complete, target, scopes).map_err(|problems| {
                of_problems(problems.first().map_or("RenderFailed", |first| first.reason()), &problems)
            })?;
            Ok((built, read))
        }
    }
}

/// Returns the Git id at the path of a Sync, and author and subject of the commit.
async fn path_id_and_summary(
    repository: &Repository,
    revision: &Revision,
    valid_spec: &ValidatedSpec,
    by: Instant,
) -> Result<(Option<ObjectHash>, CommitSummary), ReconcileError> {
    repository.object_at(revision, &valid_spec.options.path, by).await.map_err(source_error)
}

/// Most rounds of fetching referenced folders, and so the deepest nesting of references.
const MAX_ROUNDS: usize = 64;

/// Fetches the files that a render reads, with those of remote bases; `None` if they are unchanged.
/// Referenced folders that were missing are added to `extra_folders`.
async fn fetch_until_complete(
    from: (&Repository, &Revision),
    valid_spec: &ValidatedSpec,
    (memory_limit, lfs): (&MemoryLimit, &mut LfsFetches),
    earlier: &ObjectIds,
    extra_folders: &mut BTreeSet<Box<str>>,
    by: Instant,
    context: RenderContext<'_>,
) -> Result<Option<(Snapshot, ResolvedBases, ReadMounts)>, ReconcileError> {
    let base_context = context.base_context;
    let within = ReadLimits { memory_limit: memory_limit.clone(), choose: render_memory::choose(valid_spec) };
    let mut read = async |extra_folders: &BTreeSet<Box<str>>, earlier: &ObjectIds| {
        read_own_files(from, valid_spec, (extra_folders, &within), (earlier, lfs), by, base_context.metrics)
            .await
    };
    let taken = memory_limit.reserved_bytes();
    let Some(mut snapshot) = read(extra_folders, earlier).await? else {
        return Ok(None);
    };
    let mut own = memory_limit.reserved_bytes() - taken;
    let (mounts, mut bases) =
        (context.read_mounts(from.1, memory_limit, by).await?, ResolvedBases::default());
    for _ in 0..MAX_ROUNDS {
        let files = bases.mount(mounts.place(snapshot.files.clone())?, by).await?;
        let (tree, options) = (files.clone(), valid_spec.options.clone());
        let looked = chance::spawn_blocking_deterministic(move || {
            let _turn = tree.memory_limit().wait_for_processor();
            missing_inputs(&tree, &options)
        });
        let missing = looked.await.unwrap_or_default();
        let (more, grown) = bases.take(missing, &files, base_context, by).await?;
        let before = extra_folders.len();
        extra_folders.extend(more);
        match (extra_folders.len() > before, grown) {
            (false, false) => {
                mounts::check_path(valid_spec, &files, from.1)?;
                snapshot.files = files;
                return Ok(Some((snapshot, bases, mounts)));
            }
            (false, true) => {}
            (true, _) => {
                // The second read replaces the first one, so the memory of the first is returned.
                drop((files, std::mem::take(&mut snapshot.files)));
                memory_limit.give_back(own);
                let taken = memory_limit.reserved_bytes();
                snapshot = read(extra_folders, &ObjectIds::new()).await?.ok_or_else(stopped)?;
                own = memory_limit.reserved_bytes() - taken;
            }
        }
    }
    let message = format!("kustomizations reference each other more than {MAX_ROUNDS} levels deep");
    Err(ReconcileError {
        cause: ErrorCause::KustomizeInvalid,
        message,
        problems: Vec::new(),
        permanent: true,
    })
}

fn of_problems(reason: &'static str, problems: &[impl std::fmt::Display]) -> ReconcileError {
    let shown: Vec<String> = problems.iter().take(MAX_PROBLEMS).map(ToString::to_string).collect();
    let message = match shown.as_slice() {
        [only] if problems.len() == 1 => only.clone(),
        [first, ..] => format!("{first} (and {} more)", problems.len() - 1),
        [] => "the render is incomplete".to_owned(),
    };
    ReconcileError { cause: ErrorCause::Input(reason), message, problems: shown, permanent: true }
}

fn stopped() -> ReconcileError {
    let message = "the render was stopped".to_owned();
    ReconcileError { cause: ErrorCause::Stopped, message, problems: Vec::new(), permanent: false }
}
