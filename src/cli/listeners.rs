//! Listeners of the daemon: one address for probes, metrics and webhooks, one for the status page.
//!
//! In: settings. Out: servers, which end with the daemon.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::cluster::Cluster;
use crate::controller::console::{ConsoleWork, serve_console_work};
use crate::controller::{Board, Context, serve_live_objects};
use crate::metrics::Metrics;
use crate::serve::actions::ActionRequest;
use crate::serve::login::{MAX_REVIEWS, SignIn, serve_token_reviews};
use crate::serve::rights::ConsoleAccess;
use crate::serve::viewer::{AccessRequest, AccessReviews};
use crate::serve::webhooks::WebhookEndpoint;
use crate::serve::{DaemonHealth, LiveRequest, StatusPage, serve, serve_page, serve_probes};
use crate::settings::Settings;
use crate::source::Repositories;

/// The most requests for live objects that wait in the queue.
const MAX_LOOKS: usize = 16;
/// The most questions about rights that wait in the queue.
const MAX_QUESTIONS: usize = 256;
/// The most actions that wait in the queue.
const MAX_ACTIONS: usize = 16;

/// Requests of people on the page.
pub(super) struct PageRequests {
    /// For what is in the cluster now.
    pub(super) looks: mpsc::Receiver<LiveRequest>,
    /// About rights.
    pub(super) questions: mpsc::Receiver<AccessRequest>,
    /// For actions.
    pub(super) actions: mpsc::Receiver<ActionRequest>,
}

/// Creates the channels of a page: for the page, and for those who answer.
pub(super) fn page_channels() -> (mpsc::Sender<LiveRequest>, ConsoleAccess, PageRequests) {
    let (want, looks) = mpsc::channel(MAX_LOOKS);
    let (ask, questions) = mpsc::channel(MAX_QUESTIONS);
    let (act, actions) = mpsc::channel(MAX_ACTIONS);
    let access = ConsoleAccess { reviews: AccessReviews::new(ask), actions: act };
    (want, access, PageRequests { looks, questions, actions })
}

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
    (network, namespace, reviewer): (&Repositories, &str, Cluster),
    ending: watch::Receiver<bool>,
) -> (Board, PageRequests) {
    let nobody = || (Board::new(false), page_channels().2);
    let (review, reviews) = mpsc::channel(MAX_REVIEWS);
    let sign_in = match SignIn::new(&settings.console, review, network, namespace) {
        Ok(sign_in) => sign_in,
        Err(error) => {
            tracing::warn!(%error, "there is no status page: nobody could sign in; see the setting console");
            return nobody();
        }
    };
    tokio::spawn(serve_token_reviews(reviewer, reviews));
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
        let scheme = if settings.console.get("tls").is_some() { "https" } else { "http" };
        tracing::info!("the status page is at {scheme}://{address}/");
    }
    start_page_on(listener, sign_in, ending)
}

/// Serves the status page on a listener.
pub(super) fn start_page_on(
    listener: TcpListener,
    sign_in: Option<SignIn>,
    mut ending: watch::Receiver<bool>,
) -> (Board, PageRequests) {
    let (want, access, requests) = page_channels();
    let board = Board::new(true);
    let address = listener.local_addr().ok();
    let is_private = address.is_some_and(|address| address.ip().is_loopback());
    let viewing = StatusPage::new(board.watch(), want, ending.clone(), is_private);
    let viewing = viewing.with_console(access).with_sign_in(sign_in);
    let stop = async move {
        let _ = ending.wait_for(|ending| *ending).await;
    };
    tokio::spawn(serve_page(listener, viewing, stop));
    (board, requests)
}

/// Serves what people on the page ask for, in one term of the Lease; never returns.
pub(super) async fn serve_people(page: &mut PageRequests, context: Arc<Context>) {
    let ((want, wanted), (ask, asked)) = (mpsc::channel(1), mpsc::channel(1));
    let (act, acts) = mpsc::channel(1);
    let work = ConsoleWork::of_daemon(&context);
    tokio::select! {
        () = serve_live_objects(context, wanted) => {}
        () = serve_console_work(work, asked, acts) => {}
        () = relay(&mut page.looks, want) => {}
        () = relay(&mut page.questions, ask) => {}
        () = relay(&mut page.actions, act) => {}
    }
}

/// Forwards messages until the receiver is dropped; never returns.
pub(super) async fn relay<T>(from: &mut mpsc::Receiver<T>, to: mpsc::Sender<T>) {
    while let Some(one) = from.recv().await {
        if to.send(one).await.is_err() {
            break;
        }
    }
    std::future::pending().await
}
