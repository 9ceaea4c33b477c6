//! Looks up the version of a chart that a request means now.
//!
//! In: a [`ChartRequest`], and what is known of its repository.
//! Out: a [`ChartVersion`]. An index is requested with the validators of the last one, so that an
//! unchanged one costs a request without a body; of a registry the tags are listed for a range, and
//! the digest of one tag is requested.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::super::credentials::Credentials;
use super::super::file_request::Validators;
use super::super::http::SharedNetwork;
use super::cache::ChartCache;
use super::chart_version::ChartVersion;
use super::download::{DownloadRequest, Downloader, accepted};
use super::error::ChartError;
use super::index::{self, IndexEntry};
use super::reference::Digest;
use super::registry;
use super::request::{ChartRequest, VersionRequest};
use super::url::Url;
use super::{BAD_URL, MAX_PACKED_BYTES};
use crate::semver_range::VersionRange;

/// Maximum number of charts of one index whose versions are kept.
const MAX_CHARTS: usize = 64;

/// Maximum number of bytes of these versions and their URLs for one chart; those of a larger one
/// are read from the disk each time.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// A known index: its validators, and the versions of the charts that were asked for.
#[derive(Debug, Default)]
pub(in super::super) struct KnownIndex {
    validators: Validators,
    /// The index on disk.
    body: Option<Digest>,
    charts: HashMap<Box<str>, Arc<[IndexEntry]>>,
    /// Digests of archives that the index does not announce, by URL.
    digests: HashMap<Box<str>, Digest>,
}

/// Returns the version that a request means now. `is_fresh` is true while `known` is as new as the
/// caller needs it.
pub(in super::super) fn find_version(
    (cache, owner): (&ChartCache, &str),
    network: &SharedNetwork,
    request: &ChartRequest,
    credentials: &Credentials,
    (known, is_fresh): (&mut KnownIndex, bool),
    by: Instant,
) -> Result<ChartVersion, ChartError> {
    if request.is_registry {
        let place = registry::place(&request.url).ok_or(BAD_URL)?;
        let downloads = Downloader::new(network, credentials, &place, by)?;
        let version = match &request.version {
            VersionRequest::Exact(version) => version.clone(),
            VersionRequest::Range(_) => {
                let versions = registry::versions(&downloads, &place)?;
                choose(request, place.server(), versions.iter().map(String::as_str))?.into()
            }
        };
        let digest = registry::manifest_digest(&downloads, &place, &version)?;
        return Ok(ChartVersion { name: request.name.clone(), version, digest });
    }
    let url = Url::parse(&format!("{}/index.yaml", request.url)).ok_or(BAD_URL)?;
    let downloads = Downloader::new(network, credentials, &url, by)?;
    let versions = known.versions((cache, owner), &downloads, &url, &request.name, is_fresh)?;
    let chosen = choose(request, url.server(), versions.iter().map(|entry| &*entry.version))?;
    let entry = versions.iter().find(|entry| entry.version == chosen).ok_or(BAD_URL)?;
    let digest = known.digest((cache, owner), &downloads, &url, entry)?;
    Ok(ChartVersion { name: request.name.clone(), version: chosen.into(), digest })
}

/// Returns the version among `published` that a request means.
fn choose<'a>(
    request: &ChartRequest,
    server: Box<str>,
    published: impl Iterator<Item = &'a str> + Clone,
) -> Result<&'a str, ChartError> {
    let found = match &request.version {
        VersionRequest::Exact(version) => published.clone().find(|one| **one == **version),
        VersionRequest::Range(range) => range.best(published.clone()),
    };
    found.ok_or_else(|| ChartError::NoVersion {
        server,
        name: request.name.clone(),
        wanted: request.version.to_string().into(),
        newest: newest(published).into(),
    })
}

/// Returns the end of the sentence that nothing fits.
fn newest<'a>(published: impl Iterator<Item = &'a str> + Clone) -> String {
    let best = |range: &str| range.parse::<VersionRange>().ok()?.best(published.clone());
    match (best("*"), best(">=0.0.0-0")) {
        (Some(newest), _) => format!(" (the newest is {newest})"),
        (None, Some(newest)) => {
            format!(" (the newest is {newest}; a range has pre-releases if it names one, such as >=0.0.0-0)")
        }
        (None, None) => " (it has no version at all)".to_owned(),
    }
}

impl KnownIndex {
    /// Returns all versions of a chart.
    fn versions(
        &mut self,
        (cache, owner): (&ChartCache, &str),
        downloads: &Downloader<'_>,
        url: &Url,
        name: &str,
        is_fresh: bool,
    ) -> Result<Arc<[IndexEntry]>, ChartError> {
        let mut listing = None;
        if !is_fresh || !self.has(cache, owner, name) {
            let known = self.has(cache, owner, name).then_some(&self.validators);
            let limit = (index::MAX_BYTES, "bytes of its index");
            let (accept, authorization) = ("*/*", downloads.login());
            let got = downloads.send(DownloadRequest {
                url,
                is_head: false,
                accept,
                authorization,
                known,
                limit,
                is_token: false,
            })?;
            if !(got.status == 304 && known.is_some()) {
                let validators = got.validators.clone();
                let body = accepted(got)?;
                let is_same = self.body == Some(Digest::hash(&body));
                if !is_same {
                    (self.charts, self.digests) = (HashMap::new(), HashMap::new());
                }
                self.body = Some(cache.write_index(owner, &body));
                self.validators = validators;
                listing = Some(body);
            }
        }
        if let Some(versions) = self.charts.get(name) {
            return Ok(versions.clone());
        }
        let Some(listing) = listing.or_else(|| cache.read_index(owner, self.body?)) else {
            // The disk lost it: it is requested as if it were unknown.
            (self.body, self.validators) = (None, Validators::default());
            return self.versions((cache, owner), downloads, url, name, false);
        };
        let versions: Arc<[IndexEntry]> = index::versions(&listing, name)
            .map_err(|problem| ChartError::Index { server: url.server(), problem })?
            .into();
        let bytes: usize = versions.iter().map(|entry| entry.version.len() + entry.url.len()).sum();
        if self.charts.len() < MAX_CHARTS && bytes <= MAX_KEPT_BYTES {
            self.charts.insert(name.into(), versions.clone());
        }
        Ok(versions)
    }

    /// Returns the entry of a version in the index that was read last.
    pub(in super::super) fn entry(&self, name: &str, version: &str) -> Option<IndexEntry> {
        self.charts.get(name)?.iter().find(|entry| entry.version == version).cloned()
    }

    /// True if the versions of a chart are known, or can be read from the disk.
    fn has(&self, cache: &ChartCache, owner: &str, name: &str) -> bool {
        self.charts.contains_key(name) || self.body.is_some_and(|body| cache.has(owner, body))
    }

    /// Returns the digest of an archive. One that the index does not announce is found by
    /// downloading the archive once.
    fn digest(
        &mut self,
        (cache, owner): (&ChartCache, &str),
        downloads: &Downloader<'_>,
        index: &Url,
        entry: &IndexEntry,
    ) -> Result<Digest, ChartError> {
        let known = entry.digest.or_else(|| self.digests.get(&*entry.url).copied());
        if let Some(known) = known {
            return Ok(known);
        }
        let place = index.resolve(&entry.url).ok_or(BAD_URL)?;
        let archive = downloads.whole(&place, MAX_PACKED_BYTES, "bytes of a chart")?;
        cache.write(owner, &archive);
        let digest = Digest::hash(&archive);
        self.digests.insert(entry.url.as_str().into(), digest);
        Ok(digest)
    }
}
