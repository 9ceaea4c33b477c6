//! Client of one repository in a registry.
//!
//! In: an address, credentials and the network of the daemon.
//! Out: digests, manifests, lists of tags and layers. A look at a tag is one HEAD. A challenge is
//! answered once for each request, and its token kept for the next ones. The login goes to the
//! registry, and to the server of tokens that the registry itself names over TLS; it follows no
//! redirect. Mirrors of the registry are asked first, without the login. Everything is bounded
//! before it is read.

use std::io::{Read as _, Write};
use std::sync::Arc;
use std::time::Instant;

use http::Method;
use sha2::{Digest as _, Sha256};

use super::super::chart::{Digest, url::Url};
use super::super::credentials::{Credentials, HttpLogin, Sensitive};
use super::super::error::Error;
use super::super::http::{HttpClient, SharedNetwork};
use super::super::http_failure::fault;
use super::super::http_response::HttpResponse;
use super::super::remote::heard;
use super::artifact_error::ArtifactError;
use super::manifest::MANIFESTS;
use super::registry_address::RegistryAddress;
use super::registry_answer::{of_registry, read_bounded};
use super::token_request::answer_challenge;
use crate::pkt_line::ProtocolError;
use crate::registry_mirrors::deadline;
use crate::resolver::AddressScope;
use crate::worker_pool::ContactResult;

/// Maximum number of bytes of a manifest, as registries have it.
const MAX_MANIFEST_BYTES: u64 = 4 * 1024 * 1024;

/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: usize = 4;

/// Client of one repository.
#[derive(Debug)]
pub(crate) struct RegistryClient {
    address: RegistryAddress,
    network: Arc<SharedNetwork>,
    pub(super) credentials: Credentials,
    pub(super) own: HttpClient,
    /// Clients of its mirrors, without its login, in the order in which they are asked.
    mirrors: Vec<Self>,
    /// Login of a cloud that was used last.
    pub(super) cloud_login: Option<Arc<HttpLogin>>,
    /// Header that the registry accepted last.
    authorization: Option<Sensitive<String>>,
    heard: ContactResult,
}

/// A request to the registry.
pub(super) struct RegistryRequest<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    /// Media type to accept, or that of the body.
    pub(super) media: &'a str,
    pub(super) body: Option<&'a [u8]>,
}

/// A response that is no redirect.
pub(super) struct RegistryResponse {
    pub(super) http: HttpResponse,
    /// URL that finally answered.
    pub(super) from: Url,
}

impl RegistryClient {
    pub(crate) fn new(
        address: &RegistryAddress,
        credentials: &Credentials,
        network: &Arc<SharedNetwork>,
    ) -> Result<Self, Error> {
        let authorities = credentials.authorities.clone();
        let nobody = Credentials { authorities, ..Credentials::default() };
        let mirrors = network.mirrors().of(address).into_iter();
        let mirrors =
            mirrors.map(|mirror| Self::of_server(&mirror, &nobody, network)).collect::<Result<_, _>>()?;
        Ok(Self { mirrors, ..Self::of_server(address, credentials, network)? })
    }

    fn of_server(
        address: &RegistryAddress,
        credentials: &Credentials,
        network: &Arc<SharedNetwork>,
    ) -> Result<Self, Error> {
        Ok(Self {
            own: HttpClient::new(address.host(), credentials, network)?,
            address: address.clone(),
            network: network.clone(),
            credentials: credentials.clone(),
            mirrors: Vec::new(),
            cloud_login: None,
            authorization: None,
            heard: ContactResult::Nothing,
        })
    }

    /// Returns the answer of the first mirror that has one. A mirror that fails in any way, also
    /// by other content than was asked for, is passed over.
    pub(super) fn of_mirrors<T>(
        &mut self,
        by: Instant,
        mut ask: impl FnMut(&mut Self, Instant) -> Result<T, Error>,
    ) -> Option<T> {
        self.mirrors.iter_mut().find_map(|mirror| match ask(mirror, deadline(by)) {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::debug!(mirror = mirror.address.server(), %error, "a mirror is passed over");
                None
            }
        })
    }

    /// Takes the result of the last contact.
    pub(super) fn take_heard(&mut self) -> ContactResult {
        std::mem::replace(&mut self.heard, ContactResult::Nothing)
    }

    /// Returns the digest of the manifest that a tag has now, by one HEAD.
    pub(super) fn digest_of(&mut self, tag: &str, by: Instant) -> Result<Digest, Error> {
        if let Some(digest) = self.of_mirrors(by, |mirror, by| mirror.digest_of(tag, by)) {
            return Ok(digest);
        }
        let path = format!("/manifests/{tag}");
        let answer = self.ask(Method::HEAD, &path, MANIFESTS, by)?;
        match answer.http.status {
            200 => {}
            // Some registries answer a GET only.
            405 => return self.get_digest(tag, by),
            _ => return Err(self.failure(&answer, &format!("tag {tag}"))),
        }
        match answer.http.content_digest.as_deref() {
            None => self.get_digest(tag, by),
            Some(text) => {
                let digest = text.starts_with("sha256:").then(|| Digest::parse(text)).flatten();
                digest.ok_or_else(|| self.unusable("announces a digest that is no SHA-256"))
            }
        }
    }

    /// Returns the digest of the manifest that a tag has now, by its content.
    fn get_digest(&mut self, tag: &str, by: Instant) -> Result<Digest, Error> {
        let answer = self.ask(Method::GET, &format!("/manifests/{tag}"), MANIFESTS, by)?;
        let bytes = self.body(answer, &format!("tag {tag}"), MAX_MANIFEST_BYTES, "bytes of a manifest")?;
        Ok(Digest::hash(&bytes))
    }

    /// Returns the manifest with a digest.
    pub(super) fn manifest(&mut self, digest: Digest, by: Instant) -> Result<Vec<u8>, Error> {
        if let Some(manifest) = self.of_mirrors(by, |mirror, by| mirror.manifest(digest, by)) {
            return Ok(manifest);
        }
        let answer = self.ask(Method::GET, &format!("/manifests/{digest}"), MANIFESTS, by)?;
        let reference = format!("artifact {digest}");
        let bytes = self.body(answer, &reference, MAX_MANIFEST_BYTES, "bytes of a manifest")?;
        self.check_digest("a manifest", Digest::hash(&bytes), digest)?;
        Ok(bytes)
    }

    /// Writes a blob of a known size from this server, and checks its size and digest.
    pub(super) fn blob(
        &mut self,
        (digest, size): (Digest, u64),
        output: &mut dyn Write,
        by: Instant,
    ) -> Result<(), Error> {
        let answer = self.ask(Method::GET, &format!("/blobs/{digest}"), "*/*", by)?;
        if answer.http.status != 200 {
            return Err(self.failure(&answer, &format!("layer {digest}")));
        }
        let server: Box<str> = answer.from.server();
        let mut input = answer.http.body.take(size.saturating_add(1));
        let (mut hash, mut read, mut buffer) = (Sha256::new(), 0, [0; 64 * 1024]);
        loop {
            let found = input.read(&mut buffer);
            let found =
                found.map_err(|error| fault(&server, "bytes of a layer", ProtocolError::Input(error)));
            let found = found.map_err(of_registry)?;
            if found == 0 {
                break;
            }
            read += found as u64;
            hash.update(&buffer[..found]);
            output
                .write_all(&buffer[..found])
                .map_err(|error| Error::Disk { what: "write a layer", cause: error.to_string().into() })?;
        }
        if read != size {
            let found = if read > size { "more bytes".to_owned() } else { format!("{read} bytes") };
            return Err(self.differs("a layer", found, format!("{size} bytes")));
        }
        self.check_digest("a layer", Digest::of_hash(hash.finalize().into()), digest)
    }

    /// Sends a GET or HEAD below the repository.
    pub(super) fn ask(
        &mut self,
        method: Method,
        path: &str,
        media: &str,
        by: Instant,
    ) -> Result<RegistryResponse, Error> {
        let url = self.url(path)?;
        self.exchange(&RegistryRequest { method, url, media, body: None }, by)
    }

    /// Sends a request, and answers one challenge.
    pub(super) fn exchange(
        &mut self,
        request: &RegistryRequest<'_>,
        by: Instant,
    ) -> Result<RegistryResponse, Error> {
        let answer = self.authorised(request, by).map_err(of_registry);
        self.heard = heard(answer.as_ref().err());
        answer
    }

    fn authorised(&mut self, request: &RegistryRequest<'_>, by: Instant) -> Result<RegistryResponse, Error> {
        if let Some(cloud) = &self.credentials.cloud {
            let login = cloud.login(by)?;
            if self.cloud_login.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &login)) {
                (self.cloud_login, self.authorization) = (Some(login), None);
            }
        }
        let answer = self.follow(request, by)?;
        if answer.http.status != 401 {
            return Ok(answer);
        }
        // Only the registry itself may name the server of its tokens.
        let is_own = self.is_own(&answer.from);
        let challenge = answer.http.challenge.filter(|_| is_own).ok_or_else(|| self.denied())?;
        self.authorization = Some(answer_challenge(self, &challenge, by)?);
        let again = self.follow(request, by)?;
        match again.http.status {
            401 => {
                self.authorization = None;
                self.credentials.cloud.as_ref().map(|cloud| cloud.refused());
                Err(self.denied())
            }
            _ => Ok(again),
        }
    }

    /// Follows redirects and returns the final response.
    fn follow(&self, request: &RegistryRequest<'_>, by: Instant) -> Result<RegistryResponse, Error> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let http = self.send(request, &url, by)?;
            if !matches!(http.status, 301 | 302 | 303 | 307 | 308) || request.body.is_some() {
                return Ok(RegistryResponse { http, from: url });
            }
            let target = http.location.as_deref().and_then(|location| url.resolve(location));
            let target = target.ok_or_else(|| self.unusable("redirects to an invalid URL"))?;
            if url.is_tls() && !target.is_tls() {
                return Err(self.unusable("redirects from https to http, which is not followed"));
            }
            url = target;
        }
        Err(self.unusable("redirects again and again"))
    }

    /// Sends one request; another server gets no login, and must be a public or listed one.
    fn send(&self, request: &RegistryRequest<'_>, url: &Url, by: Instant) -> Result<HttpResponse, Error> {
        let (whole, server) = (url.whole(), url.server());
        let to = (request.method.clone(), &*whole, &*server);
        if self.is_own(url) {
            let login = self.authorization.as_ref();
            return match request.body {
                Some(body) => self.own.upload(to, (request.media, body), login, by),
                None => self.own.ask(to, request.media, login, by),
            };
        }
        if request.body.is_some() {
            return Err(self.unusable("takes an upload on another server, which is not followed"));
        }
        self.stranger(url)?.ask(to, request.media, None, by)
    }

    pub(super) fn is_own(&self, url: &Url) -> bool {
        *url.server() == self.address.server()
    }

    /// Returns a client of a server that the registry names.
    pub(super) fn stranger(&self, url: &Url) -> Result<HttpClient, Error> {
        let authorities = self.credentials.authorities.clone();
        let credentials = Credentials { authorities, ..Credentials::default() };
        // The host of the registry is a choice of a person, with any port.
        let reach = match url.host() == self.address.host() {
            true => AddressScope::Anywhere,
            false => AddressScope::PublicOrListed,
        };
        HttpClient::reaching(reach, url.host(), &credentials, &self.network)
    }

    /// Returns the URL of an endpoint below the repository.
    pub(super) fn url(&self, path: &str) -> Result<Url, Error> {
        Url::parse(&self.address.endpoint(path)).ok_or_else(|| self.unusable("has a URL that is too long"))
    }

    /// Returns the body of a response, or an error for a status other than 200.
    pub(super) fn body(
        &self,
        answer: RegistryResponse,
        reference: &str,
        limit: u64,
        what: &'static str,
    ) -> Result<Vec<u8>, Error> {
        match answer.http.status {
            200 => read_bounded(answer.http.body, &answer.from.server(), limit, what),
            _ => Err(self.failure(&answer, reference)),
        }
    }

    /// Returns the error for a response.
    pub(super) fn failure(&self, answer: &RegistryResponse, reference: &str) -> Error {
        let server = answer.from.server();
        match answer.http.status {
            status @ (401 | 403 | 407) => Error::Denied { server, status },
            404 | 410 => {
                let repository = self.address.repository().into();
                ArtifactError::Missing { server, repository, reference: reference.into() }.into()
            }
            status => Error::Status { server, status },
        }
    }

    /// Returns the address of the repository.
    pub(super) fn address(&self) -> &RegistryAddress {
        &self.address
    }

    pub(super) fn denied(&self) -> Error {
        Error::Denied { server: self.address.server().into(), status: 401 }
    }

    pub(super) fn unusable(&self, problem: &'static str) -> Error {
        ArtifactError::Registry { server: self.address.server().into(), problem: problem.into() }.into()
    }

    fn check_digest(&self, what: &'static str, found: Digest, wanted: Digest) -> Result<(), Error> {
        match found == wanted {
            true => Ok(()),
            false => Err(self.differs(what, format!("the digest {found}"), wanted.to_string())),
        }
    }

    fn differs(&self, what: &'static str, found: String, wanted: String) -> Error {
        let server = self.address.server().into();
        ArtifactError::Differs { server, what, found: found.into(), wanted: wanted.into() }.into()
    }
}
