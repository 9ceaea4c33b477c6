//! Real connections on loopback, to servers that end, refuse, delay or are silent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use h2::server::{Connection as Served, SendResponse};
use http::StatusCode;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;

const LONG: Duration = Duration::from_secs(30);
const PAGE: usize = 1 << 20;

/// Types of frames, and a flag of two of them.
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;

/// Conduct of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conduct {
    /// Answers every request.
    Answers,
    /// Sends GOAWAY after the first request of its first connection, and answers that one later.
    EndsGracefully,
    /// Refuses the first request of its first connection.
    RefusesOnce,
    /// Refuses every request.
    Refuses,
    /// Allows this number of streams, and never ends a watch.
    Allows(u32),
    /// Cuts the connection at the first request, without an answer.
    Cuts,
    /// Answers the first request by a GOAWAY with this last stream, and cuts the connection.
    GoesAway(u8),
    /// Reads nothing after the first answer.
    FallsSilent,
    /// Selects HTTP/1.1.
    SelectsHttp1,
}

struct Server {
    conduct: Conduct,
    acceptor: TlsAcceptor,
    accepted: AtomicUsize,
    requests: AtomicUsize,
    /// Notified by a test that lets a late answer go.
    released: Notify,
}

impl Server {
    /// Starts a server, and returns it with a client.
    async fn start(conduct: Conduct) -> (Arc<Self>, Client) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
        let tls = rustls::ServerConfig::builder().with_no_client_auth();
        let mut tls = tls.with_single_cert(vec![signed.cert.der().clone()], key).unwrap();
        let selected: &[u8] = if conduct == Conduct::SelectsHttp1 { b"http/1.1" } else { b"h2" };
        tls.alpn_protocols = vec![selected.to_vec()];
        let server = Arc::new(Self {
            conduct,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            accepted: AtomicUsize::default(),
            requests: AtomicUsize::default(),
            released: Notify::new(),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let nth = accepting.accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(accepting.clone().serve(tcp, nth));
            }
        });
        let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
        config.root_cert = Some(vec![signed.cert.der().to_vec()]);
        config.tls_server_name = Some("localhost".to_owned());
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        (server, http2_client(&config, http).unwrap())
    }

    async fn serve(self: Arc<Self>, tcp: TcpStream, nth: usize) {
        let Ok(tls) = self.acceptor.accept(tcp).await else { return };
        if self.conduct == Conduct::SelectsHttp1 {
            return self.answer_over_http1(tls).await;
        }
        if let (Conduct::GoesAway(last), 0) = (self.conduct, nth) {
            return self.go_away(tls, last).await;
        }
        let mut builder = h2::server::Builder::new();
        if let Conduct::Allows(streams) = self.conduct {
            builder.max_concurrent_streams(streams);
        }
        let Ok(mut connection) = builder.handshake::<_, Bytes>(tls).await else { return };
        while let Some(Ok((request, reply))) = connection.accept().await {
            self.requests.fetch_add(1, Ordering::SeqCst);
            if self.answer(&request, reply, (&mut connection, nth)).await.is_none() {
                return;
            }
        }
    }

    async fn answer_over_http1(&self, mut tls: TlsStream<TcpStream>) {
        let mut head = [0; 4096];
        if matches!(tls.read(&mut head).await, Ok(1..)) {
            self.requests.fetch_add(1, Ordering::SeqCst);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            tls.write_all(answer).await.unwrap();
            tls.flush().await.unwrap();
        }
    }

    /// Speaks HTTP/2 by its frames until the first request.
    async fn go_away(&self, mut tls: TlsStream<TcpStream>, last: u8) {
        tls.read_exact(&mut [0; 24]).await.unwrap();
        tls.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).await.unwrap();
        let mut head = [0; 9];
        while tls.read_exact(&mut head).await.is_ok() {
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            tls.read_exact(&mut payload).await.unwrap();
            let answer = match (head[3], head[4]) {
                (SETTINGS, 0) => vec![0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0],
                (PING, 0) => [&[0, 0, 8, PING, ACK, 0, 0, 0, 0], &payload[..]].concat(),
                (HEADERS, _) => vec![0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, 0],
                _ => continue,
            };
            tls.write_all(&answer).await.unwrap();
            tls.flush().await.unwrap();
            if head[3] == HEADERS {
                self.requests.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
    }

    /// Returns none if the connection is to end.
    async fn answer(
        self: &Arc<Self>,
        request: &Request<h2::RecvStream>,
        mut reply: SendResponse<Bytes>,
        (connection, nth): (&mut Served<TlsStream<TcpStream>, Bytes>, usize),
    ) -> Option<()> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let this = self.clone();
        match self.conduct {
            Conduct::RefusesOnce if nth == 0 => reply.send_reset(h2::Reason::REFUSED_STREAM),
            Conduct::Refuses => reply.send_reset(h2::Reason::REFUSED_STREAM),
            Conduct::Cuts => return None,
            Conduct::EndsGracefully if nth == 0 => {
                connection.graceful_shutdown();
                tokio::spawn(async move {
                    this.released.notified().await;
                    answer_with(&mut reply, Bytes::from_static(b"late"), true)
                });
            }
            Conduct::FallsSilent => {
                drop(answer_with(&mut reply, Bytes::from_static(b"{}"), true));
                // The answer goes out before nothing is read any more.
                let _ = timeout(Duration::from_millis(50), connection.accept()).await;
                std::future::pending::<()>().await;
            }
            _ if is_watch => {
                let mut stream = answer_with(&mut reply, Bytes::from(vec![b'\n'; PAGE]), false);
                tokio::spawn(async move {
                    let _ = std::future::poll_fn(|context| stream.poll_reset(context)).await;
                });
            }
            _ => drop(answer_with(&mut reply, Bytes::from_static(b"{}"), true)),
        }
        Some(())
    }

    fn counts(&self) -> (usize, usize) {
        (self.accepted.load(Ordering::SeqCst), self.requests.load(Ordering::SeqCst))
    }
}

fn answer_with(reply: &mut SendResponse<Bytes>, body: Bytes, ends: bool) -> h2::SendStream<Bytes> {
    let mut stream = reply.send_response(Response::new(()), false).unwrap();
    stream.send_data(body, ends).unwrap();
    stream
}

async fn send(client: &Client, method: &str, uri: &str) -> Result<Response<Body>, kube::Error> {
    let request = Request::builder().method(method).uri(uri).body(Body::from(b"{}".to_vec())).unwrap();
    timeout(LONG, client.send(request)).await.expect("an answer or an error")
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect_bytes().await.unwrap().to_vec()).unwrap()
}

/// Conduct; connections and requests at the server; the answer, or the error.
type ConductRow = (Conduct, (usize, usize), Result<&'static str, &'static str>);

#[tokio::test]
async fn only_a_request_that_was_not_processed_is_repeated() {
    let cases: [ConductRow; 7] = [
        (Conduct::Answers, (1, 1), Ok("{}")),
        (Conduct::RefusesOnce, (2, 2), Ok("{}")),
        (Conduct::Refuses, (ATTEMPTS, ATTEMPTS), Err("refused stream")),
        (Conduct::GoesAway(0), (2, 2), Ok("{}")),
        (Conduct::GoesAway(1), (1, 1), Err("closed")),
        (Conduct::Cuts, (1, 1), Err("closed")),
        // The connection that selected HTTP/1.1 is not used, because nothing is known about it.
        (Conduct::SelectsHttp1, (2, 1), Ok("{}")),
    ];
    for (conduct, counts, expect) in cases {
        let (server, client) = Server::start(conduct).await;
        match (send(&client, "PATCH", "/a").await, expect) {
            (Ok(response), Ok(expect)) => assert_eq!(text(response).await, expect, "{conduct:?}"),
            (Err(error), Err(expect)) => {
                let cause = innermost_cause(&error);
                assert!(cause.contains(expect), "{conduct:?}: {cause}");
            }
            (sent, _) => panic!("{conduct:?}: {sent:?}"),
        }
        assert_eq!(server.counts(), counts, "{conduct:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_completes_its_streams_and_gets_no_new_ones() {
    let (server, client) = Server::start(Conduct::EndsGracefully).await;
    let early = tokio::spawn({
        let client = client.clone();
        async move { text(send(&client, "PATCH", "/early").await.unwrap()).await }
    });
    while server.counts().1 == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(text(send(&client, "PATCH", "/next").await.unwrap()).await, "{}");
    assert_eq!((server.counts(), early.is_finished()), ((2, 2), false));
    server.released.notify_one();
    assert_eq!(early.await.unwrap(), "late");
}

#[tokio::test]
async fn streams_are_limited_and_unread_ones_delay_no_other() {
    let (server, client) = Server::start(Conduct::Allows(10)).await;
    let mut watches = Vec::new();
    let begun = (0..25).map(|nth| {
        let client = client.clone();
        tokio::spawn(async move { send(&client, "GET", &format!("/{nth}?watch=true")).await.unwrap() })
    });
    for watch in begun.collect::<Vec<_>>() {
        watches.push(watch.await.unwrap());
    }
    assert_eq!(server.counts(), (3, 25), "ten on each connection");
    // Each watch has more to read than fits into its window, and only one is read.
    let mut read = 0;
    let body = watches[24].body_mut();
    while read < PAGE {
        let frame = timeout(LONG, body.frame()).await.expect("it is not delayed").unwrap().unwrap();
        read += frame.into_data().unwrap().len();
    }
    assert_eq!(send(&client, "PATCH", "/write").await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.counts(), (4, 26), "other requests have a connection of their own");
    // Watches that end make room.
    watches.truncate(20);
    assert_eq!(send(&client, "GET", "/26?watch=true").await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.counts(), (4, 27));
}

#[tokio::test]
async fn a_silent_connection_is_doubted_at_once_and_ends_without_its_ping() {
    let (server, client) = Server::start(Conduct::FallsSilent).await;
    assert_eq!(text(send(&client, "GET", "/a").await.unwrap()).await, "{}");
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { innermost_cause(&send(&client, "GET", "/b").await.unwrap_err()) }
    });
    // A request that is given up; the next one goes elsewhere.
    let given_up = timeout(http2_connection::DOUBT_AFTER * 3 / 2, send(&client, "GET", "/c")).await;
    assert!(given_up.is_err(), "nobody answers");
    assert_eq!(text(send(&client, "GET", "/d").await.unwrap()).await, "{}");
    assert_eq!(server.counts(), (2, 2));
    let cause = waiting.await.unwrap();
    assert!(cause.contains("a ping was not answered"), "{cause}");
}
