//! One remote repository: its refs, and the objects of a commit, over a transport.
//!
//! In: an address with credentials, and the wanted objects.
//! Out: refs and packs. The first request asks for the capabilities of the server; over http a
//! later listing is one POST for the wanted refs. After a failure the capabilities are requested
//! again, so that a server that was replaced under the same name is understood. Over http every
//! request is independent, capabilities stay valid and redirects stay with the host; over ssh
//! (`ssh_transport.rs`) an exchange is one connection with a beginning and an end. [`Remote`] only
//! knows that an exchange may have to be started.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Instant;

use super::address::HttpAddress;
use super::cloud::CloudLogin;
use super::credentials::{Credentials, Sensitive};
use super::error::Error;
use super::http::{HttpClient, SharedNetwork};
use super::http_failure::fault;
use super::http_response::HttpResponse;
use super::installation_token::TokenSource;
use super::revision::AdvertisedRef;
use crate::pkt_line::PktLineReader;
use crate::upload_pack;
use crate::upload_pack::{FetchRequest, FetchResult, ProtocolVersion, ServerCapabilities};
use crate::worker_pool::ContactResult;

/// A repository on a server.
#[derive(Debug)]
pub(super) struct Remote {
    transport: Box<dyn Transport>,
    /// Last known capabilities of the server.
    found: Option<ServerCapabilities>,
    /// Result of the last contact, until it is taken.
    heard: ContactResult,
}

impl Remote {
    pub(super) fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), found: None, heard: ContactResult::Nothing }
    }

    /// Takes the result of the last contact with the server.
    pub(super) fn heard(&mut self) -> ContactResult {
        std::mem::take(&mut self.heard)
    }

    /// Returns the refs with one of `prefixes`.
    pub(super) fn list(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<AdvertisedRef>, Error> {
        let listed = self.listed(prefixes, by);
        self.heard = heard(listed.as_ref().err());
        self.transport.end();
        listed
    }

    fn listed(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<AdvertisedRef>, Error> {
        if self.transport.is_ready() && self.found.is_some_and(|found| found.version == ProtocolVersion::Two)
        {
            match self.refs(prefixes, by) {
                Ok(refs) => return Ok(refs),
                // These errors do not depend on the capabilities.
                Err(
                    error @ (Error::Timeout { .. }
                    | Error::Unreachable { .. }
                    | Error::Denied { .. }
                    | Error::NoToken { .. }
                    | Error::NoIdentity { .. }),
                ) => return Err(error),
                Err(_) => self.found = None,
            }
        }
        let (greeting, refs) = self.transport.greet(by)?;
        let refs = match greeting.version {
            ProtocolVersion::Two => self.refs(prefixes, by)?,
            ProtocolVersion::One => refs
                .into_iter()
                .filter(|found| prefixes.iter().any(|prefix| found.name.starts_with(prefix.as_str())))
                .collect(),
        };
        self.found = Some(greeting);
        Ok(refs)
    }

    /// Fetches the objects of a commit; the pack is written to `pack`, at most `limit` bytes.
    pub(super) fn fetch(
        &mut self,
        wanted: &FetchRequest<'_>,
        pack: &mut dyn Write,
        limit: u64,
        by: Instant,
    ) -> Result<FetchResult, Error> {
        let fetched = self.fetched(wanted, pack, limit, by);
        self.heard = heard(fetched.as_ref().err());
        self.transport.end();
        if !matches!(fetched, Ok(_) | Err(Error::Timeout { .. } | Error::NoCommit { .. })) {
            self.found = None;
        }
        fetched
    }

    fn fetched(
        &mut self,
        wanted: &FetchRequest<'_>,
        pack: &mut dyn Write,
        limit: u64,
        by: Instant,
    ) -> Result<FetchResult, Error> {
        let greeting = match self.found.filter(|_| self.transport.is_ready()) {
            Some(greeting) => greeting,
            None => self.transport.greet(by)?.0,
        };
        self.found = Some(greeting);
        let server = self.transport.server();
        let mut packets = self.transport.ask(upload_pack::fetch_request(&greeting, wanted), limit, by)?;
        let received = upload_pack::objects(&mut packets, &greeting, wanted.depth.is_some(), pack);
        received.map_err(|error| match (fault(&server, "bytes of objects", error), wanted.commits) {
            (Error::NoCommit { .. }, [commit, ..]) => Error::NoCommit { commit: commit.to_string().into() },
            (error, _) => error,
        })
    }

    /// True if the server supports shallow fetches; false before the first contact.
    pub(super) fn cuts_history(&self) -> bool {
        self.found.is_some_and(|greeting| greeting.shallow)
    }

    fn refs(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<AdvertisedRef>, Error> {
        let server = self.transport.server();
        let mut packets = self.transport.ask(upload_pack::refs_request(prefixes), MAX_LISTING_BYTES, by)?;
        upload_pack::refs(&mut packets).map_err(|error| fault(&server, "bytes of refs", error))
    }
}

/// Classifies a result: any response, also an error, shows that the server is up.
pub(super) fn heard(failed: Option<&Error>) -> ContactResult {
    match failed {
        Some(Error::Timeout { .. } | Error::Unreachable { .. }) => ContactResult::Silence,
        Some(Error::NotAllowed { .. }) => ContactResult::Nothing,
        Some(_) | None => ContactResult::Answer,
    }
}

/// Maximum number of bytes of a listing of refs.
pub(super) const MAX_LISTING_BYTES: u64 = 64 * 1024 * 1024;

/// Pkt-lines of a response that is still arriving.
pub(super) type ResponseLines<'a> = PktLineReader<Box<dyn Read + 'a>>;

/// Transport to one repository on a server.
pub(super) trait Transport: fmt::Debug + Send {
    /// Name of the server in messages, without user and path.
    fn server(&self) -> String;

    /// True if a request can be sent; otherwise a greeting is needed first.
    fn is_ready(&self) -> bool;

    /// Starts an exchange: returns the capabilities, and the refs if the server sends them unasked.
    fn greet(&mut self, by: Instant) -> Result<(ServerCapabilities, Vec<AdvertisedRef>), Error>;

    /// Sends a request; the response may have at most `limit` bytes.
    fn ask(&mut self, request: Vec<u8>, limit: u64, by: Instant) -> Result<ResponseLines<'_>, Error>;

    /// Ends the exchange, after any result. It never takes long.
    fn end(&mut self);
}

/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: usize = 4;

const INFO_REFS: &str = "/info/refs";

/// Source of the `Authorization` header.
#[derive(Debug)]
pub(super) enum HttpAuthorization {
    /// The same value for all requests, or none.
    Fixed(Option<Sensitive<String>>),
    /// Tokens of a GitHub App.
    App(Arc<TokenSource>),
    /// Tokens of a cloud.
    Cloud(CloudLogin),
}

/// The status of a request without a valid login.
const UNAUTHORIZED: u16 = 401;

impl HttpAuthorization {
    /// Returns the login for the server of a repository.
    pub(super) fn new(
        address: &HttpAddress,
        credentials: &Credentials,
        network: &SharedNetwork,
    ) -> Result<Self, Error> {
        Ok(match (network.tokens().source(address, credentials, network)?, &credentials.cloud) {
            (Some(tokens), _) => Self::App(tokens),
            (None, Some(cloud)) => Self::Cloud(cloud.clone()),
            (None, None) => Self::Fixed(credentials.authorization()),
        })
    }

    /// Sends a request with the login. A token that is refused is exchanged once.
    pub(super) fn send(
        &self,
        by: Instant,
        request: impl Fn(Option<&Sensitive<String>>) -> Result<HttpResponse, Error>,
    ) -> Result<HttpResponse, Error> {
        let tokens = match self {
            Self::Fixed(value) => return request(value.as_ref()),
            Self::Cloud(login) => {
                let answer = request(Some(&login.login(by)?.authorization()))?;
                return match answer.status == UNAUTHORIZED && login.refused() {
                    true => request(Some(&login.login(by)?.authorization())),
                    false => Ok(answer),
                };
            }
            Self::App(tokens) => tokens,
        };
        let token = tokens.token(by)?;
        let answer = request(Some(&token.authorization))?;
        if answer.status != UNAUTHORIZED {
            return Ok(answer);
        }
        match tokens.instead_of(&token, by)? {
            Some(token) => request(Some(&token.authorization)),
            None => Ok(answer),
        }
    }
}

/// Transport to a repository over http(s).
#[derive(Debug)]
pub(super) struct HttpTransport {
    client: HttpClient,
    login: HttpAuthorization,
    written: HttpAddress,
    /// Final address after redirects.
    found: Option<HttpAddress>,
}

impl HttpTransport {
    pub(super) fn new(
        address: &HttpAddress,
        credentials: &Credentials,
        network: &SharedNetwork,
    ) -> Result<Self, Error> {
        let client = HttpClient::new(&address.host, credentials, network)?;
        let login = HttpAuthorization::new(address, credentials, network)?;
        Ok(Self { client, login, written: address.clone(), found: None })
    }
}

impl Transport for HttpTransport {
    fn server(&self) -> String {
        self.found.as_ref().unwrap_or(&self.written).server()
    }

    fn is_ready(&self) -> bool {
        self.found.is_some()
    }

    /// Requests the capabilities, following redirects.
    fn greet(&mut self, by: Instant) -> Result<(ServerCapabilities, Vec<AdvertisedRef>), Error> {
        self.found = None;
        let mut address = self.written.clone();
        for _ in 0..=MAX_REDIRECTS {
            let query = format!("{INFO_REFS}?service=git-upload-pack");
            let answer = self.login.send(by, |login| self.client.get(&address, &query, login, by))?;
            if (300..400).contains(&answer.status) {
                let refused = || Error::Redirect { server: address.server().into() };
                let location = answer.location.ok_or_else(refused)?;
                address = address.redirected(&location, INFO_REFS).ok_or_else(refused)?;
                continue;
            }
            let server = address.server();
            let answer = accepted(&address, answer)?;
            if !answer.content_type.starts_with("application/x-git-upload-pack-advertisement") {
                let what = "it sends something else than Git's listing (a web page, perhaps)";
                return Err(Error::InvalidResponse { server: server.into(), what });
            }
            let mut packets = PktLineReader::new(answer.body, MAX_LISTING_BYTES);
            let found = upload_pack::greeting(&mut packets);
            let found = found.map_err(|error| fault(&server, "bytes of refs", error))?;
            self.found = Some(address);
            return Ok(found);
        }
        Err(Error::Redirect { server: address.server().into() })
    }

    fn ask(&mut self, request: Vec<u8>, limit: u64, by: Instant) -> Result<ResponseLines<'_>, Error> {
        let address = self.found.as_ref().unwrap_or(&self.written);
        let answer = self.login.send(by, |login| self.client.post(address, &request, login, by))?;
        let answer = accepted(address, answer)?;
        if !answer.content_type.starts_with("application/x-git-upload-pack-result") {
            let what = "it sends something else than Git's answer (a web page, perhaps)";
            return Err(Error::InvalidResponse { server: address.server().into(), what });
        }
        Ok(PktLineReader::new(answer.body as Box<dyn Read>, limit))
    }

    fn end(&mut self) {}
}

/// Returns the response, if its status is 200.
fn accepted(address: &HttpAddress, answer: HttpResponse) -> Result<HttpResponse, Error> {
    let server: Box<str> = address.server().into();
    match answer.status {
        200 => Ok(answer),
        status @ (401 | 403 | 407) => Err(Error::Denied { server, status }),
        404 | 410 => Err(Error::NoRepository { server, path: address.path.clone() }),
        300..=399 => Err(Error::Redirect { server }),
        status => Err(Error::Status { server, status }),
    }
}
