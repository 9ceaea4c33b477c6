//! Downloads files from servers: bounded, with a deadline, and without sending a login to another
//! server.
//!
//! In: a URL.
//! Out: the whole body of the response, or a [`ChartError`]. Redirects are followed a few times,
//! never from https to http. A host other than the configured one gets no login, and must have a
//! public address.

use std::io::Read as _;
use std::time::Instant;

use super::super::credentials::{Credentials, Sensitive};
use super::super::error::Error;
use super::super::http::{HttpClient, HttpResponse, SharedNetwork};
use super::super::http_failure::fault;
use super::error::ChartError;
use super::url::Url;
use crate::pkt_line::ProtocolError;
use crate::resolver::AddressScope;

/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: usize = 4;

/// Requests to the configured server, and to servers that it refers to.
pub(super) struct Downloader<'a> {
    network: &'a SharedNetwork,
    credentials: &'a Credentials,
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
}

impl<'a> Downloader<'a> {
    pub(super) fn new(
        network: &'a SharedNetwork,
        credentials: &'a Credentials,
        named: &Url,
        by: Instant,
    ) -> Result<Self, ChartError> {
        let authorization = credentials.authorization();
        if authorization.is_some() && !named.is_tls() {
            let why = "begins with http://, which would expose the login on the network; write https://";
            return Err(ChartError::Url(why));
        }
        Ok(Self { network, credentials, authorization, named: named.clone(), by })
    }

    /// Returns the login for the configured server.
    pub(super) fn login(&self) -> Option<&Sensitive<String>> {
        self.authorization.as_ref()
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
        (limit, what): (u64, &'static str),
    ) -> Result<DownloadResponse, ChartError> {
        let mut url = url.clone();
        if self.named.is_tls() && !url.is_tls() {
            return Err(downgrade(&self.named));
        }
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.ask(&url, accept, authorization)?;
            if matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
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
            let body = if status == 200 { read(&url, answer, limit, what)? } else { Vec::new() };
            return Ok(DownloadResponse { status, challenge, body, from: url });
        }
        Err(ChartError::Redirect { server: url.server(), problem: "again and again" })
    }

    fn ask(
        &self,
        url: &Url,
        accept: &str,
        authorization: Option<&Sensitive<String>>,
    ) -> Result<HttpResponse, ChartError> {
        let is_named = url.host() == self.named.host();
        let reach = if is_named { AddressScope::Anywhere } else { AddressScope::Public };
        let strange =
            Credentials { authorities: self.credentials.authorities.clone(), ..Credentials::default() };
        let is_same = url.is_beside(&self.named);
        let credentials = if is_same { self.credentials } else { &strange };
        let client = HttpClient::reaching(reach, url.host(), credentials, self.network)?;
        let authorization = authorization.filter(|_| is_same);
        Ok(client.file((&url.whole(), &url.server()), accept, authorization, self.by)?)
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
