//! Signs of life and open streams of one HTTP/2 connection.
//!
//! In: bytes that arrive, streams that begin and end, and requests that are not answered.
//! Out: [`ConnectionState`], from which its lane and its keep-alive decide.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time in which a connection gets no new streams after the server refused one.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);

/// State of a connection; times are milliseconds since its begin.
#[derive(Debug)]
pub(super) struct ConnectionState {
    began: Instant,
    /// Time of the last bytes from the server.
    last_read: AtomicU64,
    /// Number of open streams.
    open: AtomicUsize,
    /// Time at which the last stream ended.
    idle_since: AtomicU64,
    /// Until then the server is assumed to refuse streams.
    refuses_until: AtomicU64,
    /// True while a request was given up and nothing has arrived since.
    is_doubted: AtomicBool,
    doubted: Notify,
    /// True once a ping was not answered.
    is_silent: AtomicBool,
}

impl ConnectionState {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            last_read: AtomicU64::default(),
            open: AtomicUsize::default(),
            idle_since: AtomicU64::default(),
            refuses_until: AtomicU64::default(),
            is_doubted: AtomicBool::default(),
            doubted: Notify::new(),
            is_silent: AtomicBool::default(),
        }
    }

    /// Returns the time since the begin of the connection.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn store_now(&self, time: &AtomicU64) {
        time.store(milliseconds(self.now()), Ordering::Relaxed);
    }

    /// Records that bytes have arrived.
    fn note_read(&self) {
        self.store_now(&self.last_read);
    }

    /// Returns the time of the last bytes from the server.
    pub(super) fn last_read(&self) -> Duration {
        Duration::from_millis(self.last_read.load(Ordering::Relaxed))
    }

    /// Returns the instant of a time of this connection.
    pub(super) fn instant(&self, time: Duration) -> Instant {
        self.began + time
    }

    /// Counts a new stream, if there are less than `limit`.
    pub(super) fn open_stream(&self, limit: usize) -> bool {
        let next = |open| (open < limit).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// Records the end of a stream.
    pub(super) fn close_stream(&self) {
        self.store_now(&self.idle_since);
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns the time since the last stream ended; none while there are streams.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let since = Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        (self.open.load(Ordering::Acquire) == 0).then(|| self.now().saturating_sub(since))
    }

    /// Records that the server refused a stream.
    pub(super) fn note_refusal(&self) {
        let until = milliseconds(self.now() + REFUSAL_PAUSE);
        self.refuses_until.store(until, Ordering::Relaxed);
    }

    /// True if new streams may begin.
    pub(super) fn is_trusted(&self) -> bool {
        let refuses = self.refuses_until.load(Ordering::Relaxed) > milliseconds(self.now());
        !refuses && !self.is_doubted.load(Ordering::Relaxed)
    }

    /// Asks for a ping, before whose answer no new stream begins.
    pub(super) fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Relaxed);
        self.doubted.notify_one();
    }

    /// Waits until the connection is doubted.
    pub(super) async fn wait_until_doubted(&self) {
        self.doubted.notified().await;
    }

    /// Records that the server answers.
    pub(super) fn trust(&self) {
        self.is_doubted.store(false, Ordering::Relaxed);
    }

    /// Records that the server does not answer.
    pub(super) fn set_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// True once a ping was not answered.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes to and from a server, whose arrival is recorded.
pub(super) struct ObservedIo<T> {
    pub(super) inner: T,
    pub(super) state: Arc<ConnectionState>,
}

impl<T: AsyncRead + Unpin> AsyncRead for ObservedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.state.note_read();
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ObservedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
