//! Pools of HTTP/1.1 connections to API servers.
//!
//! In: connections that carry no request any more. Out: few are kept, and those only for a while.
//! A connection with TLS takes more memory than an idle Sync, and without a timer the pool of hyper
//! ends none of them.

use std::time::Duration;

use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// Most connections to one server that are kept without a request.
const MAX_IDLE: usize = 4;
/// Time for which they are kept. The next look may come as much later.
const IDLE: Duration = Duration::from_secs(20);

/// Returns a builder of clients.
pub(crate) fn http1_builder() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).pool_max_idle_per_host(MAX_IDLE);
    builder
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use http_body_util::Empty;
    use hyper::body::Bytes;
    use hyper_util::client::legacy::connect::HttpConnector;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Barrier;

    use super::*;

    /// Requests at the same time.
    const MANY: usize = 12;
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Answers the first request of each connection once all have arrived; returns the URL.
    async fn serve(open: Arc<AtomicUsize>) -> http::Uri {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (port, all) = (listener.local_addr().unwrap().port(), Arc::new(Barrier::new(MANY)));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (open, all) = (open.clone(), all.clone());
                tokio::spawn(async move {
                    open.fetch_add(1, Ordering::SeqCst);
                    let mut head = [0; 1024];
                    assert!(stream.read(&mut head).await.unwrap() > 0);
                    all.wait().await;
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                    let _ = stream.read(&mut head).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        format!("http://127.0.0.1:{port}").parse().unwrap()
    }

    #[tokio::test]
    async fn few_connections_stay_after_a_burst_and_none_after_a_while() {
        let open = Arc::<AtomicUsize>::default();
        let url = serve(open.clone()).await;
        let client: Client<HttpConnector, Empty<Bytes>> = http1_builder().build_http();
        let answers = join_all((0..MANY).map(|_| client.get(url.clone()))).await;
        assert!(answers.into_iter().all(|answer| answer.unwrap().status() == 200));
        let begun = std::time::Instant::now();
        let wait = async |most: usize| {
            while open.load(Ordering::SeqCst) > most {
                assert!(begun.elapsed() < PATIENCE, "{open:?} connections");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        wait(MAX_IDLE).await;
        assert_eq!(open.load(Ordering::SeqCst), MAX_IDLE);
        tokio::time::pause();
        while open.load(Ordering::SeqCst) > 0 {
            tokio::time::advance(IDLE).await;
            std::thread::sleep(Duration::from_millis(1));
            assert!(begun.elapsed() < PATIENCE, "{open:?} connections");
        }
    }
}
