//! Client of the server that has the files of a repository, and of those that it names.
//!
//! In: the address and login of the repository; pointers. Out: places of files, and downloads whose
//! bodies are still to be read and verified.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Instant;

use ureq::http::{self, HeaderMap};

use super::super::address::{Address, HttpAddress, Kind};
use super::super::credentials::{Credentials, Sensitive};
use super::super::error::Error;
use super::super::http::{HttpClient, SharedNetwork};
use super::super::http_failure::fault;
use super::super::http_response::HttpResponse;
use super::super::remote::HttpAuthorization;
use super::batch::{self, Download, MEDIA_TYPE};
use super::error::LfsProblem;
use super::ticket;
use crate::chart::url::Url;
use crate::pkt_line::ProtocolError;
use crate::resolver::AddressScope;
use moorline_core::tree::LfsPointer;

/// Maximum number of bytes of an answer of the batch API.
const MAX_ANSWER_BYTES: u64 = 1024 * 1024;

/// Maximum number of consecutive redirects of a download.
const MAX_REDIRECTS: usize = 4;

/// The batch API, behind the URL of Git LFS.
const BATCH: &str = "/objects/batch";

/// Client for one fetch.
pub(super) struct LfsClient<'a> {
    credentials: &'a Credentials,
    network: &'a SharedNetwork,
    /// Host of the repository.
    host: Box<str>,
    /// URL of the batch API.
    endpoint: Url,
    /// Headers for it, which the server of the repository gave over ssh.
    headers: HeaderMap,
    /// Login for the server of the endpoint.
    login: Option<HttpAuthorization>,
    own: HttpClient,
    /// Clients of other servers, by scheme, host and port.
    others: BTreeMap<Box<str>, HttpClient>,
    by: Instant,
}

impl<'a> LfsClient<'a> {
    /// Creates the client for a repository. One over ssh is asked for the URL first.
    pub(super) fn new(
        address: &Address,
        credentials: &'a Credentials,
        network: &'a SharedNetwork,
        by: Instant,
    ) -> Result<Self, LfsProblem> {
        let host: Box<str> = address.host().unwrap_or_default().into();
        let (endpoint, headers, login, own) = match address.kind() {
            Kind::Http(address) => {
                let login = HttpAuthorization::new(address, credentials, network)?;
                let own = HttpClient::new(&address.host, credentials, network)?;
                (lfs_url(address), HeaderMap::new(), Some(login), own)
            }
            Kind::Ssh(address) => {
                let (url, headers) = ticket::ask(address, credentials, network.hosts(), by)?;
                let own = stranger(&url, &host, credentials, network)?;
                (url.whole(), headers, None, own)
            }
            Kind::Local(_) | Kind::Registry(_) => return Err(Error::Stopped.into()),
        };
        let endpoint = Url::parse(&format!("{}{BATCH}", endpoint.trim_end_matches('/')));
        let endpoint = endpoint.ok_or(Error::Stopped)?;
        Ok(Self { credentials, network, host, endpoint, headers, login, own, others: BTreeMap::new(), by })
    }

    /// Returns the name of the server in messages.
    pub(super) fn server(&self) -> Box<str> {
        self.endpoint.server()
    }

    /// Asks the server for the places of files.
    pub(super) fn places(
        &self,
        wanted: &[&LfsPointer],
    ) -> Result<BTreeMap<Box<str>, Result<Download, LfsProblem>>, LfsProblem> {
        let (server, body) = (self.server(), batch::request(wanted));
        let answer = self.with_login(|login| {
            let request = http::Request::post(self.endpoint.whole())
                .header(http::header::CONTENT_TYPE, MEDIA_TYPE)
                .header(http::header::ACCEPT, MEDIA_TYPE)
                .body(&*body);
            let request = request.map(|mut request| {
                request.headers_mut().extend(self.headers.clone());
                request
            });
            self.own.send(request, server.to_string(), login, self.by)
        })?;
        match answer.status {
            200 => {}
            status @ (401 | 403 | 407) => return Err(Error::Denied { server, status }.into()),
            status @ (404 | 405 | 410 | 501) => return Err(LfsProblem::NoLfs { server, status }),
            300..=399 => return Err(Error::Redirect { server }.into()),
            status => return Err(Error::Status { server, status }.into()),
        }
        let what = "bytes of places of files";
        let mut read = Vec::new();
        let result = answer.body.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut read);
        result.map_err(|error| fault(&server, what, ProtocolError::Input(error)))?;
        if read.len() as u64 > MAX_ANSWER_BYTES {
            return Err(Error::TooLarge { server, what, limit: MAX_ANSWER_BYTES }.into());
        }
        batch::answer(&server, &read)
    }

    /// Requests a file; returns the answer, and the server that gave it.
    pub(super) fn download(&mut self, place: Download) -> Result<(HttpResponse, Box<str>), LfsProblem> {
        let Download { mut url, headers, is_authenticated } = place;
        let mut given = Some((headers, is_authenticated));
        for _ in 0..=MAX_REDIRECTS {
            if self.endpoint.is_tls() && !url.is_tls() {
                let problem = "leads from https to http for it, which is not followed";
                return Err(LfsProblem::Invalid { server: self.server(), problem });
            }
            // Nothing that belongs to the first request is sent with another one.
            let answer = self.get(&url, given.take())?;
            let server = url.server();
            match answer.status {
                200 => return Ok((answer, server)),
                301 | 302 | 303 | 307 | 308 => {
                    let target = answer.location.as_deref().and_then(|location| url.resolve(location));
                    url = target.ok_or(Error::Redirect { server })?;
                }
                status @ (401 | 403 | 407) => return Err(Error::Denied { server, status }.into()),
                404 | 410 => return Err(LfsProblem::Missing { server }),
                status => return Err(Error::Status { server, status }.into()),
            }
        }
        Err(LfsProblem::Invalid { server: url.server(), problem: "redirects again and again" })
    }

    /// Sends a GET with the headers of an answer, and with the login if the server of the
    /// repository needs it.
    fn get(&mut self, url: &Url, given: Option<(HeaderMap, bool)>) -> Result<HttpResponse, Error> {
        let server = url.server();
        let is_own = url.is_beside(&self.endpoint);
        if !is_own && !self.others.contains_key(&server) {
            let client = stranger(url, &self.host, self.credentials, self.network)?;
            self.others.insert(server.clone(), client);
        }
        let client = self.others.get(&server).filter(|_| !is_own).unwrap_or(&self.own);
        let needs_login = is_own && given.as_ref().is_some_and(|(_, is_authenticated)| !is_authenticated);
        let headers = given.map(|(headers, _)| headers).unwrap_or_default();
        let send = |login: Option<&Sensitive<String>>| {
            let request = http::Request::get(url.whole()).body(()).map(|mut request| {
                request.headers_mut().extend(headers.clone());
                request
            });
            client.send(request, server.to_string(), login, self.by)
        };
        if needs_login { self.with_login(send) } else { send(None) }
    }

    fn with_login(
        &self,
        send: impl Fn(Option<&Sensitive<String>>) -> Result<HttpResponse, Error>,
    ) -> Result<HttpResponse, Error> {
        match &self.login {
            Some(login) => login.send(self.by, send),
            None => send(None),
        }
    }
}

/// Returns the URL of Git LFS of a repository, as `git lfs` makes it.
fn lfs_url(address: &HttpAddress) -> String {
    let git = if address.path.ends_with(".git") { "" } else { ".git" };
    format!("{address}{git}/info/lfs")
}

/// Creates the client of a server that another one names. It gets no login and no certificate of
/// ours.
fn stranger(
    url: &Url,
    host: &str,
    credentials: &Credentials,
    network: &SharedNetwork,
) -> Result<HttpClient, Error> {
    let reach = if url.host() == host { AddressScope::Anywhere } else { AddressScope::PublicOrListed };
    let authorities = credentials.authorities.clone();
    HttpClient::reaching(reach, url.host(), &Credentials { authorities, ..Credentials::default() }, network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_the_one_that_git_lfs_uses() {
        let table = [
            ("https://host/group/shop", "https://host/group/shop.git/info/lfs"),
            ("https://host/group/shop.git/", "https://host/group/shop.git/info/lfs"),
            ("http://host:8080/a.b", "http://host:8080/a.b.git/info/lfs"),
        ];
        for (text, expect) in table {
            let address = Address::remote(text).unwrap();
            let Kind::Http(address) = address.kind() else { panic!("{text}") };
            assert_eq!(lfs_url(address), expect);
        }
    }
}
