//! Disk cache of fetched charts, indexes of repositories, and versions of dependencies.
//!
//! In: bytes.
//! Out: the same bytes, if they still have their digest. No operation fails: a disk that cannot be
//! written costs one request the next time.

use std::path::Path;

use super::chart_version::ChartVersion;
use super::reference::Digest;
use crate::digest_cache::DigestCache;

/// Maximum number of bytes of all files.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum number of files.
const MAX_FILES: usize = 512;

/// Maximum number of bytes of a record.
const MAX_RECORD_BYTES: usize = 1024;

/// A folder for charts; created on the first write.
#[derive(Debug)]
pub(crate) struct ChartCache(DigestCache);

impl ChartCache {
    pub(crate) fn new(folder: &Path) -> Self {
        Self(DigestCache::new(folder, MAX_FILES, MAX_BYTES))
    }

    /// True if there is a file for this digest.
    pub(crate) fn has(&self, owner: &str, digest: Digest) -> bool {
        self.0.has(owner, digest)
    }

    /// Reads the bytes with this digest.
    pub(super) fn read(&self, owner: &str, digest: Digest) -> Option<Vec<u8>> {
        self.0.read(owner, digest, super::MAX_PACKED_BYTES)
    }

    /// Reads the index with this digest.
    pub(super) fn read_index(&self, owner: &str, digest: Digest) -> Option<Vec<u8>> {
        self.0.read(owner, digest, super::index::MAX_BYTES)
    }

    /// Returns the version that was recorded for a dependency.
    pub(in super::super) fn recorded(&self, owner: &str, dependency: &str) -> Option<ChartVersion> {
        let bytes = self.0.read_named(&record_name(owner, dependency))?;
        ChartVersion::parse(std::str::from_utf8(bytes.get(..MAX_RECORD_BYTES.min(bytes.len()))?).ok()?)
    }

    /// Records the version of a dependency, so that its digest stays the same.
    pub(in super::super) fn record(&self, owner: &str, dependency: &str, version: &ChartVersion) {
        self.0.write_named(&record_name(owner, dependency), version.to_string().as_bytes());
    }

    /// Stores an index, and returns its digest.
    pub(super) fn write_index(&self, owner: &str, bytes: &[u8]) -> Digest {
        self.write(owner, bytes);
        Digest::hash(bytes)
    }

    /// Stores these bytes.
    pub(super) fn write(&self, owner: &str, bytes: &[u8]) {
        self.0.write(owner, bytes);
    }
}

/// Returns the name of the record of a dependency.
fn record_name(owner: &str, dependency: &str) -> String {
    Digest::hash(format!("locked\0{owner}\0{dependency}").as_bytes()).digits()
}
