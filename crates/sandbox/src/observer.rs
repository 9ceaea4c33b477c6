//! Observation of requests in a simulation, and clients whose requests can be held up.
//!
//! In: a function that is called for every request that was carried out or refused.
//! Out: [`ClientLink`], the named connection of one client. A request that is held up and cancelled
//! meanwhile never arrives.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Sandbox;
use super::connect::{ResponseBody, respond};
use crate::request::ApiRequest;
use crate::response::ApiResponse;

/// A request that arrived, and its result.
#[derive(Debug)]
pub struct ObservedRequest<'a> {
    /// Name of the link, or the bearer token of a client on a socket.
    pub client: &'a str,
    /// HTTP method.
    pub method: &'a Method,
    /// Path and query.
    pub uri: &'a str,
    /// Request body.
    pub body: &'a [u8],
    /// Time at which the client sent it.
    pub sent: Instant,
    /// Object before the request, if it is a write.
    pub before: Option<Value>,
    /// True if this reports that a watch has sent all its initial events.
    pub initial_events_sent: bool,
    /// Status code of the response, even if that did not reach the client.
    pub code: u16,
}

/// Callback for every request.
pub(super) type RequestObserver = Box<dyn Fn(&ObservedRequest<'_>) + Send + Sync>;

/// Connection of one client to the server; cheap to clone.
#[derive(Debug, Clone)]
pub struct ClientLink {
    name: Arc<str>,
    held: watch::Sender<bool>,
}

impl ClientLink {
    /// Holds up all further requests, or releases them.
    pub fn set_held(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Name of the client.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until requests are not held up.
    pub(super) async fn wait_until_open(&self) {
        // Cannot fail: the sender lives as long as `self`.
        let _ = self.held.subscribe().wait_for(|held| !held).await;
    }
}

/// Server reached over such a connection.
#[derive(Clone)]
struct LinkService(Sandbox, ClientLink);

/// Creates a client with a name that the observer sees.
pub(super) fn named_client(sandbox: &Sandbox, name: &str) -> (kube::Client, ClientLink) {
    let line = ClientLink { name: name.into(), held: watch::Sender::new(false) };
    (kube::Client::new(LinkService(sandbox.clone(), line.clone()), "default"), line)
}

/// Answers a request and reports it to the observer.
pub(super) async fn handle_observed(
    sandbox: &Sandbox,
    ask: &ApiRequest,
    tap: &RequestObserver,
    who: &str,
    sent: Instant,
) -> ApiResponse {
    let path = ask.uri.split('?').next().unwrap_or_default();
    let before = if ask.method == Method::GET { None } else { sandbox.get(path) };
    let answer = sandbox.handle(ask).await;
    let (method, place, body) = (&ask.method, ask.uri.as_str(), ask.bytes());
    tap(&ObservedRequest {
        client: who,
        method,
        uri: place,
        body,
        sent,
        before,
        initial_events_sent: false,
        code: answer.code,
    });
    answer
}

/// Reports that a watch has sent all its initial events.
pub(super) fn observe_initial_events_sent(sandbox: &Sandbox, who: &str, place: &str) {
    if let Some(tap) = sandbox.0.tap.get() {
        let (method, sent) = (&Method::GET, Instant::now());
        tap(&ObservedRequest {
            client: who,
            method,
            uri: place,
            body: b"",
            sent,
            before: None,
            initial_events_sent: true,
            code: 200,
        });
    }
}

impl tower_service::Service<Request<kube::client::Body>> for LinkService {
    type Response = Response<ResponseBody>;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, std::io::Result<Response<ResponseBody>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(respond(self.0.clone(), request, Some(self.1.clone())))
    }
}
