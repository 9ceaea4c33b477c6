//! Connections of one listener: bounded in number and in time, and a newcomer never waits for those that are there.
//!
//! In: a listener, a router and [`Bounds`]. Out: answers. When all places are taken, the oldest connection of the address that
//! has the most of them is closed. A stranger who opens many connections closes his own, and no probe fails because of him.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{CONNECTION_TIMEOUT, LAST_WORDS, REQUEST_TIMEOUT};

/// The most bytes that a request may have before its body.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The most attempts to accept a connection that fail in a row, a second apart.
const MAX_FAILURES: u32 = 60;

/// The bounds of a listener.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The most connections that are answered at a time. As many more may be on their way out.
    pub(super) most: usize,
    /// A connection may ask more than once.
    pub(super) keep_alive: bool,
}

/// The connections that are answered, by the order in which they came.
#[derive(Default)]
struct Places {
    next: u64,
    taken: BTreeMap<u64, Place>,
}

struct Place {
    peer: IpAddr,
    close: oneshot::Sender<()>,
}

impl Places {
    /// Takes a place; the receiver says when it has to be given back.
    fn take(&mut self, peer: IpAddr) -> (u64, oneshot::Receiver<()>) {
        let (close, closing) = oneshot::channel();
        self.next += 1;
        self.taken.insert(self.next, Place { peer, close });
        (self.next, closing)
    }

    /// Closes the oldest connection of the address that has the most.
    fn close_one(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.taken.values().for_each(|place| *counts.entry(place.peer).or_default() += 1);
        let most = counts.values().max().copied().unwrap_or_default();
        let oldest = self.taken.iter().find(|(_, place)| counts.get(&place.peer) == Some(&most));
        let oldest = oldest.map(|(number, _)| *number);
        if let Some(place) = oldest.and_then(|number| self.taken.remove(&number)) {
            // A connection that has ended meanwhile does not hear it.
            let _ = place.close.send(());
        }
    }
}

/// Answers until `stop` ends, then lets the answers that are under way end.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let service = TowerToHyperService::new(router);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    http.keep_alive(bounds.keep_alive);
    let (closing, _) = watch::channel(());
    // When this future is dropped, so are the connections.
    let mut open = JoinSet::new();
    let mut places = Places::default();
    let mut failures = 0;
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = open.join_next() => {
                if let Ok(number) = ended {
                    places.taken.remove(&number);
                }
            }
            accepted = listener.accept(), if open.len() < 2 * bounds.most => match accepted {
                Ok((stream, peer)) => {
                    failures = 0;
                    if places.taken.len() >= bounds.most {
                        places.close_one();
                    }
                    let (number, close) = places.take(peer.ip().to_canonical());
                    let connection = answer(stream, http.clone(), service.clone(), closing.subscribe(), close);
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

/// Serves one connection until it ends, lasts too long, gives up its place, or `closing` is closed.
async fn answer(
    stream: TcpStream,
    http: http1::Builder,
    service: TowerToHyperService<Router>,
    mut closing: watch::Receiver<()>,
    close: oneshot::Receiver<()>,
) {
    // Only makes small answers faster.
    let _ = stream.set_nodelay(true);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // What went wrong is the client's matter, and nobody is left to be told.
        _ = connection.as_mut() => return,
        _ = closing.changed() => {}
        Ok(()) = close => {}
        () = sleep(CONNECTION_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_WORDS, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_address_with_the_most_connections_is_closed() {
        let (stranger, kubelet) = (IpAddr::from([10, 0, 0, 9]), IpAddr::from([10, 0, 0, 1]));
        let mut places = Places::default();
        let (_, mut first) = places.take(kubelet);
        let mut strange: Vec<_> = (0..3).map(|_| places.take(stranger).1).collect();
        places.close_one();
        assert!(strange[0].try_recv().is_ok());
        places.close_one();
        assert!(strange[1].try_recv().is_ok());
        assert!(strange[2].try_recv().is_err() && first.try_recv().is_err());
        // With one connection each, age decides.
        places.close_one();
        assert!(first.try_recv().is_ok());
        places.close_one();
        places.close_one();
        assert!(places.taken.is_empty());
    }
}
