//! Connects to another cluster than that of the environment.
//!
//! In: the address and the credentials, as values; and a check of addresses.
//! Out: a connection that reads no file, runs no program and uses no proxy. Each host name is
//! resolved by the check, and only the checked addresses are connected to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderName, HeaderValue, Uri, header};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::config::AuthInfo;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::Cluster;
use crate::api_client::ApiClient;
use crate::connect::{CONNECT, ConnectError, Connection};
use crate::outage_log::OutageLog;
use crate::rate_limit::{Limits, RateLimit};
use crate::rewind_detection::WriteHistory;
use crate::transport::{http1_builder, http2_client};
use moorline_settings::Settings;

/// Maximum number of concurrent lookups of one host: a lookup cannot be cancelled.
const LOOKUPS: usize = 2;

/// Resolves a host to the addresses that may be connected to, on the calling thread; or says why
/// none may be.
pub type AddressCheck = Arc<dyn Fn(&str, u16) -> Result<Vec<SocketAddr>, String> + Send + Sync>;

/// Address and credentials of another cluster. It is never formatted.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteAccess {
    /// URL of the API server, with https.
    pub server: Uri,
    /// Certificate authorities as PEM; without them those of the system count.
    pub authorities: Option<Vec<u8>>,
    /// The name in the certificate, if it is not the host.
    pub server_name: Option<String>,
    /// The token of the user.
    pub token: Option<String>,
    /// The client certificate of the user.
    pub client: Option<ClientPair>,
}

/// Certificate and key of a client. It is never formatted.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientPair {
    /// The certificate as PEM, in base64.
    pub certificate: String,
    /// The key as PEM, in base64.
    pub key: String,
}

impl RemoteAccess {
    /// Returns host and port of the API server, without the brackets of an IPv6 address.
    pub fn host_and_port(&self) -> (&str, u16) {
        let host = self.server.host().unwrap_or_default();
        (host.trim_start_matches('[').trim_end_matches(']'), self.server.port_u16().unwrap_or(443))
    }
}

impl Connection {
    /// Prepares a connection to another cluster, which offers HTTP/2 if `http2` is true. No request
    /// is sent.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Kubeconfig`] if the credentials cannot be used, or the address is refused.
    pub fn to_remote(access: &RemoteAccess, check: AddressCheck, http2: bool) -> Result<Self, ConnectError> {
        // Fails if a provider is installed already, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (host, port) = access.host_and_port();
        let place = (host.into(), port);
        // An address needs no lookup, so the connector never asks for it.
        if host.parse::<IpAddr>().is_ok() {
            check(host, port).map_err(ConnectError::Kubeconfig)?;
        }
        let mut config = Config::new(access.server.clone());
        config.root_cert = access.authorities.as_deref().map(certificates).transpose()?;
        config.tls_server_name = access.server_name.clone();
        config.auth_info = AuthInfo {
            client_certificate_data: access.client.as_ref().map(|pair| pair.certificate.clone()),
            client_key_data: access.client.as_ref().map(|pair| pair.key.clone().into()),
            ..AuthInfo::default()
        };
        config.headers.extend(access.token.as_deref().map(bearer).transpose()?);
        let lookup = Lookup { check, port, turns: Arc::new(Semaphore::new(LOOKUPS)) };
        let mut connector = HttpConnector::new_with_resolver(lookup);
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT));
        // The message of the library may name a path or a value.
        let bad = |_| ConnectError::Kubeconfig("its certificates or its key cannot be read".to_owned());
        let client = match http2 {
            true => http2_client(&config, connector).map_err(bad)?,
            false => http1_client(&config, connector).map_err(bad)?,
        };
        Ok(Self { client, namespace: "default".into(), is_local: false, place: Some(place) })
    }
}

/// Returns a client that offers HTTP/1.1 only.
fn http1_client(config: &Config, connector: HttpConnector<Lookup>) -> Result<Client, kube::Error> {
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client: HttpClient<_, Body> = http1_builder().build(connector);
    let builder = ClientBuilder::new(client, "default").with_layer(&config.base_uri_layer());
    Ok(builder.with_layer(&config.extra_headers_layer()?).build())
}

/// Returns another cluster, which has objects of Syncs of `home`: terms, proofs and journal are
/// those of `home`; limits, watches and store are its own. The journal names it by its Secret.
pub fn remote_cluster(home: &Cluster, connection: Connection, settings: &Settings, secret: &str) -> Cluster {
    let wire = ApiClient {
        client: connection.client,
        write_history: WriteHistory::default(),
        complaints: OutageLog::default(),
        is_local: false,
        ..home.0.wire.clone()
    };
    let rate = Arc::new(RateLimit::new(settings.qps, settings.burst));
    let limits = Limits { concurrency: settings.concurrency, rate };
    Cluster::with(wire, limits, home.0.notary.clone(), home.0.changes.of_target(secret))
}

/// True if both are the same cluster as the same identity.
pub fn is_same_cluster(one: &Cluster, other: &Cluster) -> bool {
    Arc::ptr_eq(&one.0, &other.0)
}

/// Returns the header with a token.
fn bearer(token: &str) -> Result<(HeaderName, HeaderValue), ConnectError> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| {
        ConnectError::Kubeconfig("its token has characters that no token may have".to_owned())
    })?;
    value.set_sensitive(true);
    Ok((header::AUTHORIZATION, value))
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, ConnectError> {
    let broken = || ConnectError::Kubeconfig("its certificate authority cannot be read".to_owned());
    let all: Result<Vec<Vec<u8>>, _> =
        CertificateDer::pem_slice_iter(pem).map(|one| one.map(|one| one.to_vec())).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or_else(broken)
}

/// Resolves the host of one server.
#[derive(Clone)]
struct Lookup {
    check: AddressCheck,
    port: u16,
    turns: Arc<Semaphore>,
}

impl Service<Name> for Lookup {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { check, port, turns } = self.clone();
        Box::pin(async move {
            let turn = turns.acquire_owned().await.map_err(io::Error::other)?;
            let looked_up = tokio::task::spawn_blocking(move || {
                let found = check(name.as_str(), port);
                drop(turn);
                found
            });
            let found = looked_up.await.map_err(io::Error::other)?;
            Ok(found.map_err(io::Error::other)?.into_iter())
        })
    }
}
