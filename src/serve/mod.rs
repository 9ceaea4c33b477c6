//! HTTP endpoints of the daemon: `/healthz`, `/readyz`, `/metrics`, `/hooks/`, and, on a listener
//! of its own, the status page.
//!
//! In: a listener, a [`DaemonHealth`], [`Metrics`], and a future that completes when the daemon
//! stops. Out: responses. No handler here contacts the cluster or a repository, so a probe is
//! answered at once in any state of theirs. Each client holds at most one of a limited number of
//! connections, for a limited time (`connections.rs`).

pub mod actions;
mod connections;
mod live_requests;
mod live_views;
mod local_door;
mod log_stream;
pub mod login;
mod mcp;
pub mod page;
mod probes;
pub mod rights;
mod status_page;
pub mod viewer;
pub mod webhooks;

use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::{self, Metrics};
use connections::{ConnectionLimits, serve_connections};
pub use live_requests::{LiveRequest, LogRequest};
pub(crate) use local_door::Door;
pub use probes::{DaemonHealth, MAX_SILENCE};
pub use status_page::{LiveObjectRequest, MAX_LISTENERS, StatusPage};
use webhooks::WebhookEndpoint;

/// The most open connections. For one more, an older one is closed.
pub const MAX_CONNECTIONS: usize = 128;
/// The most open connections on the listener for probes only.
pub const MAX_PROBES: usize = 32;
/// The most open connections of the status page, in addition: two for each of 200 viewers, and
/// room for more.
pub const MAX_PAGE_CONNECTIONS: usize = 512;
/// The longest wait for a request, also for the next one on an open connection.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest life of a connection, so that a slow reader cannot hold it for ever.
pub const CONNECTION_TIMEOUT: Duration = Duration::from_secs(300);
/// The longest that a response may take once the daemon stops.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
const PLAIN: &str = "text/plain; charset=utf-8";
const UNKNOWN: &str =
    "Not found. Paths: /healthz, /readyz, /metrics and, if a webhook secret is set, /hooks/.\n";

type TextResponse = (StatusCode, [(HeaderName, &'static str); 1], String);

/// Serves until `stop` completes, then lets running responses finish. Fails if connections cannot
/// be accepted any more.
pub async fn serve(
    listener: TcpListener,
    health: DaemonHealth,
    metrics: Metrics,
    hooks: Option<WebhookEndpoint>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let bounds = ConnectionLimits { most: MAX_CONNECTIONS, keep_alive: true };
    serve_connections(listener, (router(health, metrics, hooks), None), bounds, stop).await
}

/// Serves probes only, on a listener of their own, with one response per connection: metrics,
/// webhooks and strangers on the other listener cannot delay a probe.
pub async fn serve_probes(
    listener: TcpListener,
    health: DaemonHealth,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = probes(health).fallback(|| async {
        text(StatusCode::NOT_FOUND, PLAIN, "Not found. Paths: /healthz, /readyz.\n".to_owned())
    });
    let bounds = ConnectionLimits { most: MAX_PROBES, keep_alive: false };
    serve_connections(listener, (router, None), bounds, stop).await
}

/// Serves the status page on a listener of its own, so that its viewers cannot delay a probe.
pub async fn serve_page(
    listener: TcpListener,
    viewing: StatusPage,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let bounds = ConnectionLimits { most: MAX_PAGE_CONNECTIONS, keep_alive: true };
    let tls = viewing.tls();
    serve_connections(listener, (viewing.router(), tls), bounds, stop).await
}

/// Serves the router of a page that is behind a door of its own.
pub async fn serve_console(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let bounds = ConnectionLimits { most: MAX_PAGE_CONNECTIONS, keep_alive: true };
    serve_connections(listener, (router, None), bounds, stop).await
}

fn probes(health: DaemonHealth) -> Router {
    Router::new()
        .route(
            "/healthz",
            get(|State(health): State<DaemonHealth>| async move { probe("alive", health.liveness()) }),
        )
        .route(
            "/readyz",
            get(|State(health): State<DaemonHealth>| async move { probe("ready", health.readiness()) }),
        )
        .with_state(health)
}

fn router(health: DaemonHealth, metrics: Metrics, hooks: Option<WebhookEndpoint>) -> Router {
    let figures = Router::new()
        .route("/metrics", get(|State(metrics): State<Metrics>| async move { figures(&metrics) }))
        .with_state(metrics);
    let webhooks = hooks.map(WebhookEndpoint::router).unwrap_or_default();
    probes(health)
        .merge(figures)
        .merge(webhooks)
        .fallback(|| async { text(StatusCode::NOT_FOUND, PLAIN, UNKNOWN.to_owned()) })
}

fn probe(good: &str, state: Result<(), String>) -> TextResponse {
    match state {
        Ok(()) => text(StatusCode::OK, PLAIN, format!("{good}\n")),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{why}\n")),
    }
}

fn figures(metrics: &Metrics) -> TextResponse {
    text(StatusCode::OK, metrics::CONTENT_TYPE, metrics.render())
}

fn text(status: StatusCode, content_type: &'static str, body: String) -> TextResponse {
    (status, [(CONTENT_TYPE, content_type)], body)
}
