//! Reads the files of a commit from the object database: no checkout, and no link is followed on
//! disk.
//!
//! In: a repository opened by libgit2, a commit, and folders.
//! Out: a [`Snapshot`], the files below the folders (and the targets of links in them) with the ids
//! of all trees and blobs that were read, which are the key of the render cache.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use git2::{ObjectType, Oid, Tree};

use super::error::Error;
use super::repository::Repository;
use super::revision::ObjectHash;
use crate::read_limits::{FileFilter, FileSelection, ReadLimits};
use moorline_core::tree::{
    self, FileTree, MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, MemoryLimit, TreeEntry, normalise,
};

/// Maximum number of bytes of a path. It also bounds the nesting of folders.
const MAX_PATH_BYTES: usize = 4096;

/// Maximum number of bytes of the target of a link.
const MAX_LINK_BYTES: usize = 4096;

/// Maximum number of paths outside of the requested folders that are included.
const MAX_LINKED: usize = 1000;

/// Maximum number of bytes of a tree object: enough for the maximum number of files.
const MAX_FOLDER_BYTES: usize = 16 * 1024 * 1024;

/// Memory of a path in addition to its letters: list entries and allocator overhead.
const PATH_COST: u64 = 256;

pub(super) const MODE_KIND: i32 = 0o170_000;
pub(super) const MODE_FOLDER: i32 = 0o040_000;
const MODE_LINK: i32 = 0o120_000;
const MODE_MODULE: i32 = 0o160_000;

/// Ids of trees and blobs by path; none for a missing path.
pub type ObjectIds = BTreeMap<Box<str>, Option<ObjectHash>>;

/// Files of one commit, and the ids of their objects.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The files, by path from the root of the repository.
    pub files: FileTree,
    /// For each requested folder or file, and each target of a link, the id of its tree or blob;
    /// none for missing targets. Equal ids mean equal files.
    pub ids: ObjectIds,
    /// Submodules among them, with their commits.
    pub(super) modules: Vec<(Box<str>, ObjectHash)>,
    /// Requested folders that are inside a submodule.
    pub(super) inside: Vec<Box<str>>,
    /// Content of `.gitmodules`, if there are submodules.
    pub(super) said: Box<str>,
    /// Repositories of the submodules whose files are included.
    pub submodule_repositories: Vec<Repository>,
}

/// Returns the current ids at the paths of `earlier`, without reading files.
pub(super) fn ids(
    repository: &git2::Repository,
    commit: ObjectHash,
    earlier: &ObjectIds,
) -> Result<ObjectIds, Error> {
    let root = root(repository, commit)?;
    let id = |path: &str| -> Result<_, Error> {
        Ok(match path {
            "" => Some(ObjectHash::of(root.id())),
            path => find(&root, path)?.map(|(_, id)| ObjectHash::of(id)),
        })
    };
    earlier.keys().map(|path| Ok((path.clone(), id(path)?))).collect()
}

/// Reads the files below `folders` in `commit`; an empty name is the root. Paths in
/// `extra_folders` are included if they exist.
pub(super) fn read(
    repository: &git2::Repository,
    commit: ObjectHash,
    folders: &[Box<str>],
    extra_folders: &[Box<str>],
    within: &ReadLimits,
) -> Result<Snapshot, Error> {
    let root = root(repository, commit)?;
    let mut walk = TreeWalk {
        repository,
        asked: folders.join(", ").into(),
        entries: BTreeMap::new(),
        folders: BTreeSet::new(),
        links: extra_folders.to_vec(),
        files: Vec::new(),
        sizes: HashMap::new(),
        modules: Vec::new(),
        paths: 0,
        memory_limit: &within.memory_limit,
    };
    let mut inside = Vec::new();
    let mut ids = BTreeMap::new();
    for folder in folders {
        let path = clean(folder);
        if let Some((module, id)) = module_at(&root, &path)? {
            if !walk.entries.contains_key(&module) {
                walk.file(module.clone(), MODE_MODULE, id)?;
            }
            ids.insert(module, Some(ObjectHash::of(id)));
            inside.push(path);
            continue;
        }
        let refuse = |problem: &'static str| no_path(&path, problem, commit);
        let (mode, id) = match &*path {
            "" => (MODE_FOLDER, root.id()),
            path => find(&root, path)?.ok_or_else(|| refuse("does not exist"))?,
        };
        match mode & MODE_KIND {
            MODE_LINK => return Err(refuse("is a link; name what it leads to")),
            MODE_FOLDER => walk.folder(&path, id)?,
            _ => walk.file(path.clone(), mode, id)?,
        }
        ids.insert(path, Some(ObjectHash::of(id)));
    }
    while let Some(target) = walk.links.pop() {
        if walk.covers(&target) || ids.contains_key(&target) || ids.len() >= MAX_LINKED {
            continue;
        }
        let found = match &*target {
            "" => Some((MODE_FOLDER, root.id())),
            target => find(&root, target)?,
        };
        match found {
            Some((mode, id)) if mode & MODE_KIND == MODE_FOLDER => walk.folder(&target, id)?,
            Some((mode, id)) => walk.file(target.clone(), mode, id)?,
            None => {}
        }
        ids.insert(target, found.map(|(_, id)| ObjectHash::of(id)));
    }
    let modules = std::mem::take(&mut walk.modules);
    let said = if modules.is_empty() { None } else { find(&root, ".gitmodules")? };
    let said = match said.map(|(_, id)| walk.text(id)).transpose()? {
        Some(bytes) => String::from_utf8_lossy(&bytes).into(),
        None => "".into(),
    };
    let files = walk
        .read(&within.choose)?
        .with_fetched(ids.keys().cloned())
        .with_memory_limit(within.memory_limit.clone());
    Ok(Snapshot { files, ids, modules, inside, said, submodule_repositories: Vec::new() })
}

struct TreeWalk<'a> {
    repository: &'a git2::Repository,
    asked: Box<str>,
    entries: BTreeMap<Box<str>, TreeEntry>,
    /// Folders that were read completely.
    folders: BTreeSet<Box<str>>,
    /// Further paths to include: targets of links, from the root, if they are inside the
    /// repository.
    links: Vec<Box<str>>,
    /// Candidate files, none of which is read yet.
    files: Vec<(Box<str>, Oid)>,
    /// Size of each file; one at several paths is checked once.
    sizes: HashMap<Oid, u64>,
    modules: Vec<(Box<str>, ObjectHash)>,
    /// Bytes of all paths.
    paths: u64,
    memory_limit: &'a MemoryLimit,
}

impl TreeWalk<'_> {
    fn folder(&mut self, path: &str, id: Oid) -> Result<(), Error> {
        let mut waiting: Vec<(Box<str>, Oid)> = vec![(path.into(), id)];
        while let Some((path, id)) = waiting.pop() {
            self.memory_limit.check_running()?;
            self.folders.insert(path.clone());
            let size = self.repository.odb().and_then(|database| database.read_header(id));
            if size.map_err(|_| MISSING_TREE)?.0 > MAX_FOLDER_BYTES {
                return Err(self.too_much("bytes in one folder", MAX_FOLDER_BYTES as u64));
            }
            let tree = self.repository.find_tree(id).map_err(|_| MISSING_TREE)?;
            let mut names = HashSet::new();
            for entry in &tree {
                let Ok(name) = std::str::from_utf8(entry.name_bytes()) else {
                    let shown = join(&path, &String::from_utf8_lossy(entry.name_bytes()));
                    self.unreadable(shown, true, "its name is not UTF-8")?;
                    continue;
                };
                let inside = join(&path, name);
                let mode = entry.filemode_raw();
                if name.is_empty() || name == "." || name == ".." || name.contains('/') {
                    self.unreadable(inside, true, "its name is not allowed")?;
                } else if !names.insert(entry.name_bytes().to_vec()) {
                    // Git never writes this, and it is unclear which of the two a reviewer has
                    // seen.
                    self.unreadable(inside, true, "its name is there twice")?;
                } else if inside.len() > MAX_PATH_BYTES {
                    self.unreadable(path.clone(), true, "a path in it is too long")?;
                } else if mode & MODE_KIND == MODE_FOLDER {
                    if self.folders.len() + waiting.len() >= MAX_FILES {
                        return Err(self.too_much("folders", MAX_FILES as u64));
                    }
                    self.path(&inside)?;
                    waiting.push((inside, entry.id()));
                } else {
                    self.file(inside, mode, entry.id())?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: Box<str>, mode: i32, id: Oid) -> Result<(), Error> {
        let entry = match mode & MODE_KIND {
            MODE_MODULE => {
                self.modules.push((path.clone(), ObjectHash::of(id)));
                return self.unreadable(path, true, NOT_FETCHED);
            }
            MODE_LINK => self.link(&path, id)?,
            _ => match self.size(id)? {
                size if size > MAX_FILE_BYTES => TreeEntry::TooLarge(size),
                size => {
                    self.files.push((path.clone(), id));
                    TreeEntry::NotFetched(size)
                }
            },
        };
        self.push(path, entry)
    }

    /// Returns the size of a file without reading it.
    fn size(&mut self, id: Oid) -> Result<u64, Error> {
        if let Some(known) = self.sizes.get(&id) {
            return Ok(*known);
        }
        let database = self.repository.odb().map_err(|_| MISSING_BLOB)?;
        let (size, kind) = database.read_header(id).map_err(|_| MISSING_BLOB)?;
        if kind != ObjectType::Blob {
            return Err(MISSING_BLOB);
        }
        self.sizes.insert(id, size as u64);
        Ok(size as u64)
    }

    /// Returns the bytes of a file outside of the tree; empty if it is too large.
    fn text(&mut self, id: Oid) -> Result<Arc<[u8]>, Error> {
        let size = self.size(id)?;
        if size > MAX_FILE_BYTES {
            return Ok([].into());
        }
        self.memory_limit.reserve(size)?;
        let database = self.repository.odb().map_err(|_| MISSING_BLOB)?;
        Ok(database.read(id).map_err(|_| MISSING_BLOB)?.data().into())
    }

    /// Reads the selected files, after checking their total size.
    fn read(self, choose: &FileFilter) -> Result<FileTree, Error> {
        let mut entries = self.entries;
        let mut files = self.files;
        files.retain(|(path, _)| !matches!(entries.get(path), Some(TreeEntry::Unreadable { .. })));
        let chosen = choose(&entries.iter().map(|(path, entry)| (path.clone(), entry.clone())).collect());
        if let FileSelection::Only(paths) = chosen {
            files.retain(|(path, _)| paths.contains(&**path));
        }
        let mut wanted: HashMap<Oid, Option<Arc<[u8]>>> = files.iter().map(|(_, id)| (*id, None)).collect();
        let bytes: u64 = wanted.keys().filter_map(|id| self.sizes.get(id)).sum();
        if bytes > MAX_TREE_BYTES {
            let path = if self.asked.is_empty() { "the repository".into() } else { self.asked };
            return Err(Error::TooMuch { path, of: "bytes", limit: MAX_TREE_BYTES });
        }
        let largest = wanted.keys().filter_map(|id| self.sizes.get(id)).max().copied().unwrap_or_default();
        // libgit2 holds a copy of the largest one while it is copied.
        self.memory_limit.reserve(bytes.saturating_add(largest))?;
        let database = self.repository.odb().map_err(|_| MISSING_BLOB)?;
        for (path, id) in files {
            self.memory_limit.check_running()?;
            let known = wanted.entry(id).or_default();
            let bytes = match known {
                // A file at several paths is stored once.
                Some(bytes) => bytes.clone(),
                None => known.insert(database.read(id).map_err(|_| MISSING_BLOB)?.data().into()).clone(),
            };
            entries.insert(path, TreeEntry::File(bytes));
        }
        self.memory_limit.give_back(largest);
        Ok(entries.into_iter().collect())
    }

    fn link(&mut self, path: &str, id: Oid) -> Result<TreeEntry, Error> {
        let unreadable = |reason: &str| Ok(TreeEntry::Unreadable { folder: false, reason: reason.into() });
        let database = self.repository.odb().map_err(|_| MISSING_BLOB)?;
        let (size, _) = database.read_header(id).map_err(|_| MISSING_BLOB)?;
        if size > MAX_LINK_BYTES {
            return unreadable("the target of the link is too long");
        }
        let object = database.read(id).map_err(|_| MISSING_BLOB)?;
        let Ok(target) = std::str::from_utf8(object.data()) else {
            return unreadable("the target of the link is not UTF-8");
        };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.links.extend(reached(folder, target));
        Ok(TreeEntry::Link(target.into()))
    }

    fn unreadable(&mut self, path: Box<str>, folder: bool, reason: &str) -> Result<(), Error> {
        self.push(path, TreeEntry::Unreadable { folder, reason: reason.into() })
    }

    fn push(&mut self, path: Box<str>, entry: TreeEntry) -> Result<(), Error> {
        if self.entries.len() >= MAX_FILES {
            return Err(self.too_much("files", MAX_FILES as u64));
        }
        self.path(&path)?;
        self.entries.insert(path, entry);
        Ok(())
    }

    /// Counts a path. A few bytes can name very many paths, each as long as its folder.
    fn path(&mut self, path: &str) -> Result<(), Error> {
        self.paths += path.len() as u64;
        if self.paths > tree::MAX_PATH_BYTES {
            return Err(self.too_much("bytes in the names of its files and folders", tree::MAX_PATH_BYTES));
        }
        Ok(self.memory_limit.reserve(PATH_COST + 4 * path.len() as u64)?)
    }

    /// True if `path` was read already.
    fn covers(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        self.entries.contains_key(path)
            || self.folders.contains("")
            || ends.map(|end| &path[..end]).any(|front| self.folders.contains(front))
    }

    fn too_much(&self, of: &'static str, limit: u64) -> Error {
        let path = if self.asked.is_empty() { "the repository".into() } else { self.asked.clone() };
        Error::TooMuch { path, of, limit }
    }
}

/// Returns the error for a path that cannot be read.
pub(super) fn no_path(path: &str, problem: impl Into<Cow<'static, str>>, commit: ObjectHash) -> Error {
    Error::NoPath { path: path.into(), problem: problem.into(), commit: commit.to_string().into() }
}

/// Returns the submodule that contains a path, or is at it, and its commit.
fn module_at(root: &Tree<'_>, path: &str) -> Result<Option<(Box<str>, Oid)>, Error> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    for front in ends.map(|end| &path[..end]).filter(|front| !front.is_empty()) {
        match find(root, front)? {
            Some((mode, id)) if mode & MODE_KIND == MODE_MODULE => return Ok(Some((front.into(), id))),
            Some((mode, _)) if mode & MODE_KIND == MODE_FOLDER => {}
            Some(_) | None => break,
        }
    }
    Ok(None)
}

/// Reason for a submodule without files, if submodules are not enabled.
const NOT_FETCHED: &str = "it is a submodule, which is not fetched (spec.source.git.submodules)";

const MISSING_COMMIT: Error = Error::Corrupt { what: "a commit cannot be read" };
const MISSING_TREE: Error = Error::Corrupt { what: "a folder cannot be read" };
const MISSING_BLOB: Error = Error::Corrupt { what: "a file cannot be read" };

pub(super) fn root(repository: &git2::Repository, commit: ObjectHash) -> Result<Tree<'_>, Error> {
    repository.find_commit(commit.oid()).and_then(|commit| commit.tree()).map_err(|_| MISSING_COMMIT)
}

/// Returns the mode and id of the object at `path`.
pub(super) fn find(root: &Tree<'_>, path: &str) -> Result<Option<(i32, Oid)>, Error> {
    match root.get_path(std::path::Path::new(path)) {
        Ok(entry) => Ok(Some((entry.filemode_raw(), entry.id()))),
        Err(error) if error.code() == git2::ErrorCode::NotFound && error.class() != git2::ErrorClass::Odb => {
            Ok(None)
        }
        Err(_) => Err(MISSING_TREE),
    }
}

/// Returns a path as the object database has it: without `.`, doubled slashes, and slashes at the
/// ends.
pub(super) fn clean(path: &str) -> Box<str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/").into()
}

/// Resolves a link in `folder`, if its target is inside the repository.
fn reached(folder: &str, target: &str) -> Option<Box<str>> {
    if target.starts_with('/') { None } else { normalise(folder, target).map(Into::into) }
}

fn join(folder: &str, name: &str) -> Box<str> {
    if folder.is_empty() { name.into() } else { format!("{folder}/{name}").into() }
}
