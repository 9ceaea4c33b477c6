//! Reads a folder or a file of the local disk into a [`FileTree`].
//!
//! Links are recorded, not followed; `.git` is left out; a file above its bound is recorded by its
//! size and never read. Unreadable entries are recorded too: the renderer decides if they matter.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use moorline_core::tree::{FileTree, MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, TreeEntry};

/// Error of reading a folder into a tree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path itself cannot be read.
    #[error("{}: {cause}; check the path", .path.display())]
    Unreadable {
        /// The requested path.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// A bound of [`FileTree`] is exceeded.
    #[error("{}: more than {limit} {of}; name a folder with fewer", .path.display())]
    TooMuch {
        /// The requested path.
        path: PathBuf,
        /// The bound.
        limit: u64,
        /// The bounded quantity.
        of: &'static str,
    },
}

/// Reads the files below `path` whose names match `wanted`; a path to one file gives a tree of that
/// file.
///
/// The tree's paths are relative to `path` and are shown with it as prefix.
pub fn read(path: &Path, wanted: fn(&str) -> bool) -> Result<(FileTree, String), Error> {
    let unreadable = |cause| Error::Unreadable { path: path.to_owned(), cause };
    let found = fs::metadata(path).map_err(unreadable)?;
    let mut walk = DirectoryWalk { top: path, wanted, entries: Vec::new(), bytes: 0 };
    if found.is_dir() {
        // The top folder must be readable; an unreadable folder below becomes an entry that says
        // so.
        fs::read_dir(path).map_err(unreadable)?;
        walk.folder(path, "")?;
        return Ok((walk.tree(&path.to_string_lossy()), String::new()));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let target = fs::canonicalize(path).map_err(unreadable)?;
    walk.entry(&target, name.clone())?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok((walk.tree(&folder.to_string_lossy()), name))
}

/// Reads these folders and files below `wall`, if they exist, regardless of their names. The tree's
/// paths are relative to the wall and are shown with `shown` as prefix.
pub fn read_parts(wall: &Path, parts: &BTreeSet<String>, shown: &str) -> Result<FileTree, Error> {
    let mut walk = DirectoryWalk { top: wall, wanted: |_| true, entries: Vec::new(), bytes: 0 };
    let lies_in = |part: &str, other: &String| {
        other != part
            && (other.is_empty()
                || part.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    for part in parts.iter().filter(|part| !parts.iter().any(|other| lies_in(part, other))) {
        let path = wall.join(part);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => walk.folder(&path, part)?,
            Ok(_) => walk.entry(&path, part.clone())?,
            Err(_) => {}
        }
    }
    let brought = parts.iter().map(|part| part.as_str().into());
    Ok(walk.entries.into_iter().collect::<FileTree>().with_fetched(brought).with_display_prefix(shown))
}

struct DirectoryWalk<'a> {
    top: &'a Path,
    wanted: fn(&str) -> bool,
    entries: Vec<(String, TreeEntry)>,
    bytes: u64,
}

impl DirectoryWalk<'_> {
    fn tree(self, shown: &str) -> FileTree {
        self.entries.into_iter().collect::<FileTree>().with_display_prefix(shown)
    }

    fn folder(&mut self, folder: &Path, inside: &str) -> Result<(), Error> {
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(cause) => return self.unreadable(inside.to_owned(), true, &cause),
        };
        for entry in listed {
            let entry = match entry {
                Ok(entry) => entry,
                Err(cause) => return self.unreadable(inside.to_owned(), true, &cause),
            };
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let shown = join(inside, &name.to_string_lossy());
                self.unreadable(shown, true, &io::Error::other("its name is not UTF-8"))?;
                continue;
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && name == ".git" => {}
                Ok(kind) if kind.is_dir() => self.folder(&entry.path(), &join(inside, name))?,
                // A link may lead to a folder, so its name is not filtered.
                Ok(kind) if !kind.is_symlink() && !(self.wanted)(name) => {}
                Ok(_) => self.entry(&entry.path(), join(inside, name))?,
                Err(cause) => self.unreadable(join(inside, name), false, &cause)?,
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, inside: String) -> Result<(), Error> {
        match read_entry(path) {
            Ok(entry) => {
                if let TreeEntry::File(bytes) = &entry {
                    self.bytes += bytes.len() as u64;
                }
                self.push(inside, entry)
            }
            Err(cause) => self.unreadable(inside, false, &cause),
        }
    }

    fn unreadable(&mut self, inside: String, folder: bool, cause: &io::Error) -> Result<(), Error> {
        self.push(inside, TreeEntry::Unreadable { folder, reason: cause.to_string().into() })
    }

    fn push(&mut self, inside: String, entry: TreeEntry) -> Result<(), Error> {
        let too_much = |limit, of| Err(Error::TooMuch { path: self.top.to_owned(), limit, of });
        if self.entries.len() >= MAX_FILES {
            return too_much(MAX_FILES as u64, "files");
        }
        if self.bytes > MAX_TREE_BYTES {
            return too_much(MAX_TREE_BYTES, "bytes");
        }
        self.entries.push((inside, entry));
        Ok(())
    }
}

fn read_entry(path: &Path) -> io::Result<TreeEntry> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(TreeEntry::Link(fs::read_link(path)?.to_string_lossy().into()));
    }
    if !found.is_file() {
        // Opening a pipe would block until there is a writer.
        return Err(io::Error::other("it is not a regular file"));
    }
    if found.len() > MAX_FILE_BYTES {
        return Ok(TreeEntry::TooLarge(found.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        size if size > MAX_FILE_BYTES => Ok(TreeEntry::TooLarge(size)),
        _ => Ok(TreeEntry::File(bytes.into())),
    }
}

fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
