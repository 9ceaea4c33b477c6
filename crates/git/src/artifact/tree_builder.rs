//! Git trees of the files of an artifact.
//!
//! In: paths, each with the id of its blob.
//! Out: the trees, as Git writes them, and the commit. Equal files have equal ids, as in a
//! repository, so two artifacts that differ in one file share everything else.

use std::collections::BTreeMap;

use git2::{ObjectType, Oid};

use super::super::error::Error;
use super::super::memory::{Memory, MemoryShare};
use super::artifact_error::ArtifactError;
use moorline_core::sanitize::sanitize;
use moorline_core::tree::MAX_FILES;

/// Memory that an entry of a folder takes, in addition to the letters of its name.
const ENTRY_BYTES: u64 = 160;

/// Memory is taken in parts of this size.
const SHARE_BYTES: u64 = 1024 * 1024;

/// Author of the commits; they are made here, so that there is nobody to name.
const AUTHOR: &str = "registry <> 0 +0000";

/// An object of a repository.
#[derive(Debug)]
pub(super) struct GitObject {
    pub(super) id: Oid,
    pub(super) kind: ObjectType,
    pub(super) bytes: Vec<u8>,
}

/// Files of an artifact, by folder.
#[derive(Debug)]
pub(super) struct TreeBuilder<'a> {
    root: Folder,
    folders: usize,
    memory: &'a Memory,
    shares: Vec<MemoryShare>,
    /// Bytes left in the last share.
    left: u64,
}

#[derive(Debug, Default)]
struct Folder(BTreeMap<Box<str>, FolderEntry>);

#[derive(Debug)]
enum FolderEntry {
    File(Oid),
    Folder(Folder),
}

impl<'a> TreeBuilder<'a> {
    /// Starts without files; what it holds is taken from the memory for packs.
    pub(super) fn new(memory: &'a Memory) -> Self {
        Self { root: Folder::default(), folders: 0, memory, shares: Vec::new(), left: 0 }
    }

    /// Adds a file.
    pub(super) fn add(&mut self, path: &str, blob: Oid) -> Result<(), Error> {
        self.take(path.len() as u64)?;
        let (parents, name) = path.rsplit_once('/').map_or(("", path), |(parents, name)| (parents, name));
        let mut folder = &mut self.root;
        for part in parents.split('/').filter(|part| !part.is_empty()) {
            if !folder.0.contains_key(part) {
                self.folders += 1;
                if self.folders > MAX_FILES {
                    return refuse(format!("has more than {MAX_FILES} folders"));
                }
                folder.0.insert(part.into(), FolderEntry::Folder(Folder::default()));
            }
            folder = match folder.0.get_mut(part) {
                Some(FolderEntry::Folder(inner)) => inner,
                Some(FolderEntry::File(_)) | None => {
                    return refuse(format!("has a file where a folder of {} is", sanitize(path)));
                }
            };
        }
        match folder.0.insert(name.into(), FolderEntry::File(blob)) {
            None => Ok(()),
            Some(_) => refuse(format!("has {} twice", sanitize(path))),
        }
    }

    fn take(&mut self, letters: u64) -> Result<(), Error> {
        // Each part of a path may be the name of a folder.
        let wanted = ENTRY_BYTES + 2 * letters;
        if self.left < wanted {
            self.shares.push(self.memory.unpack(SHARE_BYTES).ok_or(Error::NoMemory)?);
            self.left = SHARE_BYTES;
        }
        self.left -= wanted;
        Ok(())
    }

    /// Returns the commit with these files, and its trees; the commit is the last object.
    pub(super) fn finish(&self, message: &str) -> Result<Vec<GitObject>, Error> {
        let mut objects = Vec::new();
        let root = write_folder(&self.root, &mut objects)?;
        let message: String = message.chars().filter(|char| !char.is_control()).collect();
        let commit = format!("tree {root}\nauthor {AUTHOR}\ncommitter {AUTHOR}\n\n{message}\n");
        objects.push(object(ObjectType::Commit, commit.into_bytes())?);
        Ok(objects)
    }
}

/// Writes the trees below a folder and its own; the path of a file bounds the depth.
fn write_folder(folder: &Folder, objects: &mut Vec<GitObject>) -> Result<Oid, Error> {
    let mut rows: Vec<(String, &str, &str, Oid)> = Vec::new();
    for (name, entry) in &folder.0 {
        rows.push(match entry {
            FolderEntry::File(blob) => (name.to_string(), "100644", name, *blob),
            // Git sorts folders as if their names ended with a slash.
            FolderEntry::Folder(inner) => (format!("{name}/"), "40000", name, write_folder(inner, objects)?),
        });
    }
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    let mut bytes = Vec::new();
    for (_, mode, name, id) in rows {
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        bytes.extend_from_slice(id.as_bytes());
    }
    let tree = object(ObjectType::Tree, bytes)?;
    let id = tree.id;
    objects.push(tree);
    Ok(id)
}

fn object(kind: ObjectType, bytes: Vec<u8>) -> Result<GitObject, Error> {
    let id = Oid::hash_object(kind, &bytes).map_err(|_| Error::Corrupt { what: "an object has no id" })?;
    Ok(GitObject { id, kind, bytes })
}

fn refuse<T>(problem: String) -> Result<T, Error> {
    Err(ArtifactError::Archive(problem.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_those_that_git_writes() {
        let root = tempfile::tempdir().unwrap();
        let files = [("a.yaml", "1"), ("a/b.yaml", "2"), ("a-b/c/d.yaml", "3"), ("b", "4"), ("a0", "1")];
        let (memory, repository) = (Memory::new(None), git2::Repository::init(root.path()).unwrap());
        let (mut builder, mut index) = (TreeBuilder::new(&memory), repository.index().unwrap());
        for (path, text) in files {
            builder.add(path, Oid::hash_object(ObjectType::Blob, text.as_bytes()).unwrap()).unwrap();
            let place = root.path().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, text).unwrap();
            index.add_path(std::path::Path::new(path)).unwrap();
        }
        let objects = builder.finish("main@1").unwrap();
        let tree = index.write_tree().unwrap();
        assert!(objects.iter().any(|object| object.id == tree && object.kind == ObjectType::Tree));
        let commit = objects.last().unwrap();
        assert!(String::from_utf8_lossy(&commit.bytes).starts_with(&format!("tree {tree}\n")));
        assert_eq!(builder.finish("main@1").unwrap().last().unwrap().id, commit.id, "it is always the same");
    }

    #[test]
    fn one_path_is_one_file() {
        let (memory, blob) = (Memory::new(None), Oid::ZERO_SHA1);
        let refused = |paths: [&str; 2]| {
            let mut builder = TreeBuilder::new(&memory);
            builder.add(paths[0], blob).unwrap();
            builder.add(paths[1], blob).unwrap_err().to_string()
        };
        assert!(refused(["a/b", "a/b"]).contains("twice"));
        assert!(refused(["a", "a/b"]).contains("where a folder of a/b is"));
        assert!(refused(["a/b", "a"]).contains("twice"));
    }
}
