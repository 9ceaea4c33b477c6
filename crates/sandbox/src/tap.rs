//! What a simulation sees of a server: who asked for what, and what came of it; and a client's way, held up.
//!
//! In: a function that is told of every request that was carried out or refused. Out: [`Line`], the way of one client,
//! known by its name. A request that is held up and given up meanwhile never arrives.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Sandbox;
use super::answer::Answer;
use super::ask::Ask;
use super::connect::Sent;

/// A request that has arrived, and what came of it.
#[derive(Debug)]
pub struct Heard<'a> {
    /// Whose it is: the name of the line, or the token of a client by a socket.
    pub who: &'a str,
    /// Its method.
    pub method: &'a Method,
    /// Its path and query.
    pub place: &'a str,
    /// What it carries.
    pub body: &'a [u8],
    /// When its client sent it.
    pub sent: Instant,
    /// The object before, if it is a write.
    pub before: Option<Value>,
    /// It is a watch that has told all that there was at its beginning.
    pub listed: bool,
    /// The status of the answer, whether or not that reached the client.
    pub code: u16,
}

/// Who is told.
pub(super) type Tap = Box<dyn Fn(&Heard<'_>) + Send + Sync>;

/// The way of one client to the server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Line {
    name: Arc<str>,
    held: watch::Sender<bool>,
}

impl Line {
    /// From now on its requests are held up, or not any more.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Whose it is.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns when nothing holds up its requests.
    pub(super) async fn is_open(&self) {
        // The sender lives as long as this.
        let _ = self.held.subscribe().wait_for(|held| !held).await;
    }
}

/// A server by such a way.
#[derive(Clone)]
struct Way(Sandbox, Line);

impl Sandbox {
    /// A client that the tap knows by a name.
    pub fn client_of(&self, name: &str) -> (kube::Client, Line) {
        let line = Line { name: name.into(), held: watch::Sender::new(false) };
        (kube::Client::new(Way(self.clone(), line.clone()), "default"), line)
    }

    /// Answers a request, and tells of it.
    pub(super) async fn handle_heard(&self, ask: &Ask, tap: &Tap, who: &str, sent: Instant) -> Answer {
        let path = ask.uri.split('?').next().unwrap_or_default();
        let before = if ask.method == Method::GET { None } else { self.get(path) };
        let answer = self.handle(ask).await;
        let (method, place, body) = (&ask.method, ask.uri.as_str(), ask.bytes());
        tap(&Heard { who, method, place, body, sent, before, listed: false, code: answer.code });
        answer
    }

    /// Tells that a watch has come to the end of its beginning.
    pub(super) fn hear_listed(&self, who: &str, place: &str) {
        if let Some(tap) = self.0.tap.get() {
            let (method, sent) = (&Method::GET, Instant::now());
            tap(&Heard { who, method, place, body: b"", sent, before: None, listed: true, code: 200 });
        }
    }

    /// From now on this is told of every request, in the order in which they are carried out. It must not ask the server.
    pub fn tap(&self, told: impl Fn(&Heard<'_>) + Send + Sync + 'static) {
        // The first one stays.
        let _ = self.0.tap.set(Box::new(told));
    }
}

impl tower_service::Service<Request<kube::client::Body>> for Way {
    type Response = Response<Sent>;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, std::io::Result<Response<Sent>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(self.0.clone().respond(request, Some(self.1.clone())))
    }
}
