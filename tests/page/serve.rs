//! The HTTP endpoints over real connections on the loopback, spoken to without a client library.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use moorline::metrics::{Metrics, RequestClass};
use moorline::serve::{
    DaemonHealth, MAX_CONNECTIONS, MAX_PROBES, MAX_SILENCE, REQUEST_TIMEOUT, SHUTDOWN_TIMEOUT, serve,
    serve_probes,
};
use moorline_test_support::under_load::under_load;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// A server, what it tells of, and the way to stop it.
struct Server {
    address: SocketAddr,
    health: DaemonHealth,
    metrics: Metrics,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

async fn server() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (health, metrics) = (DaemonHealth::new(), Metrics::new().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move { drop(stopped.await) };
    let task = tokio::spawn(serve(listener, health.clone(), metrics.clone(), None, stopped));
    Server { address, health, metrics, stop, task }
}

impl Server {
    /// Sends a request and reads to the end of the connection: the status, the head and the body.
    async fn ask(&self, method: &str, path: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        send(&mut stream, request.as_bytes()).await.unwrap();
        let answer = String::from_utf8(receive(&mut stream, usize::MAX).await).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head.to_lowercase(), body.to_owned())
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path).await;
        (status, body)
    }
}

async fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives bytes until there are `enough` bytes or the other side closes; a reset closes as well.
async fn receive(stream: &mut TcpStream, enough: usize) -> Vec<u8> {
    let (mut all, mut some) = (Vec::new(), [0; 4096]);
    while all.len() < enough {
        stream.readable().await.unwrap();
        match stream.try_read(&mut some) {
            Ok(0) => break,
            Ok(got) => all.extend_from_slice(&some[..got]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    all
}

/// Returns the time that the other side takes to close a connection.
async fn until_closed(stream: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    receive(stream, usize::MAX).await;
    begun.elapsed()
}

#[tokio::test]
async fn probes_answer_as_they_were_set() {
    let server = server().await;
    assert_eq!(server.get("/healthz").await, (200, "alive\n".to_owned()));
    assert_eq!(server.get("/readyz").await, (503, "the daemon is starting\n".to_owned()));
    server.health.set_readiness(Ok(()));
    assert_eq!(server.get("/readyz").await, (200, "ready\n".to_owned()));
    server.health.set_readiness(Err("the API server does not answer".to_owned()));
    assert_eq!(server.get("/readyz?verbose").await, (503, "the API server does not answer\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_silent_loop_fails_its_probe_and_no_other() {
    let server = server().await;
    server.health.set_readiness(Ok(()));
    tokio::time::advance(MAX_SILENCE + Duration::from_secs(1)).await;
    let (status, body) = server.get("/healthz").await;
    assert_eq!(status, 503);
    assert!(body.starts_with("the daemon's loop has been silent for 6"), "{body}");
    assert_eq!(server.get("/readyz").await.0, 200);
    server.health.beat();
    assert_eq!(server.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn metrics_are_those_of_now() {
    let server = server().await;
    server.metrics.request(RequestClass::Status, "patch", 200);
    let (status, head, body) = server.ask("GET", "/metrics").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    let sample = "moorline_requests_total{class=\"status\",code=\"200\",verb=\"patch\"} 1\n";
    assert!(body.contains(sample) && body.contains("\nprocess_resident_memory_bytes "), "{body}");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let server = server().await;
    for path in ["/", "/metrics/", "/healthz/x", "/../etc/passwd", "/%00"] {
        let (status, body) = server.get(path).await;
        assert_eq!((status, body.contains("/healthz, /readyz, /metrics and")), (404, true), "{path}");
    }
    assert_eq!(server.ask("POST", "/metrics").await.0, 405);
    // This server has no secret, so that nobody could prove a call to it.
    let (status, _, body) = server.ask("POST", "/hooks/github").await;
    assert_eq!((status, body.contains("/healthz, /readyz, /metrics and")), (404, true), "{body}");
    let (status, _, body) = server.ask("HEAD", "/healthz").await;
    assert_eq!((status, body.as_str()), (200, ""));
    // A head that is too long is refused before all of it came.
    assert_eq!(server.ask("GET", &format!("/{}", "x".repeat(15 * 1024))).await.0, 404);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let _ = send(&mut stream, format!("GET /{}", "x".repeat(64 * 1024)).as_bytes()).await;
    assert!(until_closed(&mut stream).await < REQUEST_TIMEOUT / 2);
    assert_eq!(server.get("/healthz").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_come_is_not_waited_for() {
    let server = server().await;
    for begun in ["", "GET /heal", "GET /healthz HTTP/1.1\r\nHost: x\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        send(&mut stream, begun.as_bytes()).await.unwrap();
        let took = until_closed(&mut stream).await;
        assert!(took <= under_load(REQUEST_TIMEOUT + Duration::from_secs(1)), "{begun:?} was given {took:?}");
    }
}

/// Opens connections that ask once and then stay.
async fn idle(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        send(&mut stream, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        held.push(stream);
    }
    held
}

#[tokio::test]
async fn idle_connections_give_up_their_places_for_newcomers() {
    let server = server().await;
    let mut held = idle(server.address, 3 * MAX_CONNECTIONS).await;
    for _ in 0..20 {
        let asked = timeout(under_load(Duration::from_secs(1)), server.get("/healthz")).await;
        assert_eq!(asked.expect("a probe is answered within a second").0, 200);
    }
    // The oldest were closed; the newest are open still.
    assert!(until_closed(&mut held[0]).await < under_load(Duration::from_secs(1)));
    let newest = held.last_mut().unwrap();
    assert!(timeout(Duration::from_millis(200), until_closed(newest)).await.is_err());
}

#[tokio::test]
async fn half_requests_give_up_their_places_for_newcomers() {
    let server = server().await;
    let mut held = Vec::new();
    for _ in 0..2 * MAX_CONNECTIONS - 1 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        send(&mut stream, b"GET /hea").await.unwrap();
        held.push(stream);
    }
    let asked = timeout(SHUTDOWN_TIMEOUT + Duration::from_secs(1), server.get("/healthz")).await;
    assert_eq!(asked.expect("a probe is answered").0, 200);
}

#[tokio::test]
async fn probes_have_a_listener_of_their_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let health = DaemonHealth::new();
    let task = tokio::spawn(serve_probes(listener, health.clone(), std::future::pending()));
    let (stop, _) = oneshot::channel::<()>();
    let server = Server { address, health, metrics: Metrics::new().unwrap(), stop, task };
    let _held = idle(address, 3 * MAX_PROBES).await;
    for _ in 0..20 {
        let asked = timeout(under_load(Duration::from_secs(1)), server.get("/healthz")).await;
        assert_eq!(asked.expect("a probe is answered within a second").0, 200);
    }
    assert_eq!(server.get("/readyz").await.0, 503);
    assert_eq!(server.get("/metrics").await, (404, "Not found. Paths: /healthz, /readyz.\n".to_owned()));
    // One answer a connection.
    let mut stream = TcpStream::connect(address).await.unwrap();
    send(&mut stream, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(until_closed(&mut stream).await < under_load(Duration::from_secs(1)));
}

#[tokio::test]
async fn stopping_closes_what_is_idle_and_ends() {
    let server = server().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    send(&mut idle, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(receive(&mut idle, 12).await.starts_with(b"HTTP/1.1 200"));
    let mut half = TcpStream::connect(server.address).await.unwrap();
    send(&mut half, b"GET /hea").await.unwrap();

    server.stop.send(()).unwrap();
    assert!(until_closed(&mut idle).await < under_load(Duration::from_secs(1)));
    let ended = timeout(SHUTDOWN_TIMEOUT + Duration::from_secs(2), server.task).await;
    assert!(ended.expect("it ends in time").expect("without a panic").is_ok());
    assert!(until_closed(&mut half).await < under_load(Duration::from_secs(1)));
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens");
}
