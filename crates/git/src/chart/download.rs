//! Downloads files from servers: bounded, with a deadline, and without sending a login to another
//! server.
//!
//! In: a URL.
//! Out: the whole body of the response, or a [`ChartError`]. Redirects are followed a few times,
//! never from https to http. A host other than the configured one gets no login, except for the
//! server of tokens that a registry itself names, and must have a public
//! address or be listed.

use std::borrow::Cow;
use std::io::Read as _;
use std::time::Instant;

use super::super::credentials::{Credentials, Sensitive};
use super::super::error::Error;
use super::super::file_request::FileRequest;
use super::super::file_request::Validators;
use super::super::http::{HttpClient, SharedNetwork};
use super::super::http_failure::fault;
use super::super::http_response::HttpResponse;
use super::error::ChartError;
use super::url::Url;
use crate::pkt_line::ProtocolError;
use crate::registry_mirrors::{RegistryMirrors, deadline};
use crate::resolver::AddressScope;

/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: usize = 4;

/// Requests to the configured server, and to servers that it refers to.
pub(super) struct Downloader<'a> {
    network: &'a SharedNetwork,
    credentials: Cow<'a, Credentials>,
    /// The login, only for the server of `named`.
    authorization: Option<Sensitive<String>>,
    /// The configured URL.
    named: Url,
    by: Instant,
}

/// A response that is no redirect.
pub(super) struct DownloadResponse {
    pub(super) status: u16,
    pub(super) challenge: Option<String>,
    /// The body, if the status is 200.
    pub(super) body: Vec<u8>,
    /// URL that finally answered.
    pub(super) from: Url,
    /// Names the content, so that the next request can ask for other content only.
    pub(super) validators: Validators,
    /// Digest of a manifest, as a registry announces it.
    pub(super) content_digest: Option<String>,
    /// Link to the next page.
    pub(super) link: Option<String>,
}

/// Request for a file.
#[derive(Clone, Copy)]
pub(super) struct DownloadRequest<'a> {
    pub(super) url: &'a Url,
    /// Ask for the head of the response only.
    pub(super) is_head: bool,
    pub(super) accept: &'a str,
    pub(super) authorization: Option<&'a Sensitive<String>>,
    /// Content that is here already: if the server has no other, it answers 304.
    pub(super) known: Option<&'a Validators>,
    /// Send the authorization to the server of `url` also if it is another than the configured one,
    /// and follow no redirect.
    pub(super) is_token: bool,
    /// Maximum number of bytes of the body, and its name in messages.
    pub(super) limit: (u64, &'static str),
}

impl<'a> Downloader<'a> {
    pub(super) fn new(
        network: &'a SharedNetwork,
        credentials: &'a Credentials,
        named: &Url,
        by: Instant,
    ) -> Result<Self, ChartError> {
        let authorization = match &credentials.cloud {
            Some(cloud) => Some(cloud.login(by)?.authorization()),
            None => credentials.authorization(),
        };
        if authorization.is_some() && !named.is_tls() {
            let why = "begins with http://, which would expose the login on the network; write https://";
            return Err(ChartError::Url(why));
        }
        Ok(Self { network, credentials: Cow::Borrowed(credentials), authorization, named: named.clone(), by })
    }

    /// Returns requests to a mirror, without the login.
    pub(super) fn on_mirror(&self, mirror: &Url) -> Self {
        let authorities = self.credentials.authorities.clone();
        Self {
            network: self.network,
            credentials: Cow::Owned(Credentials { authorities, ..Credentials::default() }),
            authorization: None,
            named: mirror.clone(),
            by: deadline(self.by),
        }
    }

    /// Returns the mirrors of registries.
    pub(super) fn mirrors(&self) -> &RegistryMirrors {
        self.network.mirrors()
    }

    /// Returns the login for the configured server.
    pub(super) fn login(&self) -> Option<&Sensitive<String>> {
        self.authorization.as_ref()
    }

    /// Notes that the server refused a login of a cloud, so that the next one is another.
    pub(super) fn refused(&self) {
        self.credentials.cloud.as_ref().map(|cloud| cloud.refused());
    }

    /// Downloads a whole file, with the login.
    pub(super) fn whole(&self, url: &Url, limit: u64, what: &'static str) -> Result<Vec<u8>, ChartError> {
        accepted(self.get(url, "*/*", self.login(), (limit, what))?)
    }

    /// Follows redirects and returns the final response. `authorization` is sent to the configured
    /// server only.
    pub(super) fn get(
        &self,
        url: &Url,
        accept: &str,
        authorization: Option<&Sensitive<String>>,
        limit: (u64, &'static str),
    ) -> Result<DownloadResponse, ChartError> {
        self.send(DownloadRequest {
            url,
            is_head: false,
            accept,
            authorization,
            known: None,
            is_token: false,
            limit,
        })
    }

    /// Requests a token from the server that a registry names, with the login. No redirect is
    /// followed: it could lead the login elsewhere.
    pub(super) fn token(
        &self,
        url: &Url,
        limit: (u64, &'static str),
    ) -> Result<DownloadResponse, ChartError> {
        let (authorization, accept) = (self.login(), "application/json");
        self.send(DownloadRequest {
            url,
            is_head: false,
            accept,
            authorization,
            known: None,
            is_token: true,
            limit,
        })
    }

    /// As [`Self::get`], for any request.
    pub(super) fn send(&self, request: DownloadRequest<'_>) -> Result<DownloadResponse, ChartError> {
        let mut url = request.url.clone();
        if self.named.is_tls() && !url.is_tls() {
            return Err(downgrade(&self.named));
        }
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.ask(&url, request)?;
            if matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
                if request.is_token {
                    return Err(ChartError::Redirect {
                        server: url.server(),
                        problem: "the request for a token",
                    });
                }
                let target = answer.location.and_then(|location| url.resolve(&location));
                let nowhere = || ChartError::Redirect { server: url.server(), problem: "to an invalid URL" };
                let target = target.ok_or_else(nowhere)?;
                if url.is_tls() && !target.is_tls() {
                    return Err(downgrade(&url));
                }
                url = target;
                continue;
            }
            let (status, challenge) = (answer.status, answer.challenge.clone());
            let validators = Validators { etag: answer.etag.clone(), modified: answer.modified.clone() };
            let (content_digest, link) = (answer.content_digest.clone(), answer.link.clone());
            let (limit, what) = request.limit;
            let has_body = status == 200 && !request.is_head;
            let body = if has_body { read(&url, answer, limit, what)? } else { Vec::new() };
            return Ok(DownloadResponse {
                status,
                challenge,
                body,
                from: url,
                validators,
                content_digest,
                link,
            });
        }
        Err(ChartError::Redirect { server: url.server(), problem: "again and again" })
    }

    fn ask(&self, url: &Url, request: DownloadRequest<'_>) -> Result<HttpResponse, ChartError> {
        let is_named = url.host() == self.named.host();
        let reach = if is_named { AddressScope::Anywhere } else { AddressScope::PublicOrListed };
        let strange =
            Credentials { authorities: self.credentials.authorities.clone(), ..Credentials::default() };
        let is_same = url.is_beside(&self.named);
        let credentials = if is_same { &*self.credentials } else { &strange };
        let client = HttpClient::reaching(reach, url.host(), credentials, self.network)?;
        let file = FileRequest {
            is_head: request.is_head,
            accept: request.accept,
            authorization: request.authorization.filter(|_| is_same || request.is_token),
            known: request.known,
        };
        Ok(client.file((&url.whole(), &url.server()), &file, self.by)?)
    }
}

fn downgrade(from: &Url) -> ChartError {
    ChartError::Redirect { server: from.server(), problem: "from https to http" }
}

/// Returns the body, or an error for another status.
pub(super) fn accepted(got: DownloadResponse) -> Result<Vec<u8>, ChartError> {
    let server = got.from.server();
    match got.status {
        200 => Ok(got.body),
        status @ (401 | 403 | 407) => Err(Error::Denied { server, status }.into()),
        404 | 410 => Err(ChartError::Missing { server, path: got.from.path().into() }),
        status => Err(Error::Status { server, status }.into()),
    }
}

fn read(url: &Url, answer: HttpResponse, limit: u64, what: &'static str) -> Result<Vec<u8>, ChartError> {
    let server = url.server();
    let mut body = Vec::new();
    let read = answer.body.take(limit + 1).read_to_end(&mut body);
    read.map_err(|error| fault(&server, what, ProtocolError::Input(error)))?;
    match body.len() as u64 > limit {
        true => Err(Error::TooLarge { server, what, limit }.into()),
        false => Ok(body),
    }
}
