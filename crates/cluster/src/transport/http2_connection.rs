//! One HTTP/2 connection, and the streams on it.
//!
//! In: an encrypted connection on which the server has selected HTTP/2.
//! Out: responses. The connection is pinged while it is silent, and ends if the server does not
//! answer; it also ends some time after its last stream.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use http::{Request, Response};
use hyper::body::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::{sleep_until, timeout};

use super::connection_state::{ConnectionState, ObservedIo};
use super::lane::Lane;
use super::response_body::Http2Body;
use super::transport_error::TransportError;

/// Maximum number of streams of a connection; less if the server allows less.
pub(super) const STREAMS: usize = 100;
/// Maximum number of bytes that wait unread on a stream.
const STREAM_WINDOW: u32 = 256 << 10;
/// Maximum number of bytes that wait unread on all streams: streams that nobody reads never block
/// another one.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS as u32;
/// Maximum number of bytes of the headers of a response.
const MAX_HEADERS: u32 = 256 << 10;

/// Timeout of the first ping, before which the settings of the server arrive.
const SETTINGS: Duration = Duration::from_secs(10);
/// Time in which HTTP/2 is not tried again with a server that selects it, and does not speak it.
pub(super) const NOT_SPOKEN: Duration = Duration::from_secs(60);
/// Time without bytes from the server after which it is pinged.
const PING_AFTER: Duration = Duration::from_secs(20);
/// Time without bytes from the server after a ping, until the connection counts as broken.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// A request that waited this long, while no byte arrived, casts doubt on the connection.
pub(super) const DOUBT_AFTER: Duration = Duration::from_secs(1);
/// Time after its last stream until a connection is closed.
const IDLE: Duration = Duration::from_secs(90);
/// Timeout of closing a connection.
const CLOSE: Duration = Duration::from_secs(5);

/// A connection on which streams can begin.
pub(super) struct Http2Connection {
    sender: SendRequest<Bytes>,
    state: Arc<ConnectionState>,
}

impl Http2Connection {
    /// Begins to speak HTTP/2, and waits for the settings of the server.
    pub(super) async fn begin<T>(io: T, lane: Weak<Lane>) -> Result<Arc<Self>, TransportError>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let broken = |why: &str| TransportError::NotConnected(why.into());
        let state = Arc::new(ConnectionState::new());
        let io = ObservedIo { inner: io, state: state.clone() };
        let shaken = builder().handshake::<_, Bytes>(io).await;
        let (sender, mut connection) = shaken.map_err(|error| broken(&error.to_string()))?;
        let pings = connection.ping_pong().ok_or_else(|| broken("the connection cannot be pinged"))?;
        let (ready, is_ready) = oneshot::channel();
        tokio::spawn(drive(connection, KeepAlive { pings, state: state.clone(), lane }, ready));
        match timeout(SETTINGS, is_ready).await {
            Ok(Ok(())) if sender.current_max_send_streams() > 0 => Ok(Arc::new(Self { sender, state })),
            Ok(Err(_)) => Err(broken("the API server closed a new connection")),
            Ok(Ok(())) | Err(_) => Err(TransportError::NotSpoken { avoid_for: NOT_SPOKEN }),
        }
    }

    /// True if no stream can begin any more: the connection has ended, or the server has sent
    /// GOAWAY.
    pub(super) fn is_closed(&self) -> bool {
        let polled = self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop()));
        matches!(polled, Poll::Ready(Err(_)))
    }

    /// True if this is the state of the connection.
    pub(super) fn has_state(&self, state: &Arc<ConnectionState>) -> bool {
        Arc::ptr_eq(&self.state, state)
    }

    /// Takes room for one stream.
    pub(super) fn slot(self: &Arc<Self>) -> Option<StreamSlot> {
        let limit = STREAMS.min(self.sender.current_max_send_streams());
        let is_taken = self.state.is_trusted() && self.state.open_stream(limit);
        is_taken.then(|| StreamSlot(self.clone()))
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(STREAMS)
        .max_header_list_size(MAX_HEADERS)
        .enable_push(false);
    builder
}

/// Room for one stream on a connection.
pub(super) struct StreamSlot(Arc<Http2Connection>);

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.0.state.close_stream();
    }
}

impl StreamSlot {
    /// Sends a request, and waits for the head of the response.
    pub(super) async fn send(
        self,
        head: Request<()>,
        body: Bytes,
    ) -> Result<Response<Http2Body>, TransportError> {
        let unsent = |error: h2::Error| TransportError::Unprocessed(error.to_string().into());
        let mut sender = self.0.sender.clone();
        poll_fn(|context| sender.poll_ready(context)).await.map_err(unsent)?;
        let (response, mut stream) = sender.send_request(head, body.is_empty()).map_err(unsent)?;
        if !body.is_empty() {
            // Fails only if the stream has ended, for which the response has the reason.
            let _ = stream.send_data(body, true);
        }
        drop((sender, stream));
        let wait = Unanswered { state: &self.0.state, since: self.0.state.now() };
        let answer = response.await;
        std::mem::forget(wait);
        match answer {
            Ok(response) => Ok(response.map(|stream| Http2Body { stream, slot: self })),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// Judges an error of the stream.
    pub(super) fn lost(&self, error: &h2::Error) -> TransportError {
        let state = &self.0.state;
        if state.is_silent() {
            return TransportError::Silent(PING_TIMEOUT);
        }
        let judged = TransportError::of_request(error);
        if matches!(judged, TransportError::Unprocessed(_)) {
            state.note_refusal();
        }
        judged
    }
}

/// A request without an answer. If it is given up, the connection may be broken.
struct Unanswered<'a> {
    state: &'a ConnectionState,
    since: Duration,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let silent_since = self.since.max(self.state.last_read());
        if self.state.now().saturating_sub(silent_since) >= DOUBT_AFTER {
            self.state.doubt();
        }
    }
}

/// Runs a connection until it ends.
async fn drive<T>(connection: Connection<T, Bytes>, life: KeepAlive, ready: oneshot::Sender<()>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut connection = pin!(connection);
    let state = life.state.clone();
    let is_silent = tokio::select! {
        biased;
        ended = &mut connection => {
            tracing::debug!(?ended, "a connection to the API server has ended");
            return;
        }
        is_silent = life.run(ready) => is_silent,
    };
    if is_silent {
        // Recorded before the streams end, whose errors then say so.
        state.set_silent();
        return;
    }
    let _ = timeout(CLOSE, connection).await;
}

/// Pings the server while nothing else arrives from it.
struct KeepAlive {
    pings: PingPong,
    state: Arc<ConnectionState>,
    lane: Weak<Lane>,
}

impl KeepAlive {
    /// Returns true once the server does not answer, and false once nobody needs the connection.
    async fn run(mut self, ready: oneshot::Sender<()>) -> bool {
        if !self.ping().await {
            return true;
        }
        let _ = ready.send(());
        loop {
            let due = self.state.last_read() + PING_AFTER;
            let is_doubted = tokio::select! {
                () = self.state.wait_until_doubted() => true,
                () = sleep_until(self.state.instant(due)) => false,
            };
            let is_idle = self.state.idle_time().is_some_and(|time| time >= IDLE);
            if is_idle && self.lane.upgrade().is_none_or(|lane| lane.retire(&self.state)) {
                return false;
            }
            let is_due = self.state.last_read() + PING_AFTER <= self.state.now();
            if (is_doubted || is_due) && !self.ping().await {
                return true;
            }
        }
    }

    /// Returns false if neither an answer nor anything else arrives in time.
    async fn ping(&mut self) -> bool {
        let mut asked = self.state.now();
        let mut pong = pin!(self.pings.ping(Ping::opaque()));
        loop {
            match timeout(PING_TIMEOUT, &mut pong).await {
                Ok(Ok(_)) => {
                    self.state.trust();
                    return true;
                }
                // The connection has ended, which its own future says.
                Ok(Err(_)) => std::future::pending().await,
                // The answer is behind other bytes.
                Err(_) if self.state.last_read() > asked => asked = self.state.now(),
                Err(_) => return false,
            }
        }
    }
}
