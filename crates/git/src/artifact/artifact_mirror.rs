//! Mirror of one repository in a registry: digests from the registry, files on the local disk.
//!
//! In: a client and a folder.
//! Out: revisions, and the files of each as a commit of a bare Git store. The commit is made here
//! from the files of the layers, so it depends on nothing but the content; the store remembers
//! which digest it belongs to. A revision is identified by its digest: the manifest and the layers
//! are used only if their content has that digest.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use git2::{ObjectType, Oid};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use super::super::chart::Digest;
use super::super::error::Error;
use super::super::mirror::MirrorLimits;
use super::super::revision::{ObjectHash, Revision};
use super::super::store::{self, ObjectStore};
use super::artifact_reference::ArtifactReference;
use super::layer_choice::LayerEntry;
use super::layer_download::{download_layers, find_layers};
use super::layer_files::{FileContent, visit_files};
use super::pack_writer::PackWriter;
use super::registry_client::RegistryClient;
use super::tag_list::{list_own_tags, list_tags};
use super::tag_selection::TagSelection;
use super::tree_builder::TreeBuilder;
use crate::worker_pool::ContactResult;
use moorline_runtime::clock;

/// File of a store with the commit of each digest.
const COMMITS: &str = "artifacts";

/// File of the layers while they are read, beside the stores.
const LAYERS: &str = "layer.unfinished";

/// Maximum number of digests that a store remembers; as many as a store keeps complete commits.
const MAX_COMMITS: usize = 16;

/// Number of bytes that a store of small artifacts may grow by, so that the previous revisions
/// stay.
const FREE_BYTES: u64 = 32 * 1024 * 1024;

/// Mirror of a repository in a registry.
#[derive(Debug)]
pub(crate) struct ArtifactMirror {
    client: RegistryClient,
    home: PathBuf,
    store: Option<ObjectStore>,
    /// Commits in the store, by the ids that their digests have; the newest last.
    commits: Vec<(ObjectHash, ObjectHash)>,
    opened: Option<OpenedArtifact>,
    /// The last revision that can never be read, so that it is not fetched again and again.
    refused: Option<(ObjectHash, Error)>,
    bounds: MirrorLimits,
    has_grown: bool,
}

/// Objects opened for reading, and the commit of a revision among them.
struct OpenedArtifact {
    id: ObjectHash,
    commit: ObjectHash,
    repository: git2::Repository,
}

impl fmt::Debug for OpenedArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedArtifact").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ArtifactMirror {
    /// Creates a mirror in the folder `home`, which it owns, with the store that was found there.
    pub(crate) fn new(
        client: RegistryClient,
        home: PathBuf,
        store: Option<ObjectStore>,
        bounds: MirrorLimits,
    ) -> Self {
        let commits = store.as_ref().map(read_commits).unwrap_or_default();
        Self { client, home, store, commits, opened: None, refused: None, bounds, has_grown: false }
    }

    /// Replaces the client, as after changed credentials; fetched objects are kept.
    pub(crate) fn replace(&mut self, client: RegistryClient) {
        self.client = client;
    }

    /// Returns the client of the registry.
    pub(crate) fn client(&mut self) -> &mut RegistryClient {
        &mut self.client
    }

    /// True if the files of the revision with this id are here.
    pub(crate) fn has(&self, id: ObjectHash) -> bool {
        self.commit_of(id).is_some()
    }

    /// Takes the result of the last contact with the registry.
    pub(crate) fn heard(&mut self) -> ContactResult {
        self.client.take_heard()
    }

    /// True if something was fetched since the last call.
    pub(crate) fn has_grown(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
    }

    /// Closes the objects while there is no reader.
    pub(crate) fn rest(&mut self) {
        self.opened = None;
    }

    /// Removes the objects; they are fetched again when needed.
    pub(crate) fn forget(&mut self) {
        self.rest();
        self.commits.clear();
        self.store.take().into_iter().for_each(ObjectStore::discard);
    }

    /// Returns the number of packs on disk and their bytes.
    pub(crate) fn size(&self) -> (usize, u64) {
        self.store.as_ref().map_or((0, 0), ObjectStore::size)
    }

    /// Resolves a reference to its current revision: one HEAD for a tag, a list of tags before it
    /// for a range, nothing for a digest.
    pub(crate) fn resolve(&mut self, reference: &ArtifactReference, by: Instant) -> Result<Revision, Error> {
        match reference {
            ArtifactReference::Digest(digest) => Ok(Revision::of_artifact(None, *digest)),
            ArtifactReference::Tag(tag) => {
                Ok(Revision::of_artifact(Some(tag), self.client.digest_of(tag, by)?))
            }
            ArtifactReference::Semver(..) => {
                let tags = list_tags(&mut self.client, by)?;
                // A tag that is none may be a part of no URL.
                let tags = tags.iter().map(String::as_str).filter(|tag| ArtifactReference::tag(tag).is_ok());
                let none = || Error::NoReference { reference: reference.to_string().into(), nearest: None };
                let tag = reference.best(tags).ok_or_else(none)?;
                Ok(Revision::of_artifact(Some(tag), self.client.digest_of(tag, by)?))
            }
        }
    }

    /// Returns the selected tags, as the registry lists them now.
    pub(crate) fn tags(&mut self, selection: &TagSelection, by: Instant) -> Result<Vec<String>, Error> {
        Ok(selection.select(&list_own_tags(&mut self.client, by)?))
    }

    /// Fetches the files of a revision, unless they are here; returns the number of fetched bytes.
    pub(crate) fn fetch(&mut self, revision: &Revision, by: Instant) -> Result<u64, Error> {
        if self.has(revision.commit) {
            return Ok(0);
        }
        if let Some((_, error)) = self.refused.as_ref().filter(|(id, _)| *id == revision.commit) {
            return Err(error.clone());
        }
        let fetched = self.fetch_now(revision, by);
        if let Err(error) = &fetched
            && error.needs_new_input()
        {
            self.refused = Some((revision.commit, error.clone()));
        }
        fetched
    }

    fn fetch_now(&mut self, revision: &Revision, by: Instant) -> Result<u64, Error> {
        let digest = revision.digest().ok_or(Error::Stopped)?;
        let overgrown = self.store.as_ref().is_none_or(|store| store.outgrows(FREE_BYTES));
        let fetched = match overgrown {
            true => self.fetch_afresh(digest, by),
            false => match self.fetch_into(digest, by) {
                Err(Error::Corrupt { .. } | Error::Disk { .. }) => self.fetch_afresh(digest, by),
                fetched => fetched,
            },
        }?;
        self.has_grown = true;
        Ok(fetched)
    }

    /// Fetches into a new store, and replaces the old one by it.
    fn fetch_afresh(&mut self, digest: Digest, by: Instant) -> Result<u64, Error> {
        let number = self.store.as_ref().map_or(0, ObjectStore::number) + 1;
        let mut fresh = store::begin(&self.home, number)?;
        match self.add(&mut fresh, digest, by) {
            Ok((commit, bytes)) => {
                self.rest();
                self.commits = vec![(id_of(digest), commit)];
                write_commits(&fresh, &self.commits)?;
                self.store = Some(fresh.publish(self.store.take())?);
                Ok(bytes)
            }
            Err(error) => {
                fresh.discard();
                Err(error)
            }
        }
    }

    /// Fetches into the store that is here; files that it has already are not written again.
    fn fetch_into(&mut self, digest: Digest, by: Instant) -> Result<u64, Error> {
        let Some(mut store) = self.store.take() else { return Err(Error::Stopped) };
        let added = self.add(&mut store, digest, by);
        let noted = added.and_then(|(commit, bytes)| {
            self.commits.retain(|(id, _)| *id != id_of(digest));
            self.commits.push((id_of(digest), commit));
            let forgotten = self.commits.len().saturating_sub(MAX_COMMITS);
            self.commits.drain(..forgotten);
            write_commits(&store, &self.commits).map(|()| bytes)
        });
        self.store = Some(store);
        self.rest();
        noted
    }

    /// Adds the commit of an artifact to a store; also returns the number of fetched bytes.
    fn add(
        &mut self,
        store: &mut ObjectStore,
        digest: Digest,
        by: Instant,
    ) -> Result<(ObjectHash, u64), Error> {
        let (layers, claims) = find_layers(&mut self.client, digest, by)?;
        let file = self.home.join(LAYERS);
        // Layers that fill the quota would only displace all other mirrors.
        let limit = self.bounds.quota / 2;
        let added = download_layers(&mut self.client, &layers, (&file, limit), by)
            .and_then(|bytes| Ok((self.add_layers(store, (&file, &layers, &claims), by)?, bytes)));
        drop(fs::remove_file(&file));
        added
    }

    /// Makes a commit of the files of layers: reads them once for the ids, and once more for what
    /// the store does not have yet, so that no content is held in memory.
    fn add_layers(
        &self,
        store: &mut ObjectStore,
        (file, layers, claims): (&Path, &[LayerEntry], &str),
        by: Instant,
    ) -> Result<ObjectHash, Error> {
        let here = store.repository()?;
        let database = here.odb().map_err(|_| Error::Corrupt { what: "a store cannot be read" })?;
        let in_time = || if clock::now() < by { Ok(()) } else { Err(Error::Slow) };
        let mut builder = TreeBuilder::new(&self.bounds.memory);
        // Files to write, in the order of the layers; content that is there twice is written once.
        let (mut writes, mut seen) = (Vec::new(), HashSet::new());
        visit_files(file, layers, &mut |path, size, content| {
            in_time()?;
            let blob = blob_id(size, content)?;
            writes.push(!database.exists(blob) && seen.insert(blob));
            builder.add(path, blob)
        })?;
        let mut objects = builder.finish(claims)?;
        let commit = objects.last().map(|commit| commit.id).ok_or(Error::Stopped)?;
        objects.retain(|object| !database.exists(object.id) && seen.insert(object.id));
        if !objects.is_empty() {
            store.add((&self.bounds.memory, by), |output| {
                let count = objects.len() + writes.iter().filter(|write| **write).count();
                let count = u32::try_from(count).map_err(|_| CHANGED)?;
                let (mut pack, mut writes) = (PackWriter::begin(output, count)?, writes.iter());
                visit_files(file, layers, &mut |_, size, content| {
                    in_time()?;
                    match writes.next() {
                        Some(true) => pack.streamed(ObjectType::Blob, size, content),
                        Some(false) => Ok(()),
                        None => Err(CHANGED),
                    }
                })?;
                objects.iter().try_for_each(|object| pack.object(object.kind, &object.bytes))?;
                pack.finish()
            })?;
        }
        let commit = ObjectHash::of(commit);
        store.remember(commit, &[], &[])?;
        Ok(commit)
    }

    /// Calls `read` with the commit of a revision, fetched if necessary; repeats it with a fresh
    /// store if the store turns out to be damaged. Also returns the duration of the fetch.
    pub(crate) fn with<T>(
        &mut self,
        revision: &Revision,
        by: Instant,
        read: impl Fn(&git2::Repository, ObjectHash) -> Result<T, Error>,
    ) -> Result<(T, Option<Duration>), Error> {
        let begun = clock::now();
        store::touch(&self.home);
        self.opened.take_if(|opened| opened.id != revision.commit);
        let fetched = if self.opened.is_some() { 0 } else { self.fetch(revision, by)? };
        let took = (fetched > 0).then(|| clock::since(begun));
        let first = self.open(revision.commit).and_then(|opened| read(&opened.repository, opened.commit));
        match first {
            Err(Error::Corrupt { .. }) if fetched == 0 => {
                self.forget();
                self.fetch(revision, by)?;
                let opened = self.open(revision.commit)?;
                Ok((read(&opened.repository, opened.commit)?, Some(clock::since(begun))))
            }
            first => first.map(|read| (read, took)),
        }
    }

    fn open(&mut self, id: ObjectHash) -> Result<&OpenedArtifact, Error> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => {
                let store = self.store.as_ref().ok_or(Error::Stopped)?;
                let commit = self.commit_of(id).ok_or(Error::Stopped)?;
                OpenedArtifact { id, commit, repository: store.repository()? }
            }
        };
        Ok(self.opened.insert(opened))
    }

    fn commit_of(&self, id: ObjectHash) -> Option<ObjectHash> {
        self.commits.iter().find(|(known, _)| *known == id).map(|(_, commit)| *commit)
    }
}

const CHANGED: Error = Error::Corrupt { what: "a layer has changed on disk while it was read" };

/// Returns the id of a blob without holding its content.
fn blob_id(size: u64, content: FileContent<'_>) -> Result<Oid, Error> {
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(format!("blob {size}\0").as_bytes());
    content(&mut |part| {
        hash.update(part);
        Ok(())
    })?;
    Oid::from_bytes(hash.finish().as_ref()).map_err(|_| Error::Corrupt { what: "a file has no id" })
}

/// Returns the id that revisions with a digest have.
fn id_of(digest: Digest) -> ObjectHash {
    Revision::of_artifact(None, digest).commit
}

fn read_commits(store: &ObjectStore) -> Vec<(ObjectHash, ObjectHash)> {
    let text = store.read_note(COMMITS).unwrap_or_default();
    let pair = |line: &str| {
        let (id, commit) = line.split_once(' ')?;
        Some((ObjectHash::parse(id)?, ObjectHash::parse(commit)?))
    };
    // A commit that is not there is fetched again.
    text.lines().filter_map(pair).filter(|(_, commit)| store.has(*commit)).collect()
}

fn write_commits(store: &ObjectStore, commits: &[(ObjectHash, ObjectHash)]) -> Result<(), Error> {
    let lines: String = commits.iter().map(|(id, commit)| format!("{id} {commit}\n")).collect();
    store.write_note(COMMITS, &lines)
}
