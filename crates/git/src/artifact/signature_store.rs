//! Keeps accepted signatures on the local disk, so that they are verified again without the
//! registry: by other keys, and by a daemon that starts.
//!
//! In: the documents of an accepted signature, as the registry sent them.
//! Out: the same documents. Nothing is trusted because it is here. No operation fails: what the
//! disk does not have is asked of the registry.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::chart::Digest;

/// Maximum number of bytes of the documents of one artifact.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of bytes of its file.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Maximum number of artifacts.
const MAX_FILES: usize = 512;

/// Suffix of a file that is not complete yet.
const UNFINISHED: &str = ".unfinished";

/// Documents by their path below the repository.
pub(super) type SignatureDocuments = BTreeMap<String, Vec<u8>>;

/// A folder for signatures; created on the first write.
#[derive(Debug)]
pub(crate) struct SignatureStore {
    folder: PathBuf,
    written: AtomicU64,
}

impl SignatureStore {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), written: AtomicU64::new(0) }
    }

    /// Reads the documents of an artifact; none if they are not here. `place` names the repository
    /// and the Secret that it was read with.
    pub(super) fn read(&self, place: &str, artifact: Digest) -> SignatureDocuments {
        let path = self.file(place, artifact);
        let is_sound = |size: u64| size <= MAX_FILE_BYTES;
        if !fs::metadata(&path).is_ok_and(|found| is_sound(found.len())) {
            return SignatureDocuments::new();
        }
        let read = fs::read(&path).ok().and_then(|bytes| decode(&bytes));
        if let Ok(file) = fs::File::options().append(true).open(&path) {
            // The modification time is the time of the last use, which decides what is removed.
            drop(file.set_modified(SystemTime::now()));
        }
        read.unwrap_or_default()
    }

    /// Stores the documents of an artifact.
    pub(super) fn write(&self, place: &str, artifact: Digest, documents: &SignatureDocuments) {
        if documents.values().map(Vec::len).sum::<usize>() > MAX_BYTES {
            return;
        }
        let path = self.file(place, artifact);
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_extension(format!("{number}{UNFINISHED}"));
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            fs::write(&beside, encode(documents))?;
            fs::rename(&beside, &path)
        };
        if write().is_err() {
            drop(fs::remove_file(&beside));
        }
        self.tidy(MAX_FILES);
    }

    fn file(&self, place: &str, artifact: Digest) -> PathBuf {
        self.folder
            .join(Digest::hash(format!("{place}\n{artifact}").as_bytes()).to_string().replace(':', "-"))
    }

    /// Removes the least recently used files until the rest is within the bound.
    fn tidy(&self, most: usize) {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            kept.push((found.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
        kept.sort();
        for (_, path) in kept.iter().take(kept.len().saturating_sub(most)) {
            drop(fs::remove_file(path));
        }
    }
}

fn encode(documents: &SignatureDocuments) -> String {
    let lines = documents.iter().map(|(path, bytes)| format!("{path} {}\n", STANDARD.encode(bytes)));
    lines.collect()
}

fn decode(file: &[u8]) -> Option<SignatureDocuments> {
    let lines = std::str::from_utf8(file).ok()?.lines();
    let document = |line: &str| {
        let (path, bytes) = line.split_once(' ')?;
        Some((path.to_owned(), STANDARD.decode(bytes).ok()?))
    };
    lines.map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_as_they_were_written_and_the_oldest_go() {
        let root = tempfile::tempdir().unwrap();
        let store = SignatureStore::new(&root.path().join("signatures"));
        let artifact = Digest::hash(b"x");
        let documents =
            SignatureDocuments::from([("blobs/a".to_owned(), vec![0, 255]), ("b".to_owned(), Vec::new())]);
        assert!(store.read("here", artifact).is_empty());
        store.write("here", artifact, &documents);
        assert_eq!(store.read("here", artifact), documents);
        assert!(store.read("there", artifact).is_empty());
        fs::write(store.file("here", artifact), "planted").unwrap();
        assert!(store.read("here", artifact).is_empty());
        let large = SignatureDocuments::from([("a".to_owned(), vec![0; MAX_BYTES + 1])]);
        store.write("large", artifact, &large);
        assert!(store.read("large", artifact).is_empty());
        for number in 0..5 {
            store.write(&number.to_string(), artifact, &documents);
        }
        store.tidy(2);
        assert_eq!(fs::read_dir(root.path().join("signatures")).unwrap().count(), 2);
    }
}
