//! Listeners of the daemon: one address for probes, metrics and webhooks, one for the status page.
//!
//! In: settings. Out: servers, which end with the daemon.

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::controller::Board;
use crate::metrics::Metrics;
use crate::serve::webhooks::WebhookEndpoint;
use crate::serve::{DaemonHealth, LiveRequest, StatusPage, serve, serve_page, serve_probes};
use crate::settings::Settings;

/// The most requests for live objects that wait in the queue.
const MAX_LOOKS: usize = 16;

/// Serves probes, metrics and webhooks; `None` if no address is configured.
pub(super) async fn start_server(
    settings: &Settings,
    health: &DaemonHealth,
    metrics: &Metrics,
    hooks: Option<WebhookEndpoint>,
    mut ending: watch::Receiver<bool>,
) -> anyhow::Result<Option<tokio::task::JoinHandle<std::io::Result<()>>>> {
    if settings.listen.is_empty() {
        return Ok(None);
    }
    let listener = TcpListener::bind(&*settings.listen)
        .await
        .with_context(|| format!("cannot listen on {}", settings.listen))?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "listening");
    }
    let stop = async move {
        // If the sender is gone, the daemon has ended, so the server ends as well.
        let _ = ending.wait_for(|ending| *ending).await;
    };
    Ok(Some(tokio::spawn(serve(listener, health.clone(), metrics.clone(), hooks, stop))))
}

/// Serves probes on an address of their own, if one is configured.
pub(super) async fn listen_to_probes(
    settings: &Settings,
    health: &DaemonHealth,
    mut ending: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let Some(probes) = settings.probes.as_deref() else { return Ok(()) };
    let listener =
        TcpListener::bind(probes).await.with_context(|| format!("cannot listen on {probes} for probes"))?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "listening for probes");
    }
    let stop = async move {
        let _ = ending.wait_for(|ending| *ending).await;
    };
    tokio::spawn(serve_probes(listener, health.clone(), stop));
    Ok(())
}

/// Serves the status page, if it is configured. Returns its board and the requests of its viewers.
/// An address that cannot be bound is only logged: it is no reason to stop syncing.
pub(super) async fn start_page(
    settings: &Settings,
    ending: watch::Receiver<bool>,
) -> (Board, mpsc::Receiver<LiveRequest>) {
    let nobody = || (Board::new(false), mpsc::channel(1).1);
    let bound = match settings.page.as_deref() {
        Some(page) => Some((page, TcpListener::bind(page).await)),
        None => None,
    };
    let listener = match bound {
        Some((_, Ok(listener))) => listener,
        Some((page, Err(error))) => {
            tracing::warn!(%error, "there is no status page: it cannot be bound to {page}; see the setting page");
            return nobody();
        }
        None => return nobody(),
    };
    let address = listener.local_addr().ok();
    if let Some(address) = address {
        tracing::info!("the status page is at http://{address}/");
    }
    start_page_on(listener, ending)
}

/// Serves the status page on a listener.
pub(super) fn start_page_on(
    listener: TcpListener,
    mut ending: watch::Receiver<bool>,
) -> (Board, mpsc::Receiver<LiveRequest>) {
    let (want, looks) = mpsc::channel(MAX_LOOKS);
    let board = Board::new(true);
    let address = listener.local_addr().ok();
    let is_private = address.is_some_and(|address| address.ip().is_loopback());
    let viewing = StatusPage::new(board.watch(), want, ending.clone(), is_private);
    let stop = async move {
        let _ = ending.wait_for(|ending| *ending).await;
    };
    tokio::spawn(serve_page(listener, viewing, stop));
    (board, looks)
}
