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

/// Maximum number of artifacts, and of bytes of all files.
const MAX_FILES: usize = 512;
const MAX_TOTAL_BYTES: u64 = 64 * 1024 * 1024;

/// Suffix of a file that is not complete yet.
const UNFINISHED: &str = ".unfinished";

/// Documents by their path below the repository, of bounded size.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SignatureDocuments {
    all: BTreeMap<String, Vec<u8>>,
    bytes: usize,
    /// A document is left out.
    is_cut: bool,
}

impl SignatureDocuments {
    /// Adds a document, unless all of them would be too large.
    pub(super) fn add(&mut self, path: String, document: &[u8]) {
        self.is_cut |= self.bytes + document.len() > MAX_BYTES;
        if !self.is_cut {
            self.bytes += document.len();
            self.all.insert(path, document.to_vec());
        }
    }

    pub(super) fn get(&self, path: &str) -> Option<&Vec<u8>> {
        self.all.get(path)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

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
            return SignatureDocuments::default();
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
        if documents.is_cut {
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
        self.tidy(MAX_FILES, MAX_TOTAL_BYTES);
    }

    fn file(&self, place: &str, artifact: Digest) -> PathBuf {
        self.folder
            .join(Digest::hash(format!("{place}\n{artifact}").as_bytes()).to_string().replace(':', "-"))
    }

    /// Removes the least recently used files until the rest is within the bounds.
    fn tidy(&self, most_files: usize, most_bytes: u64) {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            kept.push((found.modified().unwrap_or(SystemTime::UNIX_EPOCH), found.len(), entry.path()));
        }
        kept.sort();
        let (mut files, mut bytes) = (kept.len(), kept.iter().map(|(_, size, _)| size).sum::<u64>());
        for (_, size, path) in kept {
            if files <= most_files && bytes <= most_bytes {
                return;
            }
            drop(fs::remove_file(path));
            (files, bytes) = (files - 1, bytes - size);
        }
    }
}

fn encode(documents: &SignatureDocuments) -> String {
    let lines = documents.all.iter().map(|(path, bytes)| format!("{path} {}\n", STANDARD.encode(bytes)));
    lines.collect()
}

fn decode(file: &[u8]) -> Option<SignatureDocuments> {
    let mut documents = SignatureDocuments::default();
    for line in std::str::from_utf8(file).ok()?.lines() {
        let (path, bytes) = line.split_once(' ')?;
        documents.add(path.to_owned(), &STANDARD.decode(bytes).ok()?);
    }
    Some(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_as_they_were_written_and_the_oldest_go() {
        let root = tempfile::tempdir().unwrap();
        let store = SignatureStore::new(&root.path().join("signatures"));
        let artifact = Digest::hash(b"x");
        let mut documents = SignatureDocuments::default();
        documents.add("blobs/a".to_owned(), &[0, 255]);
        documents.add("b".to_owned(), &[]);
        assert!(store.read("here", artifact).is_empty());
        store.write("here", artifact, &documents);
        assert_eq!(store.read("here", artifact), documents);
        assert!(store.read("there", artifact).is_empty());
        fs::write(store.file("here", artifact), "planted").unwrap();
        assert!(store.read("here", artifact).is_empty());
        let mut large = SignatureDocuments::default();
        large.add("a".to_owned(), b"small");
        large.add("b".to_owned(), &vec![0; MAX_BYTES]);
        large.add("c".to_owned(), b"small");
        assert!(large.is_cut && large.get("b").is_none() && large.get("c").is_none());
        store.write("large", artifact, &large);
        assert!(store.read("large", artifact).is_empty());
        for number in 0..5 {
            store.write(&number.to_string(), artifact, &documents);
        }
        let count = || fs::read_dir(root.path().join("signatures")).unwrap().count();
        store.tidy(2, MAX_TOTAL_BYTES);
        assert_eq!(count(), 2);
        store.tidy(2, 20);
        assert_eq!(count(), 1);
    }
}
