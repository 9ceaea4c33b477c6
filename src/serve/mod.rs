//! What the daemon says over HTTP: `/healthz`, `/readyz` and `/metrics`; what it is told, at `/hooks/`; and, elsewhere, the
//! status page.
//!
//! In: a listener, a [`Health`], [`Metrics`], and a future that ends when the daemon stops. Out: answers. Nothing here
//! asks the cluster or a repository, so that a probe is answered at once whatever they do; and whoever connects costs
//! at most one of a bounded number of connections, for a bounded time.

pub mod hooks;
pub mod page;
mod probes;
mod viewing;

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::metrics::{self, Metrics};
use hooks::Hooks;
pub use probes::{Health, MAX_SILENCE};
pub use viewing::{MAX_LISTENERS, Viewing, Wanted};

/// The most connections at a time; more wait to be accepted.
pub const MAX_CONNECTIONS: usize = 128;
/// The most connections of the status page at a time, beside those.
pub const MAX_PAGE_CONNECTIONS: usize = 64;
/// The longest wait for a request, also for the next one on an open connection.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that a connection lasts, however it is used: a reader that is slow holds its place no longer.
pub const CONNECTION_TIMEOUT: Duration = Duration::from_secs(300);
/// The longest that an answer may go on once the daemon stops.
pub const LAST_WORDS: Duration = Duration::from_secs(3);
/// The most bytes that a request may have before its body.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The most attempts to accept a connection that fail in a row, a second apart.
const MAX_FAILURES: u32 = 60;

const PLAIN: &str = "text/plain; charset=utf-8";
const UNKNOWN: &str =
    "There is nothing here; there are /healthz, /readyz, /metrics and, with a secret for them, /hooks/.\n";

type Answer = (StatusCode, [(HeaderName, &'static str); 1], String);

/// Answers until `stop` ends, then lets the answers that are under way end. An error means that connections
/// cannot be accepted any more.
pub async fn serve(
    listener: TcpListener,
    health: Health,
    metrics: Metrics,
    hooks: Option<Hooks>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    accept(listener, router(health, metrics, hooks), MAX_CONNECTIONS, stop).await
}

/// The same for the status page, on a listener of its own: whoever looks at it keeps no probe waiting.
pub async fn serve_page(
    listener: TcpListener,
    viewing: Viewing,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    accept(listener, viewing.router(), MAX_PAGE_CONNECTIONS, stop).await
}

async fn accept(
    listener: TcpListener,
    router: Router,
    most: usize,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let service = TowerToHyperService::new(router);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let (closing, _) = watch::channel(());
    // When this future is dropped, so are the connections.
    let mut open = JoinSet::new();
    let mut failures = 0;
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < most => match accepted {
                Ok((stream, _)) => {
                    failures = 0;
                    let closing = closing.subscribe();
                    open.spawn(answer(stream, http.clone(), service.clone(), closing));
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

/// Serves one connection until it ends, lasts too long, or `closing` is closed.
async fn answer(
    stream: TcpStream,
    http: http1::Builder,
    service: TowerToHyperService<Router>,
    mut closing: watch::Receiver<()>,
) {
    // Only makes small answers faster.
    let _ = stream.set_nodelay(true);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // What went wrong is the client's matter, and nobody is left to be told.
        _ = connection.as_mut() => return,
        _ = closing.changed() => {}
        () = sleep(CONNECTION_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_WORDS, connection).await;
}

fn router(health: Health, metrics: Metrics, hooks: Option<Hooks>) -> Router {
    let probes = Router::new()
        .route("/healthz", get(|State(health): State<Health>| async move { probe("alive", health.lives()) }))
        .route(
            "/readyz",
            get(|State(health): State<Health>| async move { probe("ready", health.is_ready()) }),
        )
        .with_state(health);
    let figures = Router::new()
        .route("/metrics", get(|State(metrics): State<Metrics>| async move { figures(&metrics) }))
        .with_state(metrics);
    let told = hooks.map(Hooks::router).unwrap_or_default();
    probes
        .merge(figures)
        .merge(told)
        .fallback(|| async { text(StatusCode::NOT_FOUND, PLAIN, UNKNOWN.to_owned()) })
}

fn probe(good: &str, told: Result<(), String>) -> Answer {
    match told {
        Ok(()) => text(StatusCode::OK, PLAIN, format!("{good}\n")),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{why}\n")),
    }
}

fn figures(metrics: &Metrics) -> Answer {
    text(StatusCode::OK, metrics::CONTENT_TYPE, metrics.render())
}

fn text(status: StatusCode, content_type: &'static str, body: String) -> Answer {
    (status, [(CONTENT_TYPE, content_type)], body)
}
