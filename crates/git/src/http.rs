//! HTTPS client for one repository: each request has a deadline, on rustls.
//!
//! In: an address, credentials, a proxy.
//! Out: an [`HttpClient`]. A response has a status, a content type and a body that is read with
//! deadlines. A request runs on the calling thread and starts none, so a silent server blocks one
//! thread until the deadline and no more.

use std::io::Read;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http;
use ureq::tls::{Certificate, RootCerts};
use ureq::unversioned::transport::DefaultConnector;

use super::address::HttpAddress;
use super::cloud::Clouds;
use super::credentials::{Credentials, Sensitive};
use super::error::Error;
use super::file_request::FileRequest;
use super::hosts::{HostPolicy, HostRefused};
use super::http_failure::{failure, fault};
use super::http_response::HttpResponse;
use super::installation_token::TokenSources;
use super::named_pause::LimitHeaders;
use super::registry_mirrors::RegistryMirrors;
use crate::pkt_line::ProtocolError;
use crate::resolver::{AddressScope, SameThreadResolver, host_and_port};
use crate::tls::tls_config;
use moorline_identity::{ExchangeRequest, MAX_ANSWER_BYTES, Method};
use moorline_runtime::clock;

/// Timeout for a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum silence during a response. Git servers send a keep-alive every five seconds.
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of bytes of response headers.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Time for which an idle connection is kept for the next poll.
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// The `User-Agent` header.
const USER_AGENT: &str = concat!("moorline/", env!("CARGO_PKG_VERSION"));

/// The proxy between the daemon and the repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    proxy: Sensitive<ureq::Proxy>,
    direct: Vec<Box<str>>,
}

impl Proxy {
    /// Creates a proxy from its URL, such as `http://proxy:3128`; it may contain a user and a
    /// password. Hosts in `direct` are contacted without it: a name includes its subdomains, `*`
    /// means all.
    pub fn new(url: &str, direct: &[&str]) -> Result<Self, Error> {
        let refuse = |problem| Error::Setting { setting: "proxy", problem };
        if !url.starts_with("http://") {
            return Err(refuse("must be a URL such as http://proxy:3128"));
        }
        let proxy = ureq::Proxy::new(url).map_err(|_| refuse("is not a URL"))?;
        let direct = direct.iter().map(|host| host.trim().trim_start_matches("*.").trim_start_matches('.'));
        let direct = direct.filter(|host| !host.is_empty()).map(|host| host.to_ascii_lowercase().into());
        Ok(Self { proxy: Sensitive::new(proxy), direct: direct.collect() })
    }

    /// Returns the proxy, if it is used for `host`.
    fn before(&self, host: &str) -> Option<ureq::Proxy> {
        let is_direct = self.direct.iter().any(|direct| {
            let front = host.strip_suffix(&**direct);
            &**direct == "*" || front.is_some_and(|front| front.is_empty() || front.ends_with('.'))
        });
        (!is_direct).then(|| self.proxy.reveal().clone())
    }
}

/// State shared by all clients of a daemon.
#[derive(Debug)]
pub(super) struct SharedNetwork {
    proxy: Option<Proxy>,
    /// The host policy.
    hosts: HostPolicy,
    /// Certificate authorities of the system and public ones, read for the first client.
    system: OnceLock<RootCerts>,
    /// Tokens of GitHub Apps.
    tokens: TokenSources,
    mirrors: OnceLock<RegistryMirrors>,
    /// Credentials of clouds.
    clouds: Clouds,
}

impl SharedNetwork {
    pub(super) fn new(proxy: Option<Proxy>, hosts: HostPolicy) -> Self {
        Self {
            proxy,
            hosts,
            system: OnceLock::new(),
            tokens: TokenSources::default(),
            mirrors: OnceLock::new(),
            clouds: Clouds::default(),
        }
    }

    /// Sets the mirrors of registries; the first ones count.
    pub(super) fn set_mirrors(&self, mirrors: RegistryMirrors) {
        drop(self.mirrors.set(mirrors));
    }

    /// Returns the mirrors of registries.
    pub(super) fn mirrors(&self) -> &RegistryMirrors {
        self.mirrors.get_or_init(RegistryMirrors::default)
    }

    /// Returns the credentials of clouds.
    pub(super) fn clouds(&self) -> &Clouds {
        &self.clouds
    }

    /// Returns the tokens of GitHub Apps.
    pub(super) fn tokens(&self) -> &TokenSources {
        &self.tokens
    }

    /// Returns the host policy.
    pub(super) fn hosts(&self) -> &HostPolicy {
        &self.hosts
    }

    fn system(&self) -> &RootCerts {
        self.system.get_or_init(|| {
            // One broken certificate of the system must not disable the others.
            let system = rustls_native_certs::load_native_certs().certs;
            // An image without certificates still needs the public authorities; if `SSL_CERT_FILE`
            // is set, only that file counts.
            let public = match std::env::var_os("SSL_CERT_FILE") {
                Some(_) => &[],
                None => webpki_root_certs::TLS_SERVER_ROOT_CERTS,
            };
            system
                .iter()
                .chain(public)
                .map(|certificate| Certificate::from_der(certificate).to_owned())
                .into()
        })
    }

    /// Returns the system's authorities and those of a Secret.
    pub(super) fn roots(&self, own: Vec<Certificate<'static>>) -> RootCerts {
        match self.system() {
            RootCerts::Specific(system) if !own.is_empty() => system.iter().cloned().chain(own).into(),
            system => system.clone(),
        }
    }
}

/// Header that selects version 2 of Git's protocol.
const PROTOCOL: &str = "Git-Protocol";
const VERSION: &str = "version=2";

/// Header with the digest of a manifest.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// Client for one server with one set of credentials.
#[derive(Debug)]
pub(super) struct HttpClient {
    agent: Agent,
    /// With a proxy that resolves names: the policy for names.
    proxied: Option<(AddressScope, HostPolicy)>,
}

/// Response to an exchange for a token.
#[derive(Debug)]
pub(super) struct ExchangeResponse {
    pub(super) status: u16,
    /// The `Date` header.
    pub(super) date: Option<String>,
    pub(super) body: Sensitive<Vec<u8>>,
}

impl HttpClient {
    /// Creates a client for `host`.
    pub(super) fn new(host: &str, credentials: &Credentials, network: &SharedNetwork) -> Result<Self, Error> {
        Self::reaching(AddressScope::Anywhere, host, credentials, network)
    }

    /// Creates a client whose names must resolve to addresses within `reach`. With a proxy that
    /// resolves names, this check is up to the proxy.
    pub(super) fn reaching(
        reach: AddressScope,
        host: &str,
        credentials: &Credentials,
        network: &SharedNetwork,
    ) -> Result<Self, Error> {
        let proxy = network.proxy.as_ref().and_then(|proxy| proxy.before(host));
        let judge = (reach, network.hosts.clone());
        // With a proxy only the proxy itself is resolved here, and its address is the operator's
        // choice.
        let (proxied, resolver) = match proxy.is_some() {
            true => (Some(judge), SameThreadResolver(AddressScope::Anywhere, HostPolicy::allow_all())),
            false => (None, SameThreadResolver(judge.0, judge.1)),
        };
        let config = Agent::config_builder()
            .tls_config(tls_config(credentials.tls(), |own| network.roots(own))?)
            .proxy(proxy)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(MAX_HEADER_BYTES)
            .max_idle_connections(1)
            .max_idle_age(KEEP_ALIVE)
            .user_agent(USER_AGENT)
            .build();
        Ok(Self { agent: Agent::with_parts(config, DefaultConnector::default(), resolver), proxied })
    }

    /// Sends a GET to `address` at `endpoint` (with the query), for protocol version 2.
    pub(super) fn get(
        &self,
        address: &HttpAddress,
        endpoint: &str,
        authorization: Option<&Sensitive<String>>,
        by: Instant,
    ) -> Result<HttpResponse, Error> {
        let request = http::Request::get(format!("{address}{endpoint}")).header(PROTOCOL, VERSION);
        self.send(request.body(()), address.server(), authorization, by)
    }

    /// Sends a GET or a HEAD for a file by its whole URL.
    pub(super) fn file(
        &self,
        (url, server): (&str, &str),
        file: &FileRequest<'_>,
        by: Instant,
    ) -> Result<HttpResponse, Error> {
        self.send(file.request(url), server.to_owned(), file.authorization, by)
    }

    /// Sends a GET or HEAD to a whole URL.
    pub(super) fn ask(
        &self,
        (method, url, server): (http::Method, &str, &str),
        accept: &str,
        authorization: Option<&Sensitive<String>>,
        by: Instant,
    ) -> Result<HttpResponse, Error> {
        let request = http::Request::builder().method(method).uri(url);
        let request = request.header(http::header::ACCEPT, accept).body(());
        self.send(request, server.to_owned(), authorization, by)
    }

    /// Sends a POST or PUT with a body of a media type to a whole URL.
    pub(super) fn upload(
        &self,
        (method, url, server): (http::Method, &str, &str),
        (media, body): (&str, &[u8]),
        authorization: Option<&Sensitive<String>>,
        by: Instant,
    ) -> Result<HttpResponse, Error> {
        let request = http::Request::builder().method(method).uri(url);
        let request = request.header(http::header::CONTENT_TYPE, media).body(body);
        self.send(request, server.to_owned(), authorization, by)
    }

    /// Posts `body` to the upload-pack endpoint of `address`, for protocol version 2.
    pub(super) fn post(
        &self,
        address: &HttpAddress,
        body: &[u8],
        authorization: Option<&Sensitive<String>>,
        by: Instant,
    ) -> Result<HttpResponse, Error> {
        let request = http::Request::post(format!("{address}/git-upload-pack"))
            .header("Content-Type", "application/x-git-upload-pack-request")
            .header("Accept", "application/x-git-upload-pack-result")
            .header(PROTOCOL, VERSION)
            .body(body);
        self.send(request, address.server(), authorization, by)
    }

    /// Sends the request of an exchange, and reads the whole answer. No redirect is followed.
    pub(super) fn exchange(
        &self,
        exchange: &ExchangeRequest,
        server: String,
        by: Instant,
    ) -> Result<ExchangeResponse, Error> {
        let answer = self.begin_exchange(exchange, (&server, "no login can be sent"), by)?;
        let mut body = Vec::new();
        let read = answer.body.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut body);
        let what = "bytes of a token";
        read.map_err(|error| fault(&server, what, ProtocolError::Input(error)))?;
        match body.len() as u64 > MAX_ANSWER_BYTES {
            true => Err(Error::TooLarge { server: server.into(), what, limit: MAX_ANSWER_BYTES }),
            false => {
                Ok(ExchangeResponse { status: answer.status, date: answer.date, body: Sensitive::new(body) })
            }
        }
    }

    /// Sends the request of an exchange; `refusal` says that a header cannot be sent.
    pub(super) fn begin_exchange(
        &self,
        exchange: &ExchangeRequest,
        (server, refusal): (&str, &'static str),
        by: Instant,
    ) -> Result<HttpResponse, Error> {
        let mut request = match exchange.method {
            Method::Get => http::Request::get(&exchange.url),
            Method::Post => http::Request::post(&exchange.url),
            Method::Patch => http::Request::patch(&exchange.url),
            Method::Put => http::Request::put(&exchange.url),
        };
        for (name, value) in &exchange.headers {
            let value = http::HeaderValue::from_str(value.as_str());
            let bad = |_| Error::InvalidResponse { server: server.into(), what: refusal };
            let mut value = value.map_err(bad)?;
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        let body = exchange.body.as_str().as_bytes();
        match exchange.method {
            Method::Get => self.send(request.body(()), server.to_owned(), None, by),
            Method::Post | Method::Patch | Method::Put => {
                self.send(request.body(body), server.to_owned(), None, by)
            }
        }
    }

    /// Sends a request, and returns the head of the answer with a body that can be read.
    pub(super) fn send<B: ureq::AsSendBody>(
        &self,
        request: Result<http::Request<B>, http::Error>,
        server: String,
        authorization: Option<&Sensitive<String>>,
        by: Instant,
    ) -> Result<HttpResponse, Error> {
        let bad = |what| Error::InvalidResponse { server: server.as_str().into(), what };
        let mut request = request.map_err(|_| bad("its address cannot be asked for"))?;
        if let Some((reach, hosts)) = &self.proxied {
            let (host, port) = host_and_port(request.uri()).ok_or_else(|| bad("its address has no host"))?;
            let judged = hosts.named(host, port).and_then(|()| reach.of_literal(host));
            judged.map_err(|HostRefused(why)| Error::NotAllowed { server: server.as_str().into(), why })?;
        }
        let headers = request.headers_mut();
        if let Some(value) = authorization {
            let value = http::HeaderValue::from_str(value.reveal());
            let mut value = value.map_err(|_| bad("the login cannot be sent as a header"))?;
            value.set_sensitive(true);
            headers.insert(http::header::AUTHORIZATION, value);
        }
        let left = by.saturating_duration_since(clock::now());
        if left.is_zero() {
            return Err(Error::Timeout { server: server.as_str().into(), what: "answer" });
        }
        let request = self
            .agent
            .configure_request(request)
            .timeout_global(Some(left))
            .timeout_connect(Some(CONNECT_TIMEOUT.min(left)))
            .timeout_recv_response(Some(SILENCE_TIMEOUT.min(left)))
            .timeout_per_read(Some(SILENCE_TIMEOUT))
            .timeout_per_write(Some(SILENCE_TIMEOUT))
            .build();
        let answer = self.agent.run(request).map_err(|error| failure(&server, &error))?;
        let header =
            |name: http::HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
        Ok(HttpResponse {
            status: answer.status().as_u16(),
            location: header(http::header::LOCATION).map(str::to_owned),
            content_type: header(http::header::CONTENT_TYPE).unwrap_or_default().to_owned(),
            challenge: header(http::header::WWW_AUTHENTICATE).map(str::to_owned),
            date: header(http::header::DATE).map(str::to_owned),
            etag: header(http::header::ETAG).map(str::to_owned),
            modified: header(http::header::LAST_MODIFIED).map(str::to_owned),
            content_digest: header(http::HeaderName::from_static(CONTENT_DIGEST)).map(str::to_owned),
            limits: LimitHeaders::of(answer.headers()),
            link: header(http::header::LINK).map(str::to_owned),
            body: Box::new(answer.into_body().into_reader()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_stands_before_all_hosts_but_those_that_are_named() {
        let proxy =
            Proxy::new("http://user:planted@proxy:3128", &["inside.example", ".svc", "10.0.0.1"]).unwrap();
        let table = [
            ("outside.example", true),
            ("notinside.example", true),
            ("inside.example", false),
            ("git.inside.example", false),
            ("git.default.svc", false),
            ("10.0.0.1", false),
            ("10.0.0.11", true),
        ];
        for (host, expect) in table {
            assert_eq!(proxy.before(host).is_some(), expect, "{host}");
        }
        assert!(Proxy::new("http://proxy:3128", &["*"]).unwrap().before("any").is_none());
        assert!(Proxy::new("socks5://proxy", &[]).is_err() && Proxy::new("http://", &[]).is_err());
        assert!(!format!("{proxy:?}").contains("planted"));
    }
}
