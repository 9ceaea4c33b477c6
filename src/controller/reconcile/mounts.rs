//! Files of other sources in folders of a source, as `spec.source.mounts` names them.
//!
//! In: the sources of the mounts, and the revision of each that was taken up with a commit.
//! Out: the file tree of the commit with their files, and what a later commit is compared with. A
//! folder of a mount that the repository has itself is an error: nothing is hidden.

use std::sync::Arc;
use std::time::Instant;

use super::own_files::count;
use super::renderer::RenderContext;
use crate::api::SyncName;
use crate::clock;
use crate::controller::credentials::secret_permission::SecretPermission;
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::identity::mount_owner;
use crate::controller::spec::{ValidatedMount, ValidatedSpec, is_inside};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{
    Credentials, Error, MountedRevision, ObjectIds, OccupiedPlace, ReadLimits, Repositories, Repository,
    Revision, SignaturePolicy, TrustedKeys,
};
use crate::tree::{FileTree, MAX_FILES, MAX_PATH_BYTES, MAX_TREE_BYTES, MemoryLimit, TreeEntry};

/// Source of a mount, with the content of everything that it names.
#[derive(Debug, Clone)]
pub(crate) struct MountSource {
    /// Its place in the list of mounts.
    at: usize,
    pub(crate) mount: ValidatedMount,
    pub(crate) repository: Repository,
    credentials: Credentials,
    /// Permission to send the credentials, where the Secret itself does not allow it.
    pub(crate) permission: Option<Arc<SecretPermission>>,
    /// The trusted signing keys, where signatures are verified.
    pub(crate) keys: Option<Arc<TrustedKeys>>,
}

impl MountSource {
    /// Opens the source of a mount of a Sync. Its mirror is shared by the Syncs of the namespace
    /// that name the same Secret for it.
    pub(crate) fn open(
        repositories: &Repositories,
        (sync, valid_spec): (&SyncName, &ValidatedSpec),
        (at, mount): (usize, &ValidatedMount),
        (credentials, permission): (Credentials, Option<Arc<SecretPermission>>),
        keys: Option<Arc<TrustedKeys>>,
    ) -> Result<Self, ReconcileError> {
        let owner = mount_owner(valid_spec, &sync.namespace, &mount.source);
        let opened = repositories.repository(&mount.source.address, &owner, &credentials);
        let repository = opened.map_err(source_error)?.on_behalf_of(&sync.namespace);
        Ok(Self { at, mount: mount.clone(), repository, credentials, permission, keys })
    }

    /// True if both are the same source, read with the same login and trusted by the same keys.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        (&self.mount, &self.credentials, &self.keys) == (&other.mount, &other.credentials, &other.keys)
            && self.permission.is_some() == other.permission.is_some()
    }

    /// Returns the same source with other keys, if it has any.
    pub(crate) fn trusting(&self, keys: &Arc<TrustedKeys>) -> Self {
        Self { keys: self.keys.as_ref().map(|_| keys.clone()), ..self.clone() }
    }

    /// Adds the name of the mount to an error.
    pub(crate) fn named(&self, error: ReconcileError) -> ReconcileError {
        name_mount(self.at, &self.mount, error)
    }

    /// Returns the revision that was taken up with a revision of the repository.
    pub(crate) fn taken(&self, revision: &Revision) -> Option<Revision> {
        let mounted = revision.mounts.iter().find(|mounted| mounted.path == self.mount.path)?;
        mounted.revision(&self.mount.source.reference)
    }

    fn error(&self, error: Error) -> ReconcileError {
        self.named(source_error(error))
    }

    async fn read(
        &self,
        revision: &Revision,
        within: &ReadLimits,
        render_context: RenderContext<'_>,
        by: Instant,
    ) -> Result<MountFiles, ReconcileError> {
        let (repository, none, begun) = (&self.repository, ObjectIds::new(), clock::now());
        let asked = (&[""][..], &[][..]);
        let reading = match self.mount.source.submodules {
            true => repository.read_with_submodules(revision, asked, &none, within, by).await,
            false => repository.read_changed(revision, asked, &none, within, by).await,
        };
        count(render_context.base_context.metrics, &reading, begun);
        // There is no earlier read to compare with.
        let snapshot = reading.and_then(|it| it.snapshot.ok_or(Error::Stopped));
        let snapshot = snapshot.map_err(|error| self.error(error))?;
        Ok(MountFiles {
            source: self.clone(),
            revision: revision.clone(),
            files: snapshot.files,
            ids: snapshot.ids,
            submodule_repositories: snapshot.submodule_repositories.into(),
        })
    }
}

/// Returns an error if no key that is trusted now has signed a mount of a held revision. `newest`
/// has the keys, `held` the sources from which the revision was read, and `trusted` what was proven
/// before.
pub(crate) async fn find_distrusted(
    newest: &[MountSource],
    held: &[MountSource],
    revision: &Revision,
    trusted: &mut Vec<(Revision, SignaturePolicy, Arc<TrustedKeys>)>,
    by: Instant,
) -> Option<ReconcileError> {
    let before = std::mem::take(trusted);
    for source in newest {
        let signed = source.mount.source.verify.as_ref().map(|verification| verification.signed);
        let is_it = |other: &&MountSource| {
            let place = |mount: &ValidatedMount| {
                (mount.path.clone(), mount.source.address.clone(), mount.source.reference.clone())
            };
            place(&other.mount) == place(&source.mount)
        };
        let taken = held.iter().find(is_it).and_then(|held| held.taken(revision));
        let (Some(signed), Some(keys), Some(taken)) = (signed, &source.keys, taken) else { continue };
        let proven = (taken.clone(), signed, keys.clone());
        match source.repository.verify(&taken, signed, keys, by).await {
            Ok(()) => trusted.push(proven),
            // While signatures cannot be read, those that were proven before count.
            Err(error) if !error.is_distrust() && before.contains(&proven) => trusted.push(proven),
            Err(error) => return Some(source.error(error)),
        }
    }
    None
}

/// Adds the name of a mount to an error.
pub(crate) fn name_mount(at: usize, mount: &ValidatedMount, error: ReconcileError) -> ReconcileError {
    let message = format!("spec.source.mounts[{at}] ({}): {}", mount.path, error.message);
    ReconcileError { message, ..error }
}

/// Files of one mount.
#[derive(Debug)]
struct MountFiles {
    source: MountSource,
    revision: Revision,
    files: FileTree,
    /// Ids of everything.
    ids: ObjectIds,
    submodule_repositories: Arc<[Repository]>,
}

/// Files of all mounts of a revision.
#[derive(Debug, Default)]
pub(super) struct ReadMounts(Vec<MountFiles>);

/// A mount of a prepared revision.
#[derive(Debug, Clone)]
pub(super) struct KeptMount {
    revision: MountedRevision,
    /// Git object ids of the files that were read; equal ids mean equal files.
    ids: ObjectIds,
    /// Repositories of submodules; holding them keeps their mirrors.
    #[expect(dead_code, reason = "keeps the resource alive")]
    submodule_repositories: Arc<[Repository]>,
}

impl RenderContext<'_> {
    /// Fetches what the mounts need, so that no render waits for a server while it holds memory.
    pub(super) async fn fetch_mounts(self, revision: &Revision, by: Instant) -> Result<(), ReconcileError> {
        for source in self.mounts {
            let taken = source.taken(revision).ok_or_else(|| unknown(source))?;
            source.repository.fetch(&taken, by).await.map_err(|error| source.error(error))?;
        }
        Ok(())
    }

    /// Reads the files of the mounts.
    pub(super) async fn read_mounts(
        self,
        revision: &Revision,
        memory_limit: &MemoryLimit,
        by: Instant,
    ) -> Result<ReadMounts, ReconcileError> {
        // The files that a render needs are not known from the tree of one source.
        let within = ReadLimits { memory_limit: memory_limit.clone(), ..ReadLimits::default() };
        let mut read = Vec::new();
        for source in self.mounts {
            let taken = source.taken(revision).ok_or_else(|| unknown(source))?;
            read.push(source.read(&taken, &within, self, by).await?);
        }
        Ok(ReadMounts(read))
    }

    /// Returns the mounts at the revisions of a newer commit, or `None` if a file that was read has
    /// changed.
    pub(super) async fn renewed_mounts(
        self,
        kept: &Arc<[KeptMount]>,
        revision: &Revision,
        by: Instant,
    ) -> Result<Option<Arc<[KeptMount]>>, ReconcileError> {
        if kept.iter().map(|kept| &kept.revision).eq(&revision.mounts) {
            return Ok(Some(kept.clone()));
        }
        let mut now = kept.to_vec();
        for source in self.mounts {
            let taken = source.taken(revision).ok_or_else(|| unknown(source))?;
            let Some(kept) = now.iter_mut().find(|kept| kept.revision.path == source.mount.path) else {
                return Ok(None);
            };
            let paths = kept.ids.keys().map(|path| &**path);
            let ids = source.repository.ids(&taken, paths, by).await.map_err(|error| source.error(error))?;
            if ids != kept.ids {
                return Ok(None);
            }
            kept.revision = MountedRevision::new(&source.mount.path, &taken);
        }
        Ok(Some(now.into()))
    }

    /// Checks that the repository itself has nothing in the folders of the mounts.
    pub(super) async fn check_mount_places(
        self,
        (repository, revision): (&Repository, &Revision),
        by: Instant,
    ) -> Result<(), ReconcileError> {
        let folders: Vec<Box<str>> = self.mounts.iter().map(|source| source.mount.path.clone()).collect();
        if folders.is_empty() {
            return Ok(());
        }
        let found = repository.occupied_place(revision, folders, by).await.map_err(source_error)?;
        let Some(OccupiedPlace { mount, path, is_folder }) = found else { return Ok(()) };
        let source = self.mounts.iter().find(|source| source.mount.path == mount);
        let kind = if is_folder { "folder" } else { "file" };
        let error = ReconcileError {
            cause: ErrorCause::Input("MountCollision"),
            message: format!(
                "the repository has the {kind} {path} at {}, so nothing is mounted at {mount}; choose a folder that \
                 the repository does not have, or remove it there",
                revision.of_repository()
            ),
            problems: Vec::new(),
            permanent: true,
        };
        Err(source.map_or_else(|| error.clone(), |source| source.named(error.clone())))
    }
}

impl ReadMounts {
    /// Returns the tree of the repository with the files of the mounts in their folders.
    pub(super) fn place(&self, files: FileTree) -> Result<FileTree, ReconcileError> {
        if self.0.is_empty() {
            return Ok(files);
        }
        let placed = self
            .0
            .iter()
            .fold(files, |files, mount| files.with_tree_at(&mount.source.mount.path, &mount.files));
        check_size(&placed)?;
        Ok(placed)
    }

    /// True if a path lies in the folder of a mount.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.0.iter().any(|mount| is_inside(&mount.source.mount.path, path))
    }

    /// Returns the mounts with the ids of the files that the render has read; `read` is none if it
    /// may have read everything.
    pub(super) async fn kept(
        self,
        read: Option<&[&str]>,
        by: Instant,
    ) -> Result<Arc<[KeptMount]>, ReconcileError> {
        let mut kept = Vec::new();
        for MountFiles { source, revision, ids, submodule_repositories, .. } in self.0 {
            // Files in a submodule have no id here.
            let ids = match read.filter(|_| submodule_repositories.is_empty()) {
                Some(paths) => {
                    let place = &*source.mount.path;
                    let inside = paths.iter().filter(|path| is_inside(place, path));
                    let inside = inside.map(|path| path[place.len()..].trim_start_matches('/'));
                    let found = source.repository.ids(&revision, inside, by).await;
                    found.map_err(|error| source.error(error))?
                }
                None => ids,
            };
            let revision = MountedRevision::new(&source.mount.path, &revision);
            kept.push(KeptMount { revision, ids, submodule_repositories });
        }
        Ok(kept.into())
    }
}

/// True if a path of a Sync lies in a mount, or has one in it: the repository itself need not have
/// it.
pub(super) fn may_be_mounted(valid_spec: &ValidatedSpec) -> bool {
    let path = &*valid_spec.options.path;
    let is_near = |mount: &ValidatedMount| is_inside(&mount.path, path) || is_inside(path, &mount.path);
    !path.is_empty() && valid_spec.mounts.iter().any(is_near)
}

/// Checks that the path of a Sync exists, once the mounts are in place.
pub(super) fn check_path(
    valid_spec: &ValidatedSpec,
    files: &FileTree,
    revision: &Revision,
) -> Result<(), ReconcileError> {
    let path = &*valid_spec.options.path;
    if !may_be_mounted(valid_spec) || files.contains(path) {
        return Ok(());
    }
    let commit = revision.to_string().into();
    Err(source_error(Error::NoPath { path: path.into(), problem: "does not exist".into(), commit }))
}

/// Checks the limits of one tree against the tree with all mounts.
fn check_size(files: &FileTree) -> Result<(), ReconcileError> {
    let (mut count, mut bytes, mut names) = (0, 0, 0);
    for (path, entry) in files.entries() {
        count += 1;
        names += path.len() as u64;
        if let TreeEntry::File(file) = entry {
            bytes += file.len() as u64;
        }
    }
    let (of, limit) = match () {
        () if count > MAX_FILES as u64 => ("files", MAX_FILES as u64),
        () if bytes > MAX_TREE_BYTES => ("bytes", MAX_TREE_BYTES),
        () if names > MAX_PATH_BYTES => ("bytes in the names of its files and folders", MAX_PATH_BYTES),
        () => return Ok(()),
    };
    Err(source_error(Error::TooMuch { path: "the repository with its mounts".into(), of, limit }))
}

/// Error for a mount whose revision was not taken up yet.
fn unknown(source: &MountSource) -> ReconcileError {
    source.named(ReconcileError {
        cause: ErrorCause::Progressing,
        message: "its revision is not known yet".to_owned(),
        problems: Vec::new(),
        permanent: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SyncSpec;
    use crate::controller::spec::validate;

    fn valid_spec(path: &str, mounts: &[&str]) -> ValidatedSpec {
        let mount = |path: &&str| serde_json::json!({"path": path, "git": {"url": "https://host/path"}});
        let mounts: Vec<serde_json::Value> = mounts.iter().map(mount).collect();
        let source = serde_json::json!({"git": {"url": "https://host/path"}, "mounts": mounts});
        let spec: SyncSpec =
            serde_json::from_value(serde_json::json!({"source": source, "path": path})).unwrap();
        validate(&SyncName::new("ops", "shop"), &spec).unwrap()
    }

    #[test]
    fn a_path_may_be_mounted_if_a_mount_is_on_its_way_or_below_it() {
        for (path, mounts, expect) in [
            ("./", &["a"][..], false),
            ("./a", &["a"], true),
            ("./a/b", &["a"], true),
            ("./a", &["a/b"], true),
            ("./ab", &["a"], false),
            ("./a", &["ab", "b"], false),
            ("./a", &[], false),
        ] {
            assert_eq!(may_be_mounted(&valid_spec(path, mounts)), expect, "{path} {mounts:?}");
        }
    }

    #[test]
    fn limits_count_for_the_repository_and_its_mounts_together() {
        let many = |count: usize, bytes: &[u8]| -> FileTree {
            let file: Arc<[u8]> = bytes.into();
            (0..count).map(|at| (format!("f{at}"), TreeEntry::File(file.clone()))).collect()
        };
        let refused = |tree: FileTree| check_size(&tree).unwrap_err().message;
        let (half, other) = (many(MAX_FILES / 2, b""), many(MAX_FILES / 2 + 1, b""));
        assert!(check_size(&half).is_ok() && check_size(&other).is_ok());
        assert!(refused(half.with_tree_at("mount", &other)).contains("files"));
        let large = many(33, &vec![0; 1 << 24]);
        assert!(check_size(&large).is_ok());
        assert!(refused(large.clone().with_tree_at("mount", &large)).contains("bytes"));
    }
}
