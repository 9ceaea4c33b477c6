//! Disk cache of helm's output: after a restart of the daemon no random number of a chart is drawn
//! again.
//!
//! In: a folder, and compressed output. Out: the stored entries, oldest first. They may contain
//! Secrets, as helm's output may, and are readable by this user only. An entry that cannot be
//! written or read is treated as missing.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

/// Digest of everything that an entry depends on.
pub(super) type CacheKey = [u8; 32];

/// Suffix of the files.
const ENDING: &str = ".packed";
/// The most files that are read.
const MAX_FILES: usize = 20_000;

/// A folder of entries.
#[derive(Debug, Clone)]
pub(super) struct DiskCache(PathBuf);

impl DiskCache {
    /// Opens the cache in this folder.
    pub(super) fn open(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Reads all entries, oldest first, without those that are larger than `most` bytes.
    pub(super) fn load_all(&self, most: usize) -> Vec<(CacheKey, Arc<[u8]>)> {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten().take(MAX_FILES);
        let mut found: Vec<_> = files
            .filter_map(|file| {
                let key = read(file.file_name().to_str()?.strip_suffix(ENDING)?)?;
                let metadata = file.metadata().ok().filter(|it| it.is_file() && it.len() <= most as u64)?;
                Some((metadata.modified().ok()?, key))
            })
            .collect();
        found.sort();
        let bytes = |key: &CacheKey| fs::read(self.place(key)).ok().map(Arc::from);
        found.into_iter().filter_map(|(_, key)| Some((key, bytes(&key)?))).collect()
    }

    /// Writes an entry; a failure is only logged.
    pub(super) fn put(&self, key: &CacheKey, bytes: &[u8]) {
        if let Err(error) = self.write(key, bytes) {
            tracing::warn!(folder = %self.0.display(), %error, "helm's output could not be cached on disk");
        }
    }

    fn write(&self, key: &CacheKey, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        // Written beside and renamed, so that a crash leaves no half-written entry under its name.
        let (place, beside) = (self.place(key), self.place(key).with_extension("new"));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?
            .write_all(bytes)?;
        fs::rename(beside, place)
    }

    /// Removes an entry.
    pub(super) fn remove(&self, key: &CacheKey) {
        let _ = fs::remove_file(self.place(key));
    }

    fn place(&self, key: &CacheKey) -> PathBuf {
        let name = key.iter().fold(String::new(), |name, byte| name + &format!("{byte:02x}"));
        self.0.join(name + ENDING)
    }
}

/// Parses a key from a file name.
fn read(name: &str) -> Option<CacheKey> {
    let mut key = [0; 32];
    if name.len() != 2 * key.len() || !name.is_ascii() {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(name.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}
