//! Pointers of Git LFS among the files of a tree.
//!
//! In: files, and the paths that a render reads.
//! Out: [`LfsPointers`], the files that have to be fetched before the render can go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{FileTree, TreeEntry};

/// First bytes of a pointer that Git LFS keeps in place of a file.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Size in bytes below which Git LFS takes a file for a pointer.
const MAX_POINTER_BYTES: usize = 1024;

/// Number of hex digits of an object id.
const OID_DIGITS: usize = 64;

/// A pointer: the id and the size of the file that it stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LfsPointer {
    /// SHA-256 of the file: 64 hex digits in lower case.
    pub oid: Box<str>,
    /// Size of the file in bytes.
    pub size: u64,
}

impl LfsPointer {
    /// Parses a pointer; none for other files, and for pointers to files that an extension of Git
    /// LFS would have to change.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if !is_lfs_pointer(bytes) {
            return None;
        }
        let (mut oid, mut size) = (None, None);
        for line in std::str::from_utf8(bytes).ok()?.lines().skip(1) {
            match line.split_once(' ')? {
                ("oid", text) => oid = Some(text.strip_prefix("sha256:")?),
                ("size", text) => size = Some(text.parse().ok()?),
                (key, _) if key.starts_with("ext-") => return None,
                _ => {}
            }
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let oid = oid.filter(|oid| oid.len() == OID_DIGITS && oid.bytes().all(is_digit))?;
        Some(Self { oid: oid.into(), size: size? })
    }
}

/// True for the pointer that Git LFS keeps in place of a file.
pub(super) fn is_lfs_pointer(bytes: &[u8]) -> bool {
    bytes.len() < MAX_POINTER_BYTES && bytes.starts_with(POINTER)
}

/// Pointers of a tree that can be fetched; all clones share the record of those that were read.
#[derive(Debug, Clone, Default)]
pub struct LfsPointers(Arc<BTreeMap<Box<str>, FollowedPointer>>);

#[derive(Debug)]
struct FollowedPointer {
    pointer: LfsPointer,
    was_read: AtomicBool,
}

impl LfsPointers {
    /// Returns the pointers of a tree at the paths for which `is_fetched` is true.
    pub fn of(tree: &FileTree, is_fetched: impl Fn(&str) -> bool) -> Self {
        let found = tree.entries().filter_map(|(path, entry)| match entry {
            TreeEntry::File(bytes) => {
                let pointer = LfsPointer::parse(bytes).filter(|_| is_fetched(path))?;
                Some((path.into(), FollowedPointer { pointer, was_read: AtomicBool::new(false) }))
            }
            _ => None,
        });
        Self(Arc::new(found.collect()))
    }

    /// True if a tree has files that look like pointers.
    pub fn are_in(tree: &FileTree) -> bool {
        tree.entries().any(|(_, entry)| matches!(entry, TreeEntry::File(bytes) if is_lfs_pointer(bytes)))
    }

    /// Returns all pointers, with their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &LfsPointer)> {
        self.0.iter().map(|(path, followed)| (&**path, &followed.pointer))
    }

    /// Returns the pointers that were read, with their paths.
    pub fn were_read(&self) -> impl Iterator<Item = (&str, &LfsPointer)> {
        let read = self.0.iter().filter(|(_, followed)| followed.was_read.load(Ordering::Relaxed));
        read.map(|(path, followed)| (&**path, &followed.pointer))
    }

    /// Records that the file at a path was read.
    pub(super) fn record_read(&self, path: &str) {
        if let Some(followed) = self.0.get(path) {
            followed.was_read.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_pointer_can_be_fetched() {
        let oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let version = "version https://git-lfs.github.com/spec/v1";
        let table = [
            (format!("{version}\noid sha256:{oid}\nsize 12345\n"), true),
            (format!("{version}\nother key\noid sha256:{oid}\nsize 0\n"), true),
            (format!("{version}\next-0-case sha256:{oid}\noid sha256:{oid}\nsize 1\n"), false),
            (format!("{version}\noid sha256:{}\nsize 1\n", oid.to_uppercase()), false),
            (format!("{version}\noid sha256:{}\nsize 1\n", &oid[1..]), false),
            (format!("{version}\noid sha512:{oid}\nsize 1\n"), false),
            (format!("{version}\noid sha256:{oid}\nsize -1\n"), false),
            (format!("{version}\noid sha256:{oid}\nsize 99999999999999999999\n"), false),
            (format!("{version}\noid sha256:{oid}\n"), false),
            (format!("{version}\nsize 1\n"), false),
            (format!("oid sha256:{oid}\nsize 1\n"), false),
        ];
        for (text, expect) in table {
            let found = LfsPointer::parse(text.as_bytes());
            assert_eq!(found.is_some(), expect, "{text}");
            assert!(found.is_none_or(|found| &*found.oid == oid));
        }
    }

    #[test]
    fn a_pointer_is_wanted_once_it_is_read() {
        let text = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{:064x}\nsize 1\n", 7);
        let tree = FileTree::from_texts([("a", text.as_str()), ("b", &text), ("other/c", &text), ("d", "")]);
        let pointers = LfsPointers::of(&tree, |path| !path.starts_with("other/"));
        assert_eq!(pointers.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["a", "b"]);
        assert!(LfsPointers::are_in(&tree) && !LfsPointers::are_in(&FileTree::from_texts([("a", "text")])));
        let tree = tree.with_lfs(pointers.clone());
        assert!(tree.read("d").is_ok() && pointers.were_read().next().is_none());
        for path in ["b", "other/c"] {
            assert!(tree.clone().read(path).is_err());
        }
        assert_eq!(pointers.were_read().map(|(path, _)| path).collect::<Vec<_>>(), ["b"]);
    }
}
