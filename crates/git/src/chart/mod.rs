//! Charts of Helm: one version of one chart, from a repository over http(s) or from a registry, known by its digest.
//!
//! In: a [`ChartRef`]. Out: [`Chart`], the archive as it was published and its files in memory. What is written here says what is wanted;
//! `reference.rs` has the words, `download.rs` asks servers over `url.rs`, `index.rs` and `registry.rs` say where an archive is,
//! `archive.rs` takes it apart, and `cache.rs` keeps it. Nothing is believed that does not have the digest that was asked for.

mod archive;
mod cache;
mod download;
mod error;
mod index;
mod reference;
mod registry;
mod url;

use std::time::Instant;

pub(super) use cache::Cache;
pub use error::ChartError;
pub use reference::{ChartPlace, ChartRef, Digest};

use super::credentials::Credentials;
use super::http::Network;
use download::Downloads;
use moorline_core::tree::{FileTree, Room};
use url::Url;

/// The most bytes of a chart as it is published.
const MAX_PACKED_BYTES: u64 = 32 * 1024 * 1024;

/// A chart that has the digest that was asked for.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The archive, as it was published.
    pub archive: Vec<u8>,
    /// The files of the chart's folder, by their paths from there.
    pub files: FileTree,
    /// True if it was here already, and nobody was asked.
    pub was_here: bool,
}

/// The files in the archive of a chart.
pub(super) fn unpack(archive: &[u8], room: &Room) -> Result<FileTree, ChartError> {
    archive::unpack(archive, room)
}

/// A chart that was fetched before; none if it is not here, or not whole.
pub(super) fn kept(
    (cache, owner): (&Cache, &str),
    chart: &ChartRef,
    room: &Room,
) -> Option<Result<Chart, ChartError>> {
    let bytes = cache.read(owner, chart.digest)?;
    let archive = match registry::is_manifest(&bytes) {
        true => cache.read(owner, registry::layer(&bytes).ok()?)?,
        false => bytes,
    };
    Some(archive::unpack(&archive, room).map(|files| Chart { archive, files, was_here: true }))
}

/// Fetches a chart, and keeps what was fetched.
pub(super) fn fetch(
    (cache, owner): (&Cache, &str),
    network: &Network,
    chart: &ChartRef,
    credentials: &Credentials,
    (room, by): (&Room, Instant),
) -> Result<Chart, ChartError> {
    let archive = match &chart.place {
        ChartPlace::Repository { url, name, version } => {
            let index = Url::parse(&format!("{}/index.yaml", url.trim_end_matches('/'))).ok_or(BAD_URL)?;
            let downloads = Downloads::new(network, credentials, &index, by)?;
            let listing = downloads.whole(&index, index::MAX_BYTES, "bytes of its index")?;
            let found = index::find(&listing, name, version)
                .map_err(|problem| ChartError::Index { server: index.server(), problem })?;
            chart.digest.expect_announced(found.digest, "what the index announces")?;
            let place = index.joined(&found.url).ok_or(BAD_URL)?;
            let archive = downloads.whole(&place, MAX_PACKED_BYTES, "bytes of a chart")?;
            chart.digest.expect(&archive, "the chart")?;
            archive
        }
        ChartPlace::Registry { url, version } => {
            let place = registry::place(url).ok_or(BAD_URL)?;
            let downloads = Downloads::new(network, credentials, &place, by)?;
            let found = registry::fetch(&downloads, &place, version, chart.digest)?;
            if Digest::of(&found.manifest) == chart.digest {
                cache.write(owner, &found.manifest);
            }
            found.archive
        }
    };
    let files = archive::unpack(&archive, room)?;
    cache.write(owner, &archive);
    Ok(Chart { archive, files, was_here: false })
}

const BAD_URL: ChartError = ChartError::Url(
    "is none that is fetched; write https://host/path for a repository and oci://host/path for a registry, without a user",
);
