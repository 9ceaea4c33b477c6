//! The files of one revision, in memory: everything that a renderer may read.
//!
//! In: files, links, and files too large to be read, as a source found them.
//! Out: [`FileTree`], which reads files by path. Links are followed inside the tree and never out
//! of it, so no text in a repository can make a renderer read a file of the host.

mod decrypted_bytes;
mod error;
mod lfs;
mod link_targets;
mod memory_limit;
mod mount;
mod program_output;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

pub use decrypted_bytes::DecryptedBytes;
pub use error::TreeError;
use lfs::is_lfs_pointer;
pub use lfs::{LfsPointer, LfsPointers};
pub use link_targets::link_targets;
pub use memory_limit::{MemoryBacking, MemoryLimit, MemoryLimitError, StopGuard};
pub use mount::MountResult;
use mount::{Mounts, is_inside, join_mount};
use program_output::ProgramOutputs;

/// Maximum size of a file that a source reads, in bytes; of a larger one only the size is recorded.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Maximum number of links that are followed for one path before it counts as a loop.
const MAX_LINKS: usize = 16;

/// Maximum number of files of one tree.
pub const MAX_FILES: usize = 100_000;

/// Maximum total size of all files of one tree, in bytes.
pub const MAX_TREE_BYTES: u64 = 1024 * 1024 * 1024;

/// Maximum total length of all paths of one tree, in bytes.
pub const MAX_PATH_BYTES: u64 = 32 * 1024 * 1024;

/// Paths and contents of one revision; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FileTree {
    entries: Arc<BTreeMap<Box<str>, TreeEntry>>,
    /// The folders and files that were fetched; none means the whole tree.
    fetched: Option<Arc<[Box<str>]>>,
    /// Prefix of every path that is shown to users: the location of the tree from their point of
    /// view.
    prefix: Box<str>,
    /// Files of other repositories.
    mounts: Arc<Mounts>,
    /// Outputs of programs, such as helm, for files of the tree.
    printed: Arc<ProgramOutputs>,
    /// Pointers of Git LFS that can be fetched.
    lfs: LfsPointers,
    /// Limit of the memory that the tree and everything derived from it may take.
    memory_limit: MemoryLimit,
}

/// Entry of the tree at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEntry {
    /// A file and its bytes.
    File(Arc<[u8]>),
    /// A file that was encrypted, and its plain bytes.
    Decrypted(DecryptedBytes),
    /// A file that could not be decrypted.
    Encrypted {
        /// Its bytes as in the repository.
        bytes: Arc<[u8]>,
        /// Error message, with file and line.
        error: Box<str>,
    },
    /// A file that is too large to be read, with its size in bytes.
    TooLarge(u64),
    /// A file that was not fetched because nothing reads it, with its size in bytes.
    NotFetched(u64),
    /// A file or folder that could not be read.
    Unreadable {
        /// True for a folder: its content is unknown.
        folder: bool,
        /// Error message of the operating system.
        reason: Box<str>,
    },
    /// A symbolic link, with its target as written.
    Link(Box<str>),
}

impl FileTree {
    /// Returns every path with its entry, sorted by path; links are not followed.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &TreeEntry)> {
        self.entries.iter().map(|(path, entry)| (&**path, entry))
    }

    /// Returns the paths below `directory` with their entries, in order. An empty `directory` means
    /// all of the tree's own paths, without those of mounts.
    pub fn entries_below<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = (&'a str, &'a TreeEntry)> {
        let prefix = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        self.entries
            .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .filter(move |(path, _)| !directory.is_empty() || self.is_own(path))
            .map(|(path, entry)| (&**path, entry))
    }

    /// Returns the tree with its paths shown as lying below `folder`.
    pub fn with_display_prefix(mut self, folder: &str) -> Self {
        self.prefix = match folder.trim_end_matches('/') {
            "" if folder.starts_with('/') => "/".into(),
            "" | "." => Box::default(),
            folder => format!("{folder}/").into(),
        };
        self
    }

    /// Returns the tree with this memory limit.
    pub fn with_memory_limit(mut self, memory_limit: MemoryLimit) -> Self {
        self.memory_limit = memory_limit;
        self
    }

    /// Returns the tree that records which of these pointers of Git LFS are read.
    pub fn with_lfs(mut self, pointers: LfsPointers) -> Self {
        self.lfs = pointers;
        self
    }

    /// Returns the limit of the memory that the tree and everything derived from it may take.
    pub fn memory_limit(&self) -> &MemoryLimit {
        &self.memory_limit
    }

    /// Returns the tree marked as partial: only these folders and files were fetched, and nothing
    /// is known of others.
    pub fn with_fetched(mut self, brought: impl IntoIterator<Item = Box<str>>) -> Self {
        self.fetched = Some(brought.into_iter().collect());
        self
    }

    /// Returns the tree with the files of other repositories mounted. Each name maps to the mount
    /// point of its files, which is no path that a repository can have, or to the reason why there
    /// are none.
    pub fn with_mounts(
        self,
        names: BTreeMap<Box<str>, MountResult>,
        files: impl IntoIterator<Item = (Box<str>, Self)>,
    ) -> Self {
        let mut entries = Arc::unwrap_or_clone(self.entries);
        let mut held = BTreeSet::new();
        for (place, tree) in files {
            let there = |path: &str| -> Box<str> { join_mount(&place, path).into() };
            held.extend(tree.fetched.iter().flat_map(|brought| brought.iter().map(|path| there(path))));
            entries.extend(tree.entries().map(|(path, entry)| (there(path), entry.clone())));
        }
        let mounts = Arc::new(Mounts::new(names, held));
        Self {
            entries: Arc::new(entries),
            fetched: self.fetched,
            prefix: self.prefix,
            mounts,
            printed: self.printed,
            lfs: self.lfs,
            memory_limit: self.memory_limit,
        }
    }

    /// Returns the mount point of a name, or the reason why it has no files; none if the name is
    /// unknown.
    pub fn mount_of(&self, name: &str) -> Option<&MountResult> {
        self.mounts.names.get(name)
    }

    /// Splits a path into its mount point and the path inside it; the tree's own paths have an
    /// empty mount point.
    pub fn split_mount<'a>(&self, path: &'a str) -> (&'a str, &'a str) {
        self.mounts.split(path)
    }

    /// Resolves `path` relative to `folder`, in normal form; none if it leads out of the repository
    /// that contains the folder.
    pub fn resolve_relative(&self, folder: &str, path: &str) -> Option<String> {
        let (place, inside) = self.split_mount(folder);
        Some(join_mount(place, &normalise(inside, path)?).into_owned())
    }

    /// True if the tree knows the content at `path`, even if nothing is there.
    pub fn is_known(&self, path: &str) -> bool {
        if !self.is_own(path) {
            return self.mounts.brought.iter().any(|folder| is_inside(folder, path));
        }
        let holds = |folder: &str| folder.is_empty() || is_inside(folder, path);
        self.fetched.as_ref().is_none_or(|brought| brought.iter().any(|folder| holds(folder)))
    }

    fn is_own(&self, path: &str) -> bool {
        self.mounts.is_empty() || self.split_mount(path).0.is_empty()
    }

    /// Returns a path as it is shown to users.
    pub fn display_path(&self, path: &str) -> String {
        match path {
            path if !self.is_own(path) => path.to_owned(),
            "" => self.prefix.trim_end_matches('/').to_owned(),
            path => format!("{}{path}", self.prefix),
        }
    }

    /// Returns the path that [`FileTree::display_path`] turned into `shown`.
    pub fn parse_display_path<'a>(&self, shown: &'a str) -> &'a str {
        match self.is_own(shown) {
            true => shown.strip_prefix(&*self.prefix).unwrap_or(shown),
            false => shown,
        }
    }

    /// True if the tree has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Follows every link on the way of `path` and returns the final path.
    pub fn resolve(&self, path: &str) -> Result<String, TreeError> {
        self.follow(path, |_| {})
    }

    /// Returns the links on the way of a path, as far as they can be followed.
    pub fn links(&self, path: &str) -> Vec<String> {
        let mut links = Vec::new();
        drop(self.follow(path, |link| links.push(link.to_owned())));
        links
    }

    fn follow(&self, path: &str, mut note: impl FnMut(&str)) -> Result<String, TreeError> {
        let (place, inside) = self.split_mount(path);
        let mut current = normalise("", inside).ok_or_else(|| self.outside(path, path))?;
        for _ in 0..MAX_LINKS {
            let Some((link, target)) = self.first_link(place, &current) else {
                return Ok(join_mount(place, &current).into_owned());
            };
            note(&join_mount(place, link));
            let rest = current[link.len()..].trim_start_matches('/').to_owned();
            let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
            let reached = match target.starts_with('/') {
                true => None,
                false => normalise(folder, target),
            }
            .ok_or_else(|| self.outside(path, target))?;
            current = normalise(&reached, &rest).ok_or_else(|| self.outside(path, target))?;
        }
        Err(TreeError::Loop { path: self.display_path(path) })
    }

    /// Reads the file at `path`, following links.
    pub fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        let resolved = self.resolve(path)?;
        match self.entries.get(resolved.as_str()) {
            Some(TreeEntry::File(bytes)) if is_lfs_pointer(bytes) => {
                self.lfs.record_read(&resolved);
                Err(TreeError::LfsPointer { path: self.display_path(path) })
            }
            Some(TreeEntry::File(bytes)) => Ok(bytes.clone()),
            Some(TreeEntry::Decrypted(plain)) => Ok(plain.bytes()),
            Some(TreeEntry::Encrypted { error, .. }) => Err(TreeError::Encrypted { error: error.clone() }),
            Some(TreeEntry::TooLarge(size)) => {
                Err(TreeError::TooLarge { path: self.display_path(path), size: *size })
            }
            Some(TreeEntry::NotFetched(_)) => Err(TreeError::NotFetched { path: self.display_path(path) }),
            Some(TreeEntry::Unreadable { reason, .. }) => {
                Err(TreeError::Unreadable { path: self.display_path(path), reason: reason.clone() })
            }
            Some(TreeEntry::Link(_)) | None => {
                self.printed.by_name(path).ok_or_else(|| TreeError::Missing { path: self.display_path(path) })
            }
        }
    }

    /// True if the file at `path` was decrypted, following links.
    pub fn is_decrypted(&self, path: &str) -> bool {
        self.resolve(path)
            .is_ok_and(|path| matches!(self.entries.get(path.as_str()), Some(TreeEntry::Decrypted(_))))
    }

    /// Returns the bytes of a file that could not be decrypted and the reason, following links.
    pub fn encrypted(&self, path: &str) -> Option<(Arc<[u8]>, Box<str>)> {
        match self.entries.get(self.resolve(path).ok()?.as_str()) {
            Some(TreeEntry::Encrypted { bytes, error }) => Some((bytes.clone(), error.clone())),
            Some(_) | None => None,
        }
    }

    /// True if any file of the tree was decrypted.
    pub fn has_decrypted(&self) -> bool {
        self.entries.values().any(|entry| matches!(entry, TreeEntry::Decrypted(_)))
    }

    /// Returns the tree with some of its entries replaced.
    pub fn with_entries(mut self, entries: impl IntoIterator<Item = (Box<str>, TreeEntry)>) -> Self {
        Arc::make_mut(&mut self.entries).extend(entries);
        self
    }

    /// Returns the tree with all files of another one below `folder`, which is complete.
    pub fn with_tree_at(mut self, folder: &str, other: &Self) -> Self {
        let there = |path: &str| format!("{folder}/{path}").into_boxed_str();
        Arc::make_mut(&mut self.entries)
            .extend(other.entries().map(|(path, entry)| (there(path), entry.clone())));
        self.fetched = self.fetched.map(|fetched| fetched.iter().cloned().chain([folder.into()]).collect());
        self
    }

    /// True if a file is at `path`, following links, even if it cannot be read.
    pub fn is_file(&self, path: &str) -> bool {
        let entry = self.resolve(path).ok().and_then(|path| self.entries.get(path.as_str()));
        match entry {
            Some(
                TreeEntry::File(_)
                | TreeEntry::Decrypted(_)
                | TreeEntry::Encrypted { .. }
                | TreeEntry::TooLarge(_)
                | TreeEntry::NotFetched(_),
            ) => true,
            Some(TreeEntry::Unreadable { folder, .. }) => !folder,
            Some(TreeEntry::Link(_)) | None => false,
        }
    }

    /// True if a file is at `path` or below it, following links.
    pub fn contains(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|path| {
            path.is_empty()
                || self.entries.contains_key(path.as_str())
                || self.entries_below(&path).next().is_some()
        })
    }

    fn outside(&self, path: &str, target: &str) -> TreeError {
        TreeError::Outside { path: self.display_path(path), target: target.to_owned() }
    }

    /// Returns the shortest prefix of `path` that is a link in this mount, with its target.
    fn first_link<'a>(&'a self, place: &str, path: &'a str) -> Option<(&'a str, &'a str)> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let entry = |prefix: &'a str| -> Option<&'a TreeEntry> {
            let inside: Cow<'a, str> = join_mount(place, prefix);
            self.entries.get(&*inside)
        };
        ends.map(|end| &path[..end]).find_map(|prefix| match entry(prefix) {
            Some(TreeEntry::Link(target)) => Some((prefix, &**target)),
            _ => None,
        })
    }
}

impl<P: Into<Box<str>>> FromIterator<(P, TreeEntry)> for FileTree {
    fn from_iter<I: IntoIterator<Item = (P, TreeEntry)>>(entries: I) -> Self {
        let entries = entries.into_iter().map(|(path, entry)| (path.into(), entry)).collect();
        Self { entries: Arc::new(entries), ..Self::default() }
    }
}

impl FileTree {
    /// Creates a tree from paths and texts, for tests and examples.
    pub fn from_texts<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        files.into_iter().map(|(path, text)| (path, TreeEntry::File(text.as_bytes().into()))).collect()
    }
}

/// Resolves `path` relative to `folder`, without `.` and `..`; none if it leads above the root.
pub fn normalise(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> FileTree {
        entries
            .iter()
            .map(|(path, text)| match text.strip_prefix("-> ") {
                Some(target) => (*path, TreeEntry::Link(target.into())),
                None => (*path, TreeEntry::File(text.as_bytes().into())),
            })
            .collect()
    }

    #[test]
    fn links_are_followed_inside_the_tree() {
        let tree = tree(&[
            ("a/real.yaml", "text"),
            ("a/near.yaml", "-> real.yaml"),
            ("b/far.yaml", "-> ../a/near.yaml"),
            ("c", "-> a"),
        ]);
        for path in ["a/real.yaml", "a/near.yaml", "b/far.yaml", "c/near.yaml", "./b/../c/real.yaml"] {
            assert_eq!(&*tree.read(path).unwrap(), b"text", "{path}");
        }
        assert!(tree.contains("c"));
        assert!(!tree.contains("d"));
    }

    #[test]
    fn nothing_leads_out_of_the_tree() {
        let tree =
            tree(&[("up", "-> ../secret"), ("a/root", "-> /etc/passwd"), ("x", "-> y"), ("y", "-> x")]);
        for path in ["up", "a/root", "../up", "a/../../up"] {
            assert!(matches!(tree.read(path), Err(TreeError::Outside { .. })), "{path}");
        }
        assert!(matches!(tree.read("x"), Err(TreeError::Loop { .. })));
        assert!(matches!(tree.read("z"), Err(TreeError::Missing { .. })));
    }

    #[test]
    fn what_comes_from_elsewhere_lies_behind_a_wall_of_its_own() {
        const PLACE: &str = "https://example.com/base at 1f";
        let own = [("a/x", "own"), ("https:", "-> a"), ("a/out", "-> ../https://example.com/base at 1f/x")];
        let base = tree(&[("x", "base"), ("d/up", "-> ../x"), ("d/out", "-> ../../a/x"), ("d/y", "y")])
            .with_fetched(["d".into(), "x".into()]);
        let names = [("base?ref=1".into(), Ok(PLACE.into())), ("no".into(), Err("why".into()))];
        let tree = tree(&own).with_mounts(names.into(), [(PLACE.into(), base)]).with_display_prefix("here");
        let at = |path: &str| format!("{PLACE}/{path}");
        let read = |path: &str| tree.read(path).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        assert_eq!(tree.mount_of("base?ref=1"), Some(&Ok(PLACE.into())));
        assert_eq!(tree.mount_of("no"), Some(&Err("why".into())));
        assert_eq!(tree.mount_of("other"), None);
        assert_eq!(read(&at("x")).as_deref(), Ok("base"));
        assert_eq!(read(&at("d/up")).as_deref(), Ok("base"));
        assert_eq!(read("https:/x").as_deref(), Ok("own"));
        for path in [at("d/out"), at("../x"), at("d/../../a/x")] {
            assert!(matches!(tree.read(&path), Err(TreeError::Outside { .. })), "{path}");
        }
        assert!(matches!(tree.read("a/out"), Err(TreeError::Missing { .. })), "{:?}", tree.read("a/out"));
        assert_eq!(tree.resolve_relative(&at("d"), "../x"), Some(at("x")));
        assert_eq!(tree.resolve_relative(&at("d"), ".."), Some(PLACE.to_owned()));
        assert_eq!(tree.resolve_relative(&at("d"), "../.."), None);
        assert_eq!(
            tree.resolve_relative("a", "../https://example.com/base at 1f/x").as_deref(),
            Some("https:/example.com/base at 1f/x")
        );
        assert_eq!(tree.entries_below("").count(), 3);
        assert_eq!(tree.entries_below(PLACE).count(), 4);
        assert!(tree.contains(PLACE) && tree.is_known("anything"));
        assert!(
            tree.is_known(&at("d/z"))
                && tree.is_known(&at("x"))
                && !tree.is_known(&at("e"))
                && !tree.is_known(PLACE)
        );
        assert_eq!((tree.display_path(&at("x")), tree.display_path("a/x")), (at("x"), "here/a/x".to_owned()));
        assert_eq!(
            (tree.parse_display_path(&at("x")), tree.parse_display_path("here/a/x")),
            (&*at("x"), "a/x")
        );
    }

    #[test]
    fn below_lists_a_folder_and_not_its_neighbours() {
        let tree = tree(&[("a/x", ""), ("a/y/z", ""), ("ab", ""), ("b", "")]);
        let below = |directory| tree.entries_below(directory).map(|(path, _)| path).collect::<Vec<_>>();
        assert_eq!(below("a"), ["a/x", "a/y/z"]);
        assert_eq!(below("").len(), 4);
        assert!(below("c").is_empty());
    }
}
