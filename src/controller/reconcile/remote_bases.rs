//! Remote bases: repositories that kustomizations reference by URL.
//!
//! In: the references that a render could not resolve, and the allow list.
//! Out: the same file tree with the files of the other repositories mounted in it.
//!
//! A remote base is fetched like any other repository, but without credentials. A base that may not
//! be fetched becomes a reason in the tree, and the render reports it with the line that names it.
//! A base that does not answer is a reconcile error, which may be temporary.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::api::SyncName;
use crate::clock;
use crate::controller::Context;
use crate::controller::peers::latest_revisions;
pub use crate::controller::peers::latest_revisions::LatestRevisions;
use crate::controller::peers::latest_revisions::RevisionChannel;
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::ValidatedSpec;
use crate::kustomize::{MissingInputs, Remote};
use crate::metrics::{GitOperation, Metrics};
use crate::position::SourcePosition;
use crate::report::ReconcileError;
use crate::source::{
    Address, AllowList, Credentials, Error, ObjectIds, ReadLimits, Reference, Repositories, Repository,
    Revision,
};
use crate::tree::{FileTree, MAX_FILES, MAX_TREE_BYTES, TreeEntry};

/// Most remote bases that one render may name.
const MAX_BASES: usize = 32;

/// Everything that resolving remote bases needs: pool, allow list, cache and requester.
pub struct RemoteBaseContext<'a> {
    /// Pool of repository mirrors.
    pub repositories: &'a Repositories,
    /// Cache of the newest revisions.
    pub heads: &'a LatestRevisions,
    /// Allow list of repositories that may be fetched.
    pub allowed: &'a AllowList,
    /// Receives the bases that the last render named.
    pub followed: &'a TrackedBases,
    /// Namespace on whose behalf they are fetched.
    pub asker: &'a str,
    /// Sync that needs them; empty if there is none.
    pub sync: Box<str>,
    /// Metrics of the Git requests.
    pub metrics: &'a Metrics,
    /// True if only bases pinned to a full commit id are fetched.
    pub pinned: bool,
    /// Age up to which a cached revision is new enough.
    pub fresh: Duration,
}

impl<'a> RemoteBaseContext<'a> {
    /// Returns the rules for reading the remote bases of a Sync. A revision that was read within
    /// `fresh` is new enough.
    pub(in crate::controller) fn of_sync(
        context: &'a Context,
        sync: &'a SyncName,
        valid_spec: &ValidatedSpec,
        followed: &'a TrackedBases,
        fresh: Duration,
    ) -> Self {
        Self {
            repositories: &context.sources.repositories,
            heads: &context.sources.heads,
            allowed: &context.sources.allowed,
            followed,
            asker: &sync.namespace,
            sync: sync.to_string().into(),
            metrics: &context.reporting.metrics,
            pinned: valid_spec.verify.is_some(),
            fresh,
        }
    }
}

/// Remote bases that a render has named so far.
#[derive(Debug, Default)]
pub struct ResolvedBases {
    named: BTreeMap<Box<str>, Result<RemoteBase, Box<str>>>,
    /// Files that were read, by mount point, with the folders that were requested.
    read: BTreeMap<Box<str>, (BTreeSet<Box<str>>, FileTree)>,
}

/// A remote base at its resolved commit.
#[derive(Debug, Clone)]
pub struct RemoteBase {
    address: Address,
    reference: Reference,
    repository: Repository,
    head: Arc<RevisionChannel>,
    revision: Revision,
    /// Folders of it that are named.
    paths: BTreeSet<Box<str>>,
    /// Git object ids of the files that were read; equal ids mean equal files.
    ids: ObjectIds,
}

impl ResolvedBases {
    /// Returns the tree with the files of all remote bases that are known so far.
    pub async fn mount(&mut self, files: FileTree, by: Instant) -> Result<FileTree, ReconcileError> {
        let mut wanted: BTreeMap<Box<str>, (&RemoteBase, BTreeSet<Box<str>>)> = BTreeMap::new();
        for base in self.named.values().flatten() {
            wanted
                .entry(base.place())
                .or_insert((base, BTreeSet::new()))
                .1
                .extend(base.paths.iter().cloned());
        }
        for (place, (base, paths)) in wanted {
            if self.read.get(&place).is_none_or(|(before, _)| *before != paths) {
                let extra_folders: Vec<Box<str>> = paths.iter().cloned().collect();
                let asked = (&[][..], &extra_folders[..]);
                let within =
                    ReadLimits { memory_limit: files.memory_limit().clone(), ..ReadLimits::default() };
                let reading =
                    base.repository.read_changed(&base.revision, asked, &ObjectIds::new(), &within, by).await;
                let snapshot = reading.map_err(|error| base.reconcile_error(error))?.snapshot;
                let files = snapshot.map(|snapshot| snapshot.files).unwrap_or_default();
                self.read.insert(place, (paths, files));
            }
        }
        self.check_size(&files)?;
        let names = self
            .named
            .iter()
            .map(|(name, base)| (name.clone(), base.as_ref().map(RemoteBase::place).map_err(Clone::clone)));
        let there = self.read.iter().map(|(place, (_, files))| (place.clone(), files.clone()));
        Ok(if self.named.is_empty() { files } else { files.with_mounts(names.collect(), there) })
    }

    /// Resolves the paths that are missing in `files`, a tree that [`Self::mount`] returned.
    /// Returns the missing folders of the repository itself, and true if the tree has to be mounted
    /// again.
    pub async fn take(
        &mut self,
        missing: MissingInputs,
        files: &FileTree,
        context: &RemoteBaseContext<'_>,
        by: Instant,
    ) -> Result<(BTreeSet<Box<str>>, bool), ReconcileError> {
        let (mut own, mut grown) = (BTreeSet::new(), !missing.remotes.is_empty());
        for folder in missing.folders {
            let (place, inside) = files.split_mount(&folder);
            let base = self.named.values_mut().flatten().find(|base| *base.place() == *place);
            match base.filter(|_| !place.is_empty()) {
                Some(base) => grown |= base.paths.insert(inside.into()),
                None => drop(own.insert(folder.into())),
            }
        }
        for (remote, place) in missing.remotes {
            let name = remote.name().into_boxed_str();
            if !self.named.contains_key(&name) {
                let base = match self.named.len() < MAX_BASES {
                    true => find(&remote, &place, context, by).await?,
                    false => Err(format!("exceeds the limit of {MAX_BASES} remote bases per render").into()),
                };
                self.named.insert(name.clone(), base);
            }
            if let Some(Ok(base)) = self.named.get_mut(&name) {
                base.paths.insert(normal(&remote.path));
            }
        }
        context.followed.set(self.found());
        Ok((own, grown))
    }

    /// Returns all remote bases, each with the object ids of the paths that the render read.
    pub async fn read<'a>(
        &self,
        files: &FileTree,
        read: impl Iterator<Item = &'a str>,
        by: Instant,
    ) -> Result<Vec<RemoteBase>, ReconcileError> {
        let mut paths: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (place, inside) in read.map(|path| files.split_mount(path)) {
            paths.entry(place).or_default().push(inside);
        }
        let mut found = self.found();
        for base in &mut found {
            let paths = paths.get(&*base.place()).cloned().unwrap_or_default();
            let ids = base.repository.ids(&base.revision, paths, by).await;
            base.ids = ids.map_err(|error| base.reconcile_error(error))?;
        }
        Ok(found)
    }

    /// Returns one line for each remote base: its address and its commit.
    pub fn descriptions(&self) -> Vec<String> {
        self.found().iter().map(|base| format!("{} is {}", base.address, base.revision)).collect()
    }

    fn found(&self) -> Vec<RemoteBase> {
        self.named.values().flatten().cloned().collect()
    }

    /// Checks the limits of one tree against all mounted trees together.
    fn check_size(&self, own: &FileTree) -> Result<(), ReconcileError> {
        let trees = || self.read.values().map(|(_, files)| files).chain([own]);
        let entries = || trees().flat_map(|tree| tree.entries().map(|(_, entry)| entry));
        let bytes =
            |entry: &TreeEntry| if let TreeEntry::File(bytes) = entry { bytes.len() as u64 } else { 0 };
        let (of, limit) = match entries().count() > MAX_FILES {
            true => ("files", MAX_FILES as u64),
            false if entries().map(bytes).sum::<u64>() > MAX_TREE_BYTES => ("bytes", MAX_TREE_BYTES),
            false => return Ok(()),
        };
        Err(source_error(Error::TooMuch { path: "the repository with its remote bases".into(), of, limit }))
    }
}

impl RemoteBase {
    /// Returns the mount point. No repository path has two slashes, and no address has a space.
    fn place(&self) -> Box<str> {
        format!("{} at {}", self.address, self.revision.commit).into()
    }

    fn reconcile_error(&self, error: Error) -> ReconcileError {
        reconcile_error(&self.address, error)
    }

    /// Returns the newest revision in the shared cache.
    fn newest(&self) -> Revision {
        match &self.reference {
            Reference::Commit(_) => self.revision.clone(),
            _ => self
                .head
                .borrow()
                .as_ref()
                .map_or_else(|| self.revision.clone(), |seen| seen.revision.clone()),
        }
    }

    /// Resolves the reference to a revision.
    async fn look(&self, context: &RemoteBaseContext<'_>, by: Instant) -> Result<Revision, Error> {
        look((&self.repository, &self.head), &self.reference, context, by).await
    }
}

/// Returns the bases at their newest commits, or `None` if a file that was read has changed.
pub(crate) async fn renewed(
    bases: &Arc<[RemoteBase]>,
    context: &RemoteBaseContext<'_>,
    by: Instant,
) -> Result<Option<Arc<[RemoteBase]>>, ReconcileError> {
    if bases.iter().all(|base| base.newest() == base.revision) {
        return Ok(Some(bases.clone()));
    }
    let mut now = bases.to_vec();
    for base in &mut now {
        let newest = base.newest();
        if newest.commit != base.revision.commit {
            let paths = base.ids.keys().map(|path| &**path);
            let ids =
                base.repository.ids(&newest, paths, by).await.map_err(|error| base.reconcile_error(error))?;
            if ids != base.ids {
                return Ok(None);
            }
        }
        base.revision = newest;
    }
    context.followed.set(now.clone());
    Ok(Some(now.into()))
}

/// Resolves a remote reference to a base; the inner error is the reason for not fetching it.
async fn find(
    remote: &Remote,
    place: &SourcePosition,
    context: &RemoteBaseContext<'_>,
    by: Instant,
) -> Result<Result<RemoteBase, Box<str>>, ReconcileError> {
    let address = match Address::remote(&remote.repository) {
        Ok(address) if context.allowed.allows(&address) => address,
        Ok(_) => return Ok(Err(NOT_ALLOWED.into())),
        Err(error) => return Ok(Err(format!("is not fetched: {error}").into())),
    };
    let reference = match Reference::named(remote.reference.as_deref().unwrap_or_default()) {
        Ok(reference) if context.pinned && !matches!(reference, Reference::Commit(_)) => {
            return Ok(Err(NOT_PINNED.into()));
        }
        Ok(reference) => reference,
        Err(error) => return Ok(Err(format!("is not fetched: {error}").into())),
    };
    let at_place = |error: Error| {
        let ReconcileError { message, .. } = reconcile_error(&address, error.clone());
        ReconcileError { message: format!("{place}: {message}"), ..source_error(error) }
    };
    let opened = context.repositories.repository(&address, "", &Credentials::default());
    let repository = opened.map_err(at_place)?.on_behalf_of(context.asker);
    // The cache key that Syncs without a Secret use for this repository.
    let head = context.heads.channel((format!("{address}\n/").into(), reference.clone()));
    let revision = look((&repository, &head), &reference, context, by).await.map_err(at_place)?;
    let (paths, ids) = (BTreeSet::new(), ObjectIds::new());
    Ok(Ok(RemoteBase { address, reference, repository, head, revision, paths, ids }))
}

const NOT_ALLOWED: &str = "may not be fetched: neither the daemon setting remoteBases nor the flag --allow-remote contains a \
                           matching prefix; commit the files, or ask the administrator of the daemon to allow it";

const NOT_PINNED: &str = "is not fetched: with verify set on the source, a remote base must be pinned to a full \
                          commit id (?ref= with 40 hex digits)";

async fn look(
    (repository, head): (&Repository, &RevisionChannel),
    reference: &Reference,
    context: &RemoteBaseContext<'_>,
    by: Instant,
) -> Result<Revision, Error> {
    let is_commit = matches!(reference, Reference::Commit(_));
    let known = head.borrow().clone().filter(|seen| clock::since(seen.at) < context.fresh);
    if let Some(known) = known.filter(|_| !is_commit) {
        return Ok(known.revision);
    }
    let begun = clock::now();
    let polled = repository.resolve(reference, by).await;
    if !is_commit {
        context.metrics.git_operation(
            GitOperation::Resolve,
            clock::since(begun),
            polled.as_ref().err().map(Error::reason),
        );
        polled.iter().for_each(|revision| latest_revisions::publish(head, revision, begun));
    }
    polled
}

fn reconcile_error(address: &Address, error: Error) -> ReconcileError {
    let reconcile_error = source_error(error);
    ReconcileError {
        message: format!("the remote base {address}: {}", reconcile_error.message),
        ..reconcile_error
    }
}

/// Normalises a path; the kustomization parser has made sure that it does not leave the repository.
fn normal(path: &str) -> Box<str> {
    crate::tree::normalise("", path).unwrap_or_default().into()
}

/// The remote bases of the last render, shared between the poller and the renderer.
#[derive(Debug, Clone, Default)]
pub struct TrackedBases(Arc<Mutex<Vec<RemoteBase>>>);

impl TrackedBases {
    pub(in crate::controller) fn set(&self, bases: Vec<RemoteBase>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bases;
    }

    /// Returns true if a base resolves to another commit than the one that was rendered.
    pub(crate) async fn have_moved(
        &self,
        context: &RemoteBaseContext<'_>,
        by: Instant,
    ) -> Result<bool, ReconcileError> {
        let bases = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let looks = bases.iter().map(async |base| match base.look(context, by).await {
            Ok(revision) => Ok(revision.commit != base.revision.commit),
            Err(error) => Err(base.reconcile_error(error)),
        });
        let found = join_all(looks).await.into_iter().collect::<Result<Vec<bool>, ReconcileError>>()?;
        Ok(found.contains(&true))
    }
}
