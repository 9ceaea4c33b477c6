//! Opens TLS connections on which HTTP/2 is offered.
//!
//! In: the configuration of a client, and a connector that opens TCP connections.
//! Out: an [`Http2Connection`], or the reason why there is none.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::ConfigExt as _;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::BoxError;
use super::http2_connection::{Http2Connection, NOT_SPOKEN};
use super::lane::Lane;
use super::transport_error::{TransportError, innermost_cause};

/// Timeout of the lookup of the name and of a TCP connection, which has a shorter one of its own.
const TCP: Duration = Duration::from_secs(15);
/// Timeout of the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time in which HTTP/2 is not offered again to a server that selected HTTP/1.1.
const NOT_SELECTED: Duration = Duration::from_secs(600);

/// Number of new connections in a row that the server closed, after which it counts as one that
/// does not speak HTTP/2.
const CLOSED_IN_A_ROW: usize = 3;

/// The name of HTTP/2 in TLS.
const HTTP2: &[u8] = b"h2";
/// The name of HTTP/1.1 in TLS.
const HTTP1: &[u8] = b"http/1.1";

type Connect = Box<dyn Fn() -> BoxFuture<'static, Result<TcpStream, BoxError>> + Send + Sync>;

/// Opens connections to one server.
pub(super) struct Dialer {
    connect: Connect,
    tls: TlsConnector,
    name: ServerName<'static>,
    /// Number of new connections in a row that the server closed.
    closed: AtomicUsize,
}

impl Dialer {
    /// Returns none for a server without TLS, or without a name that TLS can verify.
    pub(super) fn new<H>(config: &Config, http: H) -> Result<Option<Self>, kube::Error>
    where
        H: Service<http::Uri, Response = TokioIo<TcpStream>> + Clone + Send + Sync + 'static,
        H::Future: Send + 'static,
        H::Error: Into<BoxError>,
    {
        let uri = config.cluster_url.clone();
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let name = config.tls_server_name.clone().unwrap_or_else(|| host.to_owned());
        let Ok(name) = ServerName::try_from(name) else { return Ok(None) };
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Ok(None);
        }
        let mut tls = config.rustls_client_config()?;
        tls.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        let connect = move || {
            let (mut http, uri) = (http.clone(), uri.clone());
            async move {
                poll_fn(|context| http.poll_ready(context)).await.map_err(Into::into)?;
                Ok(http.call(uri).await.map_err(Into::into)?.into_inner())
            }
            .boxed()
        };
        Ok(Some(Self {
            connect: Box::new(connect),
            tls: TlsConnector::from(Arc::new(tls)),
            name,
            closed: AtomicUsize::new(0),
        }))
    }

    /// Opens a connection for a lane.
    pub(super) async fn dial(&self, lane: Weak<Lane>) -> Result<Arc<Http2Connection>, TransportError> {
        let connected = timeout(TCP, (self.connect)()).await.map_err(|_| late(TCP))?;
        let tcp = connected.map_err(|error| TransportError::NotConnected(innermost_cause(&*error)))?;
        // Without it small frames wait for the answers of earlier ones.
        let _ = tcp.set_nodelay(true);
        let shaken = timeout(HANDSHAKE, self.tls.connect(self.name.clone(), tcp)).await;
        let shaken = shaken.map_err(|_| late(HANDSHAKE))?;
        let tls = shaken.map_err(|error| TransportError::NotConnected(innermost_cause(&error)))?;
        if tls.get_ref().1.alpn_protocol() != Some(HTTP2) {
            return Err(TransportError::NotSpoken { avoid_for: NOT_SELECTED });
        }
        let begun = Http2Connection::begin(tls, lane).await;
        match begun {
            Ok(_) => self.closed.store(0, Ordering::Relaxed),
            Err(_) if self.closed.fetch_add(1, Ordering::Relaxed) + 1 >= CLOSED_IN_A_ROW => {
                self.closed.store(0, Ordering::Relaxed);
                return Err(TransportError::NotSpoken { avoid_for: NOT_SPOKEN });
            }
            Err(_) => {}
        }
        begun
    }
}

fn late(limit: Duration) -> TransportError {
    TransportError::NotConnected(format!("no connection within {} s", limit.as_secs()).into())
}
