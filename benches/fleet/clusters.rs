//! Clusters in this process: sandboxes behind TLS on loopback.
//!
//! In: a sandbox, and the manner of its server: it serves, accepts and never answers, has a
//! certificate of another authority, or refuses connections.
//! Out: a port, and the kubeconfig by which it is reached.

use std::net::SocketAddr;

use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use moorline::sandbox::{Options, Sandbox};
use moorline_test_support::authority::Authority;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// Manner of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It serves.
    Serves,
    /// It accepts connections, and never sends a byte.
    Freezes,
    /// It accepts requests, and never answers.
    Hangs,
    /// Its certificate is not of the authority in the kubeconfig.
    WrongAuthority,
    /// It refuses connections.
    Refuses,
}

/// Certificates of all servers.
pub(crate) struct Certificates {
    own: TlsAcceptor,
    wrong: TlsAcceptor,
    pem: String,
}

/// A running server; it ends on drop, with its connections.
pub(crate) struct Cluster {
    pub(crate) sandbox: Sandbox,
    pub(crate) manner: Manner,
    port: u16,
    task: Option<AbortHandle>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let (own, wrong) = (Authority::new(), Authority::new());
        let acceptor = |authority: &Authority| TlsAcceptor::from(authority.server(None));
        Self { own: acceptor(&own), wrong: acceptor(&wrong), pem: own.pem }
    }

    /// Returns a kubeconfig with a token, as JSON.
    pub(crate) fn kubeconfig(&self, cluster: &Cluster, token: &str) -> String {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.pem);
        let server = json!({"server": cluster.url(), "certificate-authority-data": authority});
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "u", "user": {"token": token}}],
        });
        config.to_string()
    }
}

impl Cluster {
    /// Starts a server in this manner.
    pub(crate) async fn start(seed: u64, manner: Manner, certificates: &Certificates) -> Self {
        let sandbox = Sandbox::new(&Options { seed, ..Options::default() });
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let acceptor =
            if manner == Manner::WrongAuthority { &certificates.wrong } else { &certificates.own }.clone();
        let serves = manner != Manner::Refuses;
        let task =
            serves.then(|| tokio::spawn(serve(listener, acceptor, manner, sandbox.client())).abort_handle());
        Self { sandbox, manner, port, task }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, manner: Manner, client: Client) {
    // Dropping this future closes the connections, too.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = open.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let _ = stream.set_nodelay(true);
                open.spawn(connection(stream, acceptor.clone(), manner, client.clone()));
            }
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, manner: Manner, client: Client) {
    if manner == Manner::Freezes {
        std::future::pending::<()>().await;
    }
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let client = client.clone();
        async move {
            if manner == Manner::Hangs {
                std::future::pending::<()>().await;
            }
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(kube::Error::HyperError)?.to_bytes();
            client.send(Request::from_parts(head, Body::from(body.to_vec()))).await
        }
    });
    // A connection error concerns only the client.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
