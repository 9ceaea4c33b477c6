//! Disk cache of files, keyed by digest and by the owner that fetched them: knowing a digest is no
//! permission to read its content.
//!
//! In: bytes.
//! Out: the same bytes, if they still have their digest. Damaged files are removed and fetched
//! again. The total size is bounded by removing the least recently used files.

use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::chart::Digest;

/// Suffix of a file that is not complete yet.
const UNFINISHED: &str = ".unfinished";

/// Number of bytes that are received at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// A folder for files; created on the first write.
#[derive(Debug)]
pub(crate) struct DigestCache {
    folder: PathBuf,
    max_files: usize,
    max_bytes: u64,
    /// Counter for unique temporary names, so that concurrent writers of the same file use
    /// different ones.
    written: AtomicU64,
}

/// Error of receiving a file.
#[derive(Debug)]
pub(crate) enum ReceiveError {
    /// The sender failed.
    Sender(io::Error),
    /// The disk failed.
    Disk(io::Error),
    /// The file has another size.
    Size,
    /// The file has another digest.
    Digest(Digest),
}

impl DigestCache {
    pub(crate) fn new(folder: &Path, max_files: usize, max_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), max_files, max_bytes, written: AtomicU64::new(0) }
    }

    /// True if there is a file for this digest.
    pub(crate) fn has(&self, owner: &str, digest: Digest) -> bool {
        self.folder.join(name(owner, digest)).is_file()
    }

    /// Reads the bytes with this digest, unless there are more than `most`.
    pub(crate) fn read(&self, owner: &str, digest: Digest, most: u64) -> Option<Vec<u8>> {
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

    /// Reads a file that was stored under a name.
    pub(crate) fn read_named(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(name)).ok()
    }

    /// Stores these bytes. A disk that cannot be written costs one request the next time.
    pub(crate) fn write(&self, owner: &str, bytes: &[u8]) {
        self.write_named(&name(owner, Digest::hash(bytes)), bytes);
    }

    /// Stores these bytes under a name.
    pub(crate) fn write_named(&self, name: &str, bytes: &[u8]) {
        let beside = self.unfinished(name);
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            fs::write(&beside, bytes)?;
            fs::rename(&beside, self.folder.join(name))
        };
        if write().is_err() {
            drop(fs::remove_file(&beside));
        }
        self.tidy(self.max_files, self.max_bytes);
    }

    /// Stores a file while it arrives, if it has this digest and size; no more is read.
    pub(crate) fn receive(
        &self,
        owner: &str,
        (digest, size): (Digest, u64),
        sender: &mut dyn Read,
    ) -> Result<(), ReceiveError> {
        let name = name(owner, digest);
        let beside = self.unfinished(&name);
        fs::create_dir_all(&self.folder).map_err(ReceiveError::Disk)?;
        let received = receive(&beside, size, sender).and_then(|found| match found == digest {
            true => fs::rename(&beside, self.folder.join(name)).map_err(ReceiveError::Disk),
            false => Err(ReceiveError::Digest(found)),
        });
        if received.is_err() {
            drop(fs::remove_file(&beside));
        }
        self.tidy(self.max_files, self.max_bytes);
        received
    }

    fn unfinished(&self, name: &str) -> PathBuf {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("{name}.{number}{UNFINISHED}"))
    }

    /// Removes the least recently used files until the rest is within the bounds.
    pub(crate) fn tidy(&self, most_files: usize, most_bytes: u64) {
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

/// Writes what a sender gives to a file, and returns its digest.
fn receive(path: &Path, size: u64, sender: &mut dyn Read) -> Result<Digest, ReceiveError> {
    let mut file = fs::File::create(path).map_err(ReceiveError::Disk)?;
    let (mut hash, mut left, mut chunk) = (Sha256::new(), size, vec![0; CHUNK_BYTES]);
    loop {
        let length = sender.read(&mut chunk).map_err(ReceiveError::Sender)?;
        left = left.checked_sub(length as u64).ok_or(ReceiveError::Size)?;
        match chunk.get(..length).unwrap_or_default() {
            [] if left > 0 => return Err(ReceiveError::Size),
            [] => return Ok(Digest::of_hash(hash.finalize().into())),
            part => {
                hash.update(part);
                file.write_all(part).map_err(ReceiveError::Disk)?;
            }
        }
    }
}

/// Returns the name of a file, which reveals nothing about its owner.
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

    fn read(cache: &DigestCache, owner: &str, digest: Digest) -> Option<Vec<u8>> {
        cache.read(owner, digest, 1000)
    }

    #[test]
    fn what_is_kept_is_what_it_was() {
        let root = tempfile::tempdir().unwrap();
        let cache = DigestCache::new(&root.path().join("charts"), 10, 1000);
        let digest = Digest::hash(b"one");
        assert_eq!(read(&cache, "", digest), None);
        cache.write("", b"one");
        assert_eq!(read(&cache, "", digest).as_deref(), Some(&b"one"[..]));
        assert_eq!(cache.read("", digest, 2), None);
        assert_eq!(read(&cache, "team/login", digest), None);
        cache.write("team/login", b"one");
        assert!(read(&cache, "team/login", digest).is_some() && read(&cache, "team/other", digest).is_none());
        let file = root.path().join("charts").join(digest.digits());
        fs::write(&file, b"another").unwrap();
        assert_eq!(read(&cache, "", digest), None);
        assert!(!file.exists(), "what is damaged is removed");
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let root = tempfile::tempdir().unwrap();
        let cache = DigestCache::new(root.path(), 10, 1000);
        let digests = [&b"one"[..], b"two", b"three"].map(|bytes| {
            cache.write("", bytes);
            Digest::hash(bytes)
        });
        for (at, digest) in (1..).zip(digests) {
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
            fs::File::open(root.path().join(digest.digits())).unwrap().set_modified(used).unwrap();
        }
        assert!(read(&cache, "", digests[0]).is_some(), "and so it is the one that was used last");
        cache.tidy(2, 1000);
        assert_eq!(digests.map(|digest| cache.has("", digest)), [true, false, true]);
        cache.tidy(2, 7);
        assert_eq!(digests.map(|digest| cache.has("", digest)).iter().filter(|is| **is).count(), 1);
    }

    #[test]
    fn what_arrives_is_kept_only_if_it_is_what_was_announced() {
        let root = tempfile::tempdir().unwrap();
        let cache = DigestCache::new(root.path(), 10, 1000);
        let digest = Digest::hash(b"three");
        let receive = |size: u64, bytes: &[u8]| cache.receive("", (digest, size), &mut &*bytes);
        assert!(matches!(receive(5, b"three and much more"), Err(ReceiveError::Size)));
        assert!(matches!(receive(6, b"three"), Err(ReceiveError::Size)));
        assert!(matches!(receive(5, b"seven"), Err(ReceiveError::Digest(_))));
        assert!(matches!(cache.receive("", (digest, 5), &mut io::repeat(0)), Err(ReceiveError::Size)));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "nothing else stays");
        receive(5, b"three").unwrap();
        assert_eq!(read(&cache, "", digest).as_deref(), Some(&b"three"[..]));
    }
}
