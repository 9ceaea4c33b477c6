//! Fetches charts from a registry: tags, the manifest of a version, and its archive.
//!
//! In: `oci://host/path/name` and a version.
//! Out: the tags; the manifest and the archive, each with its digest checked. A registry may ask
//! for a token; the login is sent for it only to the server that the registry itself names, over
//! https. Mirrors of the registry are asked first, without the login.

use std::cell::RefCell;

use serde_json::Value;

use super::super::artifact::{LayerSelection, RegistryAddress};
use super::super::challenge::{next_page, split, token_in, token_url};
use super::super::credentials::Sensitive;
use super::super::error::Error;
use super::MAX_PACKED_BYTES;
use super::download::{DownloadRequest, DownloadResponse, Downloader, accepted};
use super::error::ChartError;
use super::reference::Digest;
use super::url::Url;

/// Maximum number of bytes of a manifest.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// Maximum number of bytes of the response with a token.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// Maximum number of bytes of one page of tags, and of pages.
const MAX_TAGS: (u64, usize) = (4 * 1024 * 1024, 50);

/// Media type of manifests.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Media types of charts.
const ARCHIVES: [&str; 2] = ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];

/// A version pulled from a registry.
pub(super) struct PulledChart {
    pub(super) manifest: Vec<u8>,
    pub(super) archive: Vec<u8>,
}

/// Returns the base URL of a chart in its registry.
pub(super) fn place(url: &str) -> Option<Url> {
    let (scheme, rest) = url.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    let path = path.trim_end_matches('/');
    let plain = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte))
    };
    let sound = scheme.eq_ignore_ascii_case("oci") && path.split('/').all(plain);
    if sound { Url::parse(&format!("https://{host}/v2/{path}")) } else { None }
}

/// Returns the answer of the first mirror of a registry that has one. The login of the registry is
/// not sent to them.
fn of_mirrors<T>(
    downloads: &Downloader<'_>,
    place: &Url,
    ask: impl Fn(&Downloader<'_>, &Url) -> Result<T, ChartError>,
) -> Option<T> {
    let repository = place.path().strip_prefix("/v2/")?;
    let address = format!("oci://{}/{repository}", place.host_and_port());
    let address = RegistryAddress::new(&address, LayerSelection::default()).ok()?;
    downloads.mirrors().of(&address).iter().find_map(|mirror| {
        let place = Url::parse(&mirror.endpoint(""))?;
        let answer = ask(&downloads.on_mirror(&place), &place);
        answer
            .inspect_err(|error| tracing::debug!(mirror = mirror.server(), %error, "a mirror is passed over"))
            .ok()
    })
}

/// True for a manifest, as opposed to an archive.
pub(super) fn is_manifest(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'{')
}

/// Returns the digest of the archive in a manifest. The error is the rest of a sentence.
pub(super) fn layer(manifest: &[u8]) -> Result<Digest, &'static str> {
    let manifest: Value = serde_json::from_slice(manifest).map_err(|_| "sends no manifest")?;
    let layers =
        manifest["layers"].as_array().ok_or("sends a manifest without layers, such as a list of others")?;
    let is_archive =
        |layer: &&Value| layer["mediaType"].as_str().is_some_and(|form| ARCHIVES.contains(&form));
    let archive = layers.iter().find(is_archive).ok_or("has an artifact there that is not a chart")?;
    if archive["size"].as_u64().is_some_and(|size| size > MAX_PACKED_BYTES) {
        return Err("has a chart there that is larger than 32 MiB");
    }
    archive["digest"].as_str().and_then(Digest::parse).ok_or("names an archive without a SHA-256")
}

/// Fetches a version whose manifest or archive has this digest. With `was_taken_up` the digest is
/// that of the manifest, which is requested by it, because the tag may have moved since.
pub(super) fn fetch(
    downloads: &Downloader<'_>,
    place: &Url,
    version: &str,
    wanted: (Digest, bool),
) -> Result<PulledChart, ChartError> {
    let from = |downloads: &Downloader<'_>, place: &Url| fetch_from(downloads, place, version, wanted);
    of_mirrors(downloads, place, from).map_or_else(|| from(downloads, place), Ok)
}

fn fetch_from(
    downloads: &Downloader<'_>,
    place: &Url,
    version: &str,
    (digest, was_taken_up): (Digest, bool),
) -> Result<PulledChart, ChartError> {
    let session = RegistrySession::new(downloads, place);
    let name = if was_taken_up { digest.to_string() } else { tag(version) };
    let manifest =
        session.get(&format!("/manifests/{name}"), MANIFEST, (MAX_MANIFEST_BYTES, "bytes of a manifest"))?;
    let unusable = |problem| ChartError::Registry { server: place.server(), problem };
    let archive = layer(&manifest).map_err(unusable)?;
    if Digest::hash(&manifest) != digest {
        digest.expect_announced(Some(archive), "the chart in the registry")?;
    }
    let bytes = session.get(&format!("/blobs/{archive}"), "*/*", (MAX_PACKED_BYTES, "bytes of a chart"))?;
    archive.expect(&bytes, "what the registry sends")?;
    Ok(PulledChart { manifest, archive: bytes })
}

/// Returns the tag of a version: a tag must not contain a plus sign, and Helm replaces it by an
/// underscore.
fn tag(version: &str) -> String {
    version.replace('+', "_")
}

/// Returns the digest of the manifest of a version, by the head of its response where the registry
/// announces it there.
pub(super) fn manifest_digest(
    downloads: &Downloader<'_>,
    place: &Url,
    version: &str,
) -> Result<Digest, ChartError> {
    let from = |downloads: &Downloader<'_>, place: &Url| digest_from(downloads, place, version);
    of_mirrors(downloads, place, from).map_or_else(|| from(downloads, place), Ok)
}

fn digest_from(downloads: &Downloader<'_>, place: &Url, version: &str) -> Result<Digest, ChartError> {
    let session = RegistrySession::new(downloads, place);
    let path = format!("/manifests/{}", tag(version));
    let limit = (MAX_MANIFEST_BYTES, "bytes of a manifest");
    let got = session.send(&session.url(&path)?, MANIFEST, true, limit)?;
    let digest = got.content_digest.as_deref().and_then(Digest::parse);
    accepted(got)?;
    match digest {
        Some(digest) => Ok(digest),
        None => session.get(&path, MANIFEST, limit).map(|manifest| Digest::hash(&manifest)),
    }
}

/// Returns all tags as versions.
pub(super) fn versions(downloads: &Downloader<'_>, place: &Url) -> Result<Vec<String>, ChartError> {
    let listed = of_mirrors(downloads, place, |downloads, place| match versions_from(downloads, place)? {
        versions if versions.is_empty() => {
            Err(ChartError::Registry { server: place.server(), problem: "lists no tags" })
        }
        versions => Ok(versions),
    });
    listed.map_or_else(|| versions_from(downloads, place), Ok)
}

fn versions_from(downloads: &Downloader<'_>, place: &Url) -> Result<Vec<String>, ChartError> {
    let session = RegistrySession::new(downloads, place);
    let unusable = |problem| ChartError::Registry { server: place.server(), problem };
    let (mut url, mut versions) = (session.url("/tags/list")?, Vec::new());
    for _ in 0..MAX_TAGS.1 {
        let got = session.send(&url, "application/json", false, (MAX_TAGS.0, "bytes of its tags"))?;
        let next = got.link.as_deref().and_then(next_page).map(|next| got.from.resolve(next));
        let answer: Value = serde_json::from_slice(&accepted(got)?).unwrap_or_default();
        let tags = answer.get("tags").ok_or_else(|| unusable("sends no list of tags"))?;
        let tags = tags.as_array().into_iter().flatten().filter_map(Value::as_str);
        versions.extend(tags.map(|tag| tag.replace('_', "+")));
        match next {
            None => return Ok(versions),
            Some(Some(next)) if next.is_beside(place) && next.whole() != url.whole() => url = next,
            Some(_) => return Err(unusable("refers to a next page of its tags that is not followed")),
        }
    }
    Err(unusable("has too many pages of tags"))
}

/// Requests to one registry, with its token.
struct RegistrySession<'a> {
    downloads: &'a Downloader<'a>,
    place: &'a Url,
    token: RefCell<Option<Sensitive<String>>>,
}

impl<'a> RegistrySession<'a> {
    fn new(downloads: &'a Downloader<'a>, place: &'a Url) -> Self {
        Self { downloads, place, token: RefCell::default() }
    }

    fn url(&self, path: &str) -> Result<Url, ChartError> {
        let url = self.place.at(&format!("{}{path}", self.place.path()));
        url.ok_or(ChartError::Url("is too long"))
    }

    fn get(&self, path: &str, accept: &str, limit: (u64, &'static str)) -> Result<Vec<u8>, ChartError> {
        accepted(self.send(&self.url(path)?, accept, false, limit)?)
    }

    /// Sends a request, with a token if the registry asks for one.
    fn send(
        &self,
        url: &Url,
        accept: &str,
        is_head: bool,
        limit: (u64, &'static str),
    ) -> Result<DownloadResponse, ChartError> {
        let ask = || {
            let token = self.token.borrow();
            let authorization = token.as_ref();
            self.downloads.send(DownloadRequest {
                url,
                is_head,
                accept,
                authorization,
                known: None,
                is_token: false,
                limit,
            })
        };
        let got = ask()?;
        if got.status != 401 || self.token.borrow().is_some() {
            return Ok(got);
        }
        let denied = || Error::Denied { server: self.place.server(), status: 401 };
        // Only the registry itself may name the server of its tokens.
        let asked = got.from.is_beside(self.place);
        let challenge = got.challenge.filter(|_| asked).ok_or_else(denied)?;
        *self.token.borrow_mut() = Some(match split(&challenge) {
            ("bearer", parameters) => self.token(parameters)?,
            ("basic", _) => self.downloads.login().cloned().ok_or_else(denied)?,
            _ => return Err(denied().into()),
        });
        let again = ask()?;
        if again.status == 401 {
            self.downloads.refused();
        }
        Ok(again)
    }

    /// Requests a token from the server that the registry names.
    fn token(&self, parameters: &str) -> Result<Sensitive<String>, ChartError> {
        let unusable = |problem| ChartError::Registry { server: self.place.server(), problem };
        let url = token_url(parameters, None);
        let url = url.ok_or_else(|| unusable("asks for a token and does not name its server"))?;
        let url = Url::parse(&url).ok_or_else(|| unusable("names no valid URL for tokens"))?;
        let limit = (MAX_TOKEN_BYTES, "bytes of a token");
        let token = token_in(&accepted(self.downloads.token(&url, limit)?)?);
        let token = token.ok_or_else(|| unusable("gives no token that can be used"))?;
        Ok(Sensitive::new(format!("Bearer {token}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_named_with_the_chart() {
        let shown = |url: &str| place(url).map(|url| url.whole());
        assert_eq!(shown("oci://host/a/web").as_deref(), Some("https://host/v2/a/web"));
        assert_eq!(shown("OCI://Host:5000/web/").as_deref(), Some("https://host:5000/v2/web"));
        for wrong in [
            "oci://host",
            "oci://host/",
            "https://host/web",
            "oci://me:planted@host/web",
            "oci://host/../web",
            "oci://host/a//web",
            "oci://host/Web",
            "oci://host/web:1",
            "oci://host/web?x",
        ] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}
