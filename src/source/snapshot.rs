//! The files of a commit, read from the object database: no checkout, no link followed on any disk.
//!
//! In: a repository opened by the library, a commit, and folders. Out: [`Snapshot`], the files below the folders
//! (and what links in them lead to) with the ids of all trees and blobs that were read: the render key.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use git2::{ObjectType, Oid, Tree};

use super::error::Error;
use super::repository::Repository;
use super::revision::ObjectHash;
use crate::tree::{Entry, FileTree, MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, normalise};

/// The most bytes of a path. It also bounds how deep folders are nested.
const MAX_PATH_BYTES: usize = 4096;

/// The most bytes of the target of a link.
const MAX_LINK_BYTES: usize = 4096;

/// The most places outside of the asked folders that are brought.
const MAX_LINKED: usize = 1000;

const MODE_KIND: i32 = 0o170_000;
const MODE_FOLDER: i32 = 0o040_000;
const MODE_LINK: i32 = 0o120_000;
const MODE_MODULE: i32 = 0o160_000;

/// The ids of trees and blobs by their paths; none where nothing lies.
pub type Ids = BTreeMap<Box<str>, Option<ObjectHash>>;

/// Files of one commit, and which objects they were read from.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The files, by their paths from the root of the repository.
    pub files: FileTree,
    /// For each folder or file that was asked for, or that a link leads to, the id of its tree or blob; none for
    /// the targets of links where nothing lies. Equal ids mean equal files.
    pub ids: Ids,
    /// Submodules among them, and the commits that are wanted of them.
    pub(super) modules: Vec<(Box<str>, ObjectHash)>,
    /// Of the folders that were asked for, those that lie in a submodule.
    pub(super) inside: Vec<Box<str>>,
    /// What the repository says of its submodules, where there are any.
    pub(super) said: Box<str>,
    /// The repositories of submodules whose files are among these.
    pub beside: Vec<Repository>,
}

/// The ids of what lies at the paths of earlier ones now, without reading files.
pub(super) fn ids(repository: &git2::Repository, commit: ObjectHash, earlier: &Ids) -> Result<Ids, Error> {
    let root = root(repository, commit)?;
    let id = |path: &str| -> Result<_, Error> {
        Ok(match path {
            "" => Some(ObjectHash::of(root.id())),
            path => find(&root, path)?.map(|(_, id)| ObjectHash::of(id)),
        })
    };
    earlier.keys().map(|path| Ok((path.clone(), id(path)?))).collect()
}

/// The files below `folders` in `commit`; an empty name is the root. What lies `beside` them is brought as well, if it is there.
pub(super) fn read(
    repository: &git2::Repository,
    commit: ObjectHash,
    folders: &[Box<str>],
    beside: &[Box<str>],
) -> Result<Snapshot, Error> {
    let root = root(repository, commit)?;
    let mut walk = Walk {
        repository,
        asked: folders.join(", ").into(),
        entries: BTreeMap::new(),
        folders: BTreeSet::new(),
        links: beside.to_vec(),
        blobs: HashMap::new(),
        modules: Vec::new(),
        bytes: 0,
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
    let said = match said.map(|(_, id)| walk.blob(id)).transpose()? {
        Some(Entry::File(bytes)) => String::from_utf8_lossy(&bytes).into(),
        _ => "".into(),
    };
    let files = walk.entries.into_iter().collect::<FileTree>().holding(ids.keys().cloned());
    Ok(Snapshot { files, ids, modules, inside, said, beside: Vec::new() })
}

struct Walk<'a> {
    repository: &'a git2::Repository,
    asked: Box<str>,
    entries: BTreeMap<Box<str>, Entry>,
    /// Folders that were read as a whole.
    folders: BTreeSet<Box<str>>,
    /// What is to be brought besides: where links lead, from the root, as far as it lies in the repository.
    links: Vec<Box<str>>,
    /// One blob at many paths is kept once.
    blobs: HashMap<Oid, Entry>,
    modules: Vec<(Box<str>, ObjectHash)>,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(&mut self, path: &str, id: Oid) -> Result<(), Error> {
        let mut waiting: Vec<(Box<str>, Oid)> = vec![(path.into(), id)];
        while let Some((path, id)) = waiting.pop() {
            if self.folders.len() >= MAX_FILES {
                return Err(self.too_much("folders", MAX_FILES as u64));
            }
            self.folders.insert(path.clone());
            let tree = self.repository.find_tree(id).map_err(|_| MISSING_TREE)?;
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
                } else if inside.len() > MAX_PATH_BYTES {
                    self.unreadable(path.clone(), true, "a path in it is too long")?;
                } else if mode & MODE_KIND == MODE_FOLDER {
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
            _ => self.blob(id)?,
        };
        self.push(path, entry)
    }

    fn blob(&mut self, id: Oid) -> Result<Entry, Error> {
        if let Some(known) = self.blobs.get(&id) {
            return Ok(known.clone());
        }
        let database = self.repository.odb().map_err(|_| MISSING_BLOB)?;
        let (size, kind) = database.read_header(id).map_err(|_| MISSING_BLOB)?;
        if kind != ObjectType::Blob {
            return Err(MISSING_BLOB);
        }
        if size as u64 > MAX_FILE_BYTES {
            return Ok(Entry::TooLarge(size as u64));
        }
        self.bytes += size as u64;
        if self.bytes > MAX_TREE_BYTES {
            return Err(self.too_much("bytes", MAX_TREE_BYTES));
        }
        let object = database.read(id).map_err(|_| MISSING_BLOB)?;
        let entry = Entry::File(object.data().into());
        self.blobs.insert(id, entry.clone());
        Ok(entry)
    }

    fn link(&mut self, path: &str, id: Oid) -> Result<Entry, Error> {
        let unreadable = |reason: &str| Ok(Entry::Unreadable { folder: false, reason: reason.into() });
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
        Ok(Entry::Link(target.into()))
    }

    fn unreadable(&mut self, path: Box<str>, folder: bool, reason: &str) -> Result<(), Error> {
        self.push(path, Entry::Unreadable { folder, reason: reason.into() })
    }

    fn push(&mut self, path: Box<str>, entry: Entry) -> Result<(), Error> {
        if self.entries.len() >= MAX_FILES {
            return Err(self.too_much("files", MAX_FILES as u64));
        }
        self.entries.insert(path, entry);
        Ok(())
    }

    /// True if what lies at `path` was read already.
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

/// Why nothing is read of a path.
pub(super) fn no_path(path: &str, problem: impl Into<Cow<'static, str>>, commit: ObjectHash) -> Error {
    Error::NoPath { path: path.into(), problem: problem.into(), commit: commit.to_string().into() }
}

/// The submodule in which a path lies, or which it is, and the commit of it.
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

/// Why a submodule has no files, where none are asked for.
const NOT_FETCHED: &str = "it is a submodule, which is not fetched (spec.source.git.submodules)";

const MISSING_COMMIT: Error = Error::Corrupt { what: "a commit cannot be read" };
const MISSING_TREE: Error = Error::Corrupt { what: "a folder cannot be read" };
const MISSING_BLOB: Error = Error::Corrupt { what: "a file cannot be read" };

fn root(repository: &git2::Repository, commit: ObjectHash) -> Result<Tree<'_>, Error> {
    repository.find_commit(commit.oid()).and_then(|commit| commit.tree()).map_err(|_| MISSING_COMMIT)
}

/// The mode and id of what lies at `path`.
fn find(root: &Tree<'_>, path: &str) -> Result<Option<(i32, Oid)>, Error> {
    match root.get_path(std::path::Path::new(path)) {
        Ok(entry) => Ok(Some((entry.filemode_raw(), entry.id()))),
        Err(error) if error.code() == git2::ErrorCode::NotFound && error.class() != git2::ErrorClass::Odb => {
            Ok(None)
        }
        Err(_) => Err(MISSING_TREE),
    }
}

/// A path as the object database has it: without `.`, doubled slashes, and a slash at either end.
pub(super) fn clean(path: &str) -> Box<str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/").into()
}

/// Where a link in `folder` leads, if it stays in the repository.
fn reached(folder: &str, target: &str) -> Option<Box<str>> {
    if target.starts_with('/') { None } else { normalise(folder, target).map(Into::into) }
}

fn join(folder: &str, name: &str) -> Box<str> {
    if folder.is_empty() { name.into() } else { format!("{folder}/{name}").into() }
}
