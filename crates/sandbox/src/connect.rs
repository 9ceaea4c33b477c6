//! Transports: a Tower service for a client in this process, and HTTP over a socket.
//!
//! In: HTTP requests.
//! Out: HTTP responses, with the faults that were configured.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Body as HttpBody, Bytes, Frame};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Sandbox;
use super::faults::RequestFault;
use crate::observer::{ClientLink, handle_observed, observe_initial_events_sent};
use crate::request::ApiRequest;
use crate::response::{ApiResponse, Body};
use crate::status_error::StatusError;

/// Maximum size of a request body in bytes, the same as in a real API server.
const MAX_BODY: usize = 3 << 20;
/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 1024;

/// Annotation of the bookmark that ends the initial events of a watch.
const BEGINNING_ENDS: &str = "k8s.io/initial-events-end";

/// Body of an HTTP response.
pub type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

/// Answers a request, unless an injected fault loses the request or its response.
pub(super) async fn respond<B>(
    sandbox: Sandbox,
    request: Request<B>,
    line: Option<ClientLink>,
) -> io::Result<Response<ResponseBody>>
where
    B: HttpBody,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let sent = Instant::now();
    if let Some(line) = &line {
        line.wait_until_open().await;
    }
    if let Some(time) = sandbox.faults().latency() {
        tokio::time::sleep(time).await;
    }
    let writes = request.method() != Method::GET;
    let fate = sandbox.faults().next_request_fault(writes);
    let (head, body) = request.into_parts();
    let body = pin!(Limited::new(body, MAX_BODY)).collect().await;
    let answer = match (fate, body) {
        (Some(RequestFault::Unreached), _) => return Err(lost()),
        (Some(RequestFault::TooMany), _) => ApiResponse::from(StatusError::too_many(1)),
        (Some(RequestFault::Internal), _) => ApiResponse::from(StatusError::internal("injected fault")),
        (Some(RequestFault::Conflict), _) => ApiResponse::from(StatusError::busy()),
        (Some(RequestFault::Lost) | None, Err(_)) => ApiResponse::from(StatusError::too_large(MAX_BODY)),
        (Some(RequestFault::Lost) | None, Ok(body)) => {
            let ask = ApiRequest::new(head.method, &head.uri, head.headers, body.to_bytes().into());
            sandbox.note(&ask);
            match sandbox.0.tap.get() {
                None => sandbox.handle(&ask).await,
                Some(tap) => {
                    let who = line.as_ref().map_or(ask.token(), ClientLink::name);
                    handle_observed(&sandbox, &ask, tap, who, sent).await
                }
            }
        }
    };
    if fate == Some(RequestFault::Lost) {
        return Err(lost());
    }
    let place = head.uri.to_string();
    let listed = line.map(|line| move || observe_initial_events_sent(&sandbox, line.name(), &place));
    response(answer, listed)
}

/// Serves HTTP on a socket until the future is dropped. Returns an error only if no more
/// connections can be accepted.
pub(super) async fn serve(sandbox: Sandbox, listener: TcpListener) -> io::Result<()> {
    // Dropping this future closes the connections, too.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < MAX_CONNECTIONS => {
                let (stream, _) = accepted?;
                // Failure is harmless: this only speeds up small responses.
                let _ = stream.set_nodelay(true);
                let sandbox = sandbox.clone();
                open.spawn(async move {
                    let service = service_fn(move |request| respond(sandbox.clone(), request, None));
                    let mut http = http1::Builder::new();
                    http.timer(TokioTimer::new());
                    // A connection error concerns only the client.
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        }
    }
}

/// Tower service through which a client in this process reaches the server.
#[derive(Clone)]
pub struct Service(pub(super) Sandbox);

impl tower_service::Service<Request<kube::client::Body>> for Service {
    type Response = Response<ResponseBody>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<ResponseBody>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(respond(self.0.clone(), request, None))
    }
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "injected fault: connection reset")
}

/// Builds the HTTP response; `listed` is called when a watch has sent all initial events.
fn response(
    answer: ApiResponse,
    listed: Option<impl Fn() + Send + 'static>,
) -> io::Result<Response<ResponseBody>> {
    let mut response = Response::builder().status(answer.code).header(header::CONTENT_TYPE, answer.content);
    if let Some(seconds) = answer.retry_after {
        response = response.header(header::RETRY_AFTER, seconds);
    }
    for warning in &answer.warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response = response.header(header::WARNING, value);
        }
    }
    let body = match answer.body {
        Body::Complete(text) => Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync(),
        Body::Watch(follow) => {
            let told: BoxStream<'static, io::Result<Frame<Bytes>>> =
                stream::unfold((follow, listed), async |(mut follow, listed)| {
                    let told = follow.next().await?;
                    if listed.is_some() && String::from_utf8_lossy(&told).contains(BEGINNING_ENDS) {
                        listed.iter().for_each(|listed| listed());
                    }
                    Some((Ok(Frame::data(Bytes::from(told))), (follow, listed)))
                })
                .boxed();
            StreamBody::new(told).boxed_unsync()
        }
    };
    response.body(body).map_err(io::Error::other)
}
