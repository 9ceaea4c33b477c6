//! Object store of one repository on the local disk: a bare repository that only this daemon
//! writes.
//!
//! In: packs from a server.
//! Out: repositories opened for reading. A store is a numbered folder; a new one is built under a
//! temporary name and put in place by a rename, so remains of a crash are removed at the next start
//! and never read. Its refs are the commits that are complete here.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use git2::{Indexer, Odb, Repository};

use super::error::Error;
use super::memory::Memory;
use super::revision::ObjectHash;
use crate::pack_inspection::PackInspector;
use moorline_runtime::clock;

/// Maximum number of packs of a store before it is replaced by a fresh clone.
const MAX_PACKS: usize = 64;

/// Maximum number of complete commits that are recorded and announced to a server.
const MAX_TIPS: usize = 16;

/// Suffix of a folder that is not complete yet.
const UNFINISHED: &str = ".unfinished";

/// A complete store.
#[derive(Debug)]
pub(super) struct ObjectStore {
    folder: PathBuf,
    /// Complete commits, the newest last.
    tips: Vec<ObjectHash>,
    /// Commits whose parents are not here.
    shallow: Vec<ObjectHash>,
    /// Bytes of the packs after the first fetch, if known.
    first_bytes: u64,
}

/// Opens the newest store in `home` and removes all other folders; none if there is no usable one.
pub(super) fn open(home: &Path) -> Result<Option<ObjectStore>, Error> {
    let listed = match fs::read_dir(home) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(disk("read a mirror", &error)),
    };
    let mut numbered: Vec<(u64, PathBuf)> = Vec::new();
    for entry in listed {
        let path = entry.map_err(|error| disk("read a mirror", &error))?.path();
        match path.file_name().and_then(|name| name.to_str()?.parse().ok()) {
            Some(number) => numbered.push((number, path)),
            None => remove(&path),
        }
    }
    numbered.sort();
    let newest = numbered.pop();
    numbered.iter().for_each(|(_, older)| remove(older));
    let Some((_, folder)) = newest else { return Ok(None) };
    match ObjectStore::load(&folder) {
        Some(store) => Ok(Some(store)),
        None => {
            remove(&folder);
            Ok(None)
        }
    }
}

/// Creates a store in `home`; it is not used before [`ObjectStore::publish`].
pub(super) fn begin(home: &Path, number: u64) -> Result<ObjectStore, Error> {
    let folder = home.join(format!("{number}{UNFINISHED}"));
    remove(&folder);
    let build = || -> io::Result<()> {
        fs::create_dir_all(folder.join("objects/pack"))?;
        fs::create_dir_all(folder.join("refs"))?;
        fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(folder.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    };
    build().map_err(|error| disk("begin a mirror", &error))?;
    Ok(ObjectStore { folder, tips: Vec::new(), shallow: Vec::new(), first_bytes: 0 })
}

impl ObjectStore {
    fn load(folder: &Path) -> Option<Self> {
        let tips = fs::read_to_string(folder.join("packed-refs")).ok()?;
        let tips = tips.lines().filter(|line| !line.starts_with('#'));
        let tips = tips.map(|line| ObjectHash::parse(line.split(' ').next()?)).collect::<Option<Vec<_>>>()?;
        let shallow = fs::read_to_string(folder.join("shallow")).unwrap_or_default();
        let shallow = shallow.lines().map(ObjectHash::parse).collect::<Option<Vec<_>>>()?;
        let first_bytes = fs::read_to_string(folder.join("first-bytes")).ok()?.trim().parse().ok()?;
        let store = Self { folder: folder.to_owned(), tips, shallow, first_bytes };
        store.sweep();
        Some(store)
    }

    /// Returns the number in the folder's name.
    pub(super) fn number(&self) -> u64 {
        self.folder.file_stem().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0)
    }

    /// Returns the commits that are complete here.
    pub(super) fn tips(&self) -> &[ObjectHash] {
        &self.tips
    }

    /// Returns the commits whose parents are not here.
    pub(super) fn shallow(&self) -> &[ObjectHash] {
        &self.shallow
    }

    /// Opens the objects for reading.
    pub(super) fn repository(&self) -> Result<Repository, Error> {
        self.database().and_then(Repository::from_odb).map_err(|error| library(&error))
    }

    /// True if the commit is here; so are its files, because every pack is complete.
    pub(super) fn has(&self, commit: ObjectHash) -> bool {
        self.database().is_ok_and(|database| database.exists(commit.oid()))
    }

    fn database(&self) -> Result<Odb<'static>, git2::Error> {
        let database = Odb::new()?;
        let objects = self.folder.join("objects");
        let objects = objects.to_str().ok_or_else(|| git2::Error::from_str("the path is not UTF-8"))?;
        database.add_disk_alternate(objects)?;
        Ok(database)
    }

    /// Indexes a pack that `receive` writes. It is added only if it is complete and every object in
    /// it is valid, before the deadline.
    pub(super) fn add<T>(
        &self,
        (memory, by): (&Memory, Instant),
        receive: impl FnOnce(&mut dyn Write) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let database = self.database().map_err(|error| library(&error))?;
        let packs = self.folder.join("objects/pack");
        let mut indexer = Indexer::new(Some(&database), &packs, 0, false).map_err(|error| library(&error))?;
        // Called before each object that is built.
        indexer.progress(move |_| clock::now() < by);
        let mut guard = PackInspector::new(&mut indexer, memory);
        let received = receive(&mut guard);
        let unpacking = guard.into_unpacking();
        let added = received.and_then(|received| {
            // From here on libgit2 needs memory and a processor, and waits for nothing else.
            let _held = unpacking.take_memory(memory).ok_or(Error::NoMemory)?;
            let _turn = memory.turn(|| clock::now() < by).ok_or(Error::Slow)?;
            Ok((received, indexer.commit()))
        });
        let added = added.and_then(|(received, committed)| match committed {
            Ok(_) => Ok(received),
            Err(_) if clock::now() >= by => Err(Error::Slow),
            Err(error) => Err(library(&error)),
        });
        if added.is_err() {
            self.sweep();
        }
        added
    }

    /// Records that `commit` is complete, and the shallow commits.
    pub(super) fn remember(
        &mut self,
        commit: ObjectHash,
        shallow: &[ObjectHash],
        unshallow: &[ObjectHash],
    ) -> Result<(), Error> {
        self.tips.retain(|tip| *tip != commit);
        self.tips.push(commit);
        let forgotten = self.tips.len().saturating_sub(MAX_TIPS);
        self.tips.drain(..forgotten);
        self.shallow.extend(shallow);
        self.shallow.retain(|cut| !unshallow.contains(cut));
        self.shallow.sort_unstable();
        self.shallow.dedup();
        let lines = self.shallow.iter().map(|cut| format!("{cut}\n")).collect::<String>();
        let refs = self.tips.iter().map(|tip| format!("{tip} refs/complete/{tip}\n")).collect::<String>();
        let write = || -> io::Result<()> {
            match lines.is_empty() {
                true => drop(fs::remove_file(self.folder.join("shallow"))),
                false => replace(&self.folder, "shallow", &lines)?,
            }
            replace(&self.folder, "packed-refs", &format!("# pack-refs with:\n{refs}"))
        };
        write().map_err(|error| disk("note a fetched commit", &error))
    }

    /// Reads a small file that belongs to the store.
    pub(super) fn read_note(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    /// Writes a small file that belongs to the store.
    pub(super) fn write_note(&self, name: &str, text: &str) -> Result<(), Error> {
        replace(&self.folder, name, text).map_err(|error| disk("note a fetched commit", &error))
    }

    /// Puts a complete store in place, and removes `before`.
    pub(super) fn publish(mut self, before: Option<Self>) -> Result<Self, Error> {
        self.first_bytes = self.size().1;
        let place = self.folder.with_extension("");
        let rename = || -> io::Result<()> {
            fs::write(self.folder.join("first-bytes"), self.first_bytes.to_string())?;
            fs::rename(&self.folder, &place)
        };
        rename().map_err(|error| disk("put a mirror in force", &error))?;
        self.folder = place;
        if let Some(before) = before {
            before.discard();
        }
        Ok(self)
    }

    /// Removes the folder.
    pub(super) fn discard(self) {
        remove(&self.folder);
    }

    /// True if so much was fetched that a fresh clone is smaller or faster.
    pub(super) fn is_overgrown(&self) -> bool {
        self.outgrows(0)
    }

    /// True if there are many packs, or bytes beyond twice the first ones and `free` more.
    pub(super) fn outgrows(&self, free: u64) -> bool {
        let (packs, bytes) = self.size();
        packs >= MAX_PACKS || bytes > self.first_bytes.saturating_mul(2).saturating_add(free)
    }

    /// Returns the number of packs, and the bytes of all files next to them.
    pub(super) fn size(&self) -> (usize, u64) {
        let listed = fs::read_dir(self.folder.join("objects/pack")).into_iter().flatten().flatten();
        listed.fold((0, 0), |(packs, bytes), entry| {
            let is_pack = entry.path().extension().is_some_and(|end| end == "pack");
            (packs + usize::from(is_pack), bytes + entry.metadata().map_or(0, |found| found.len()))
        })
    }

    /// Removes remains of an interrupted fetch: locks, and files that are neither pack nor index.
    fn sweep(&self) {
        for folder in [self.folder.clone(), self.folder.join("objects/pack")] {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let partial = name.starts_with("pack_") || name.starts_with("tmp_") || name.ends_with(".new");
                if partial || name.ends_with(".lock") || name.contains(".git2_") {
                    remove(&entry.path());
                }
            }
        }
    }
}

/// Records the use of a mirror. If the disk refuses it, the mirror only appears older than it is.
pub(super) fn touch(home: &Path) {
    drop(fs::File::open(home).and_then(|folder| folder.set_modified(SystemTime::now())));
}

/// Writes a file under a temporary name and renames it, so that it is complete at any time.
fn replace(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let beside = folder.join(format!("{name}.new"));
    fs::write(&beside, text)?;
    fs::rename(beside, folder.join(name))
}

/// Removes a file or folder. A failed removal is repeated at the next start; the file is never
/// read.
fn remove(path: &Path) {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    drop(removed);
}

fn disk(what: &'static str, error: &io::Error) -> Error {
    Error::Disk { what, cause: error.to_string().into() }
}

fn library(error: &git2::Error) -> Error {
    match error.class() {
        git2::ErrorClass::Os => Error::Disk { what: "write a pack", cause: error.message().into() },
        _ => Error::Corrupt { what: "a pack cannot be read" },
    }
}
