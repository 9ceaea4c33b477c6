//! Disk cache of fetched charts, keyed by digest and by the Secret that fetched them: knowing a
//! digest is no permission to read its content.
//!
//! In: bytes.
//! Out: the same bytes, if they still have their digest. Damaged files are removed and fetched
//! again. The total size is bounded by removing the least recently used files. No operation fails:
//! a disk that cannot be written costs one request the next time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::chart_version::ChartVersion;
use super::reference::Digest;

/// Maximum number of bytes of all files.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum number of files.
const MAX_FILES: usize = 512;

/// Maximum number of bytes of a record.
const MAX_RECORD_BYTES: usize = 1024;

/// Suffix of a file that is not complete yet.
const UNFINISHED: &str = ".unfinished";

/// A folder for charts; created on the first write.
#[derive(Debug)]
pub(crate) struct ChartCache {
    folder: PathBuf,
    /// Counter for unique temporary names, so that concurrent writers of the same chart use
    /// different files.
    written: AtomicU64,
}

impl ChartCache {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), written: AtomicU64::new(0) }
    }

    /// True if there is a file for this digest.
    pub(crate) fn has(&self, owner: &str, digest: Digest) -> bool {
        self.folder.join(name(owner, digest)).is_file()
    }

    /// Reads the bytes with this digest.
    pub(super) fn read(&self, owner: &str, digest: Digest) -> Option<Vec<u8>> {
        self.read_up_to(owner, digest, super::MAX_PACKED_BYTES)
    }

    /// Reads the index with this digest.
    pub(super) fn read_index(&self, owner: &str, digest: Digest) -> Option<Vec<u8>> {
        self.read_up_to(owner, digest, super::index::MAX_BYTES)
    }

    /// Returns the version that was recorded for a dependency.
    pub(in super::super) fn recorded(&self, owner: &str, dependency: &str) -> Option<ChartVersion> {
        let bytes = fs::read(self.folder.join(record_name(owner, dependency))).ok()?;
        ChartVersion::parse(std::str::from_utf8(bytes.get(..MAX_RECORD_BYTES.min(bytes.len()))?).ok()?)
    }

    /// Records the version of a dependency, so that its digest stays the same.
    pub(in super::super) fn record(&self, owner: &str, dependency: &str, version: &ChartVersion) {
        self.write_file(&record_name(owner, dependency), version.to_string().as_bytes());
    }

    /// Stores an index, and returns its digest.
    pub(super) fn write_index(&self, owner: &str, bytes: &[u8]) -> Digest {
        self.write(owner, bytes);
        Digest::hash(bytes)
    }

    fn read_up_to(&self, owner: &str, digest: Digest, most: u64) -> Option<Vec<u8>> {
        let path = self.folder.join(name(owner, digest));
        let file = fs::File::open(&path).ok()?;
        if file.metadata().ok()?.len() > most {
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        if Digest::hash(&bytes) != digest {
            drop(fs::remove_file(&path));
            return None;
        }
        // The modification time is the time of the last use, which decides what is removed.
        drop(file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Stores these bytes.
    pub(super) fn write(&self, owner: &str, bytes: &[u8]) {
        self.write_file(&name(owner, Digest::hash(bytes)), bytes);
    }

    fn write_file(&self, name: &str, bytes: &[u8]) {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let beside = self.folder.join(format!("{name}.{number}{UNFINISHED}"));
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            fs::write(&beside, bytes)?;
            fs::rename(&beside, self.folder.join(name))
        };
        if write().is_err() {
            drop(fs::remove_file(&beside));
        }
        self.tidy(MAX_FILES, MAX_BYTES);
    }

    /// Removes the least recently used files until the rest is within the bounds.
    fn tidy(&self, most_files: usize, most_bytes: u64) {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            kept.push((used, found.len(), entry.path()));
        }
        kept.sort();
        let (mut files, mut bytes) = (kept.len(), kept.iter().map(|(_, size, _)| size).sum::<u64>());
        for (_, size, path) in kept {
            if files <= most_files && bytes <= most_bytes {
                break;
            }
            drop(fs::remove_file(path));
            (files, bytes) = (files - 1, bytes - size);
        }
    }
}

/// Returns the name of the record of a dependency.
fn record_name(owner: &str, dependency: &str) -> String {
    Digest::hash(format!("locked\0{owner}\0{dependency}").as_bytes()).digits()
}

/// Returns the name of a file, which reveals nothing about the Secret in `owner`.
fn name(owner: &str, digest: Digest) -> String {
    if owner.is_empty() {
        digest.digits()
    } else {
        Digest::hash(format!("{owner}\0{digest}").as_bytes()).digits()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_kept_is_what_it_was() {
        let root = tempfile::tempdir().unwrap();
        let cache = ChartCache::new(&root.path().join("charts"));
        let digest = Digest::hash(b"one");
        assert_eq!(cache.read("", digest), None);
        cache.write("", b"one");
        assert_eq!(cache.read("", digest).as_deref(), Some(&b"one"[..]));
        assert_eq!(cache.read("team/login", digest), None);
        cache.write("team/login", b"one");
        assert!(cache.read("team/login", digest).is_some() && cache.read("team/other", digest).is_none());
        let file = root.path().join("charts").join(digest.digits());
        fs::write(&file, b"another").unwrap();
        assert_eq!(cache.read("", digest), None);
        assert!(!file.exists(), "what is damaged is removed");
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let root = tempfile::tempdir().unwrap();
        let cache = ChartCache::new(root.path());
        let digests = [&b"one"[..], b"two", b"three"].map(|bytes| {
            cache.write("", bytes);
            Digest::hash(bytes)
        });
        for (at, digest) in (1..).zip(digests) {
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
            fs::File::open(root.path().join(digest.digits())).unwrap().set_modified(used).unwrap();
        }
        assert!(cache.read("", digests[0]).is_some(), "and so it is the one that was used last");
        cache.tidy(2, MAX_BYTES);
        assert_eq!(digests.map(|digest| cache.read("", digest).is_some()), [true, false, true]);
        cache.tidy(2, 7);
        assert_eq!(
            digests.map(|digest| cache.read("", digest).is_some()).iter().filter(|is| **is).count(),
            1
        );
    }
}
