//! Accepts connections of one listener, limited in number and in time. New connections never wait.
//!
//! In: a listener, a router, TLS and [`ConnectionLimits`]. Out: responses. At the limit,
//! the oldest connection of the address with the most connections is closed. So a client that opens
//! many connections closes its own, and no probe fails because of it.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::login::{PageTls, ProxyConnection};
use super::{CONNECTION_TIMEOUT, REQUEST_TIMEOUT, SHUTDOWN_TIMEOUT};

/// The most bytes of a request before its body.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The most consecutive failures to accept a connection, a second apart.
const MAX_FAILURES: u32 = 60;

/// The address of the client at the other end of a connection, as an extension of its requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerAddress(pub(super) IpAddr);

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// The most open connections. As many more may be closing.
    pub(super) most: usize,
    /// True if a connection may send more than one request.
    pub(super) keep_alive: bool,
}

/// The open connections, oldest first.
#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_age: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    peer: IpAddr,
    close: oneshot::Sender<()>,
}

impl OpenConnections {
    /// Adds a connection; the receiver fires when it has to close.
    fn add(&mut self, peer: IpAddr) -> (u64, oneshot::Receiver<()>) {
        let (close, closing) = oneshot::channel();
        self.next += 1;
        self.by_age.insert(self.next, OpenConnection { peer, close });
        (self.next, closing)
    }

    /// Closes the oldest connection of the address that has the most.
    fn close_oldest(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.by_age.values().for_each(|place| *counts.entry(place.peer).or_default() += 1);
        let most = counts.values().max().copied().unwrap_or_default();
        let oldest = self.by_age.iter().find(|(_, place)| counts.get(&place.peer) == Some(&most));
        let oldest = oldest.map(|(number, _)| *number);
        if let Some(place) = oldest.and_then(|number| self.by_age.remove(&number)) {
            // The connection may have ended meanwhile.
            let _ = place.close.send(());
        }
    }
}

/// Serves until `stop` completes, then lets running responses finish.
pub(super) async fn serve_connections(
    listener: TcpListener,
    (router, tls): (Router, Option<Arc<PageTls>>),
    bounds: ConnectionLimits,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    http.keep_alive(bounds.keep_alive);
    let (closing, _) = watch::channel(());
    // Dropping this future drops the connections, too.
    let mut open = JoinSet::new();
    let mut places = OpenConnections::default();
    let mut failures = 0;
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = open.join_next() => {
                if let Ok(number) = ended {
                    places.by_age.remove(&number);
                }
            }
            accepted = listener.accept(), if open.len() < 2 * bounds.most => match accepted {
                Ok((stream, peer)) => {
                    failures = 0;
                    if places.by_age.len() >= bounds.most {
                        places.close_oldest();
                    }
                    let peer = peer.ip().to_canonical();
                    let (number, close) = places.add(peer);
                    let ends = (closing.subscribe(), close);
                    let router = router.clone().layer(Extension(PeerAddress(peer)));
                    let connection = accept(stream, tls.clone(), http.clone(), router, ends);
                    open.spawn(async move {
                        connection.await;
                        number
                    });
                }
                // Mostly too many open files: some may be closed in a moment.
                Err(_) if failures < MAX_FAILURES => {
                    failures += 1;
                    sleep(Duration::from_secs(1)).await;
                }
                Err(error) => return Err(error),
            },
        }
    }
    drop(listener);
    drop(closing);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// Signals that end a connection: the listener ends, or a newer connection takes the place.
type Ends = (watch::Receiver<()>, oneshot::Receiver<()>);

/// Serves one connection, over TLS if the listener has it. Requests of a connection with the
/// certificate of a proxy are marked.
async fn accept(
    stream: TcpStream,
    tls: Option<Arc<PageTls>>,
    http: http1::Builder,
    router: Router,
    ends: Ends,
) {
    // An optimization for small responses; a failure does not matter.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve_connection(stream, http, router, ends).await };
    let handshake = TlsAcceptor::from(tls.config()).accept(stream);
    let Ok(Ok(stream)) = timeout(REQUEST_TIMEOUT, handshake).await else { return };
    let router = match stream.get_ref().1.peer_certificates() {
        Some(_) => router.layer(Extension(ProxyConnection)),
        None => router,
    };
    serve_connection(stream, http, router, ends).await;
}

/// Serves one connection until it ends, times out, is closed for a newer one, or `closing` is
/// closed.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    http: http1::Builder,
    router: Router,
    (mut closing, close): Ends,
) {
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // An error here is the client's, and there is no one to report it to.
        _ = connection.as_mut() => return,
        _ = closing.changed() => {}
        Ok(()) = close => {}
        () = sleep(CONNECTION_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(SHUTDOWN_TIMEOUT, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_address_with_the_most_connections_is_closed() {
        let (stranger, kubelet) = (IpAddr::from([10, 0, 0, 9]), IpAddr::from([10, 0, 0, 1]));
        let mut places = OpenConnections::default();
        let (_, mut first) = places.add(kubelet);
        let mut strange: Vec<_> = (0..3).map(|_| places.add(stranger).1).collect();
        places.close_oldest();
        assert!(strange[0].try_recv().is_ok());
        places.close_oldest();
        assert!(strange[1].try_recv().is_ok());
        assert!(strange[2].try_recv().is_err() && first.try_recv().is_err());
        // With one connection per address, the oldest is closed.
        places.close_oldest();
        assert!(first.try_recv().is_ok());
        places.close_oldest();
        places.close_oldest();
        assert!(places.by_age.is_empty());
    }
}
