//! Helm charts: looks up the version that a request means, fetches it from a repository over
//! http(s) or from a registry, and checks its digest.
//!
//! In: a [`ChartRequest`] or a [`ChartRef`].
//! Out: a [`ChartVersion`]; a [`Chart`], the published archive and its files in memory.
//! `request.rs`, `reference.rs` and `chart_version.rs` have the types, `lookup.rs` finds a version,
//! `download.rs` sends requests for `url.rs`, `index.rs` and `registry.rs` locate an archive,
//! `archive.rs` unpacks it, and `cache.rs` stores it. No content is used without the configured
//! digest.

mod archive;
mod cache;
mod chart_version;
mod download;
mod error;
mod index;
mod lookup;
mod reference;
mod registry;
mod request;
pub(super) mod url;

use std::time::Instant;

pub(super) use cache::ChartCache;
pub use chart_version::ChartVersion;
pub use error::ChartError;
pub(super) use index::IndexEntry;
pub(super) use lookup::{KnownIndex, find_version};
pub use reference::{ChartPlace, ChartRef, Digest};
pub use request::ChartRequest;

use super::credentials::Credentials;
use super::http::SharedNetwork;
use download::Downloader;
use moorline_core::tree::{FileTree, MemoryLimit};
use url::Url;

/// Maximum number of bytes of a published chart.
const MAX_PACKED_BYTES: u64 = 32 * 1024 * 1024;

/// A chart with the configured digest.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The archive as published.
    pub archive: Vec<u8>,
    /// The files of the chart's folder, by relative path.
    pub files: FileTree,
    /// True if it came from the cache, without a request.
    pub was_cached: bool,
}

/// Unpacks the archive of a chart.
pub(super) fn unpack(archive: &[u8], memory_limit: &MemoryLimit) -> Result<FileTree, ChartError> {
    archive::unpack(archive, memory_limit)
}

/// Reads a chart from the cache; none if it is missing or damaged.
pub(super) fn kept(
    (cache, owner): (&ChartCache, &str),
    chart: &ChartRef,
    memory_limit: &MemoryLimit,
) -> Option<Result<Chart, ChartError>> {
    let bytes = cache.read(owner, chart.digest)?;
    let archive = match registry::is_manifest(&bytes) {
        true => cache.read(owner, registry::layer(&bytes).ok()?)?,
        false => bytes,
    };
    Some(archive::unpack(&archive, memory_limit).map(|files| Chart { archive, files, was_cached: true }))
}

/// Fetches a chart, and stores it in the cache. `listed` is its entry in an index that was read
/// before.
pub(super) fn fetch(
    (cache, owner): (&ChartCache, &str),
    network: &SharedNetwork,
    (chart, listed): (&ChartRef, Option<IndexEntry>),
    credentials: &Credentials,
    (memory_limit, by): (&MemoryLimit, Instant),
) -> Result<Chart, ChartError> {
    let archive = match &chart.place {
        ChartPlace::Repository { url, name, version } => {
            let index = Url::parse(&format!("{}/index.yaml", url.trim_end_matches('/'))).ok_or(BAD_URL)?;
            let downloads = Downloader::new(network, credentials, &index, by)?;
            let found = match listed {
                Some(listed) => listed,
                None => {
                    let listing = downloads.whole(&index, index::MAX_BYTES, "bytes of its index")?;
                    index::find(&listing, name, version)
                        .map_err(|problem| ChartError::Index { server: index.server(), problem })?
                }
            };
            chart.digest.expect_announced(found.digest, "what the index announces")?;
            let place = index.resolve(&found.url).ok_or(BAD_URL)?;
            let archive = downloads.whole(&place, MAX_PACKED_BYTES, "bytes of a chart")?;
            chart.digest.expect(&archive, "the chart")?;
            archive
        }
        ChartPlace::Registry { url, version } => {
            let place = registry::place(url).ok_or(BAD_URL)?;
            let downloads = Downloader::new(network, credentials, &place, by)?;
            let wanted = (chart.digest, chart.was_taken_up);
            let found = registry::fetch(&downloads, &place, version, wanted)?;
            if Digest::hash(&found.manifest) == chart.digest {
                cache.write(owner, &found.manifest);
            }
            found.archive
        }
    };
    let files = archive::unpack(&archive, memory_limit)?;
    cache.write(owner, &archive);
    Ok(Chart { archive, files, was_cached: false })
}

const BAD_URL: ChartError = ChartError::Url(
    "is not supported; write https://host/path for a repository and oci://host/path for a registry, without a user",
);
