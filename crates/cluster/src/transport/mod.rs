//! Carries requests to one API server: over HTTP/2 if the server selects it, else over HTTP/1.1.
//!
//! In: the configuration of a client, and a connector that opens TCP connections.
//! Out: a client. Watches have HTTP/2 connections of their own, so that unread events never delay
//! a write. A request is repeated only if the server says that it was not processed.
//! docs/decisions/http2.md has the reasons.

mod connection_state;
mod dialer;
mod http1_pool;
mod http2_connection;
mod lane;
mod response_body;
mod transport_error;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioIo;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower_service::Service;

use dialer::Dialer;
pub(crate) use http1_pool::http1_builder;
use lane::Lane;
use transport_error::TransportError;
pub(crate) use transport_error::innermost_cause;

/// Attempts of a request that the server refuses without processing it.
const ATTEMPTS: usize = 3;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;
type Sent = BoxFuture<'static, Result<Response<ResponseBody>, BoxError>>;

/// Returns a client that offers HTTP/2 on TLS connections, and opens connections by `http`.
pub(crate) fn http2_client<H>(config: &Config, http: H) -> Result<Client, kube::Error>
where
    H: Service<http::Uri, Response = TokioIo<TcpStream>> + Clone + Send + Sync + 'static,
    H::Future: Send + 'static,
    H::Error: Into<BoxError>,
{
    let transport = Transport(Arc::new(TransportState {
        http1: http1(config, http.clone())?,
        http2: Dialer::new(config, http)?.map(Http2Lanes::new),
    }));
    let builder = ClientBuilder::new(transport, config.default_namespace.clone());
    let (builder, base) = (builder.with_layer(&config.extra_headers_layer()?), config.base_uri_layer());
    Ok(match config.auth_layer()? {
        Some(login) => builder.with_layer(&login).with_layer(&base).build(),
        None => builder.with_layer(&base).build(),
    })
}

/// Sends requests over HTTP/1.1, on a connection for each request that is under way.
type Http1 = Box<dyn Fn(Request<Body>) -> Sent + Send + Sync>;

fn http1<H>(config: &Config, http: H) -> Result<Http1, kube::Error>
where
    H: Service<http::Uri, Response = TokioIo<TcpStream>> + Clone + Send + Sync + 'static,
    H::Future: Send + 'static,
    H::Error: Into<BoxError>,
{
    let connector = config.rustls_https_connector_with_connector(http)?;
    let client: HttpClient<_, Body> = http1_builder().build(connector);
    Ok(Box::new(move |request| {
        let sent = client.request(request);
        async move { Ok(sent.await?.map(|body| body.map_err(BoxError::from).boxed_unsync())) }.boxed()
    }))
}

/// The HTTP/2 connections to the server.
struct Http2Lanes {
    /// Requests with a response that never ends by itself soon.
    streams: Arc<Lane>,
    /// All other requests.
    short: Arc<Lane>,
    /// End of the time in which HTTP/2 is not tried, because the server does not speak it.
    avoided: Mutex<Option<Instant>>,
}

impl Http2Lanes {
    fn new(dialer: Dialer) -> Self {
        let dialer = Arc::new(dialer);
        Self {
            streams: Arc::new(Lane::new(dialer.clone())),
            short: Arc::new(Lane::new(dialer)),
            avoided: Mutex::default(),
        }
    }

    fn is_avoided(&self) -> bool {
        let avoided = self.avoided.lock().unwrap_or_else(PoisonError::into_inner);
        avoided.is_some_and(|until| Instant::now() < until)
    }

    fn avoid_until(&self, end: Instant) {
        *self.avoided.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    fn lane(&self, uri: &http::Uri) -> &Arc<Lane> {
        let query = uri.query().unwrap_or_default();
        let is_stream = query.split('&').any(|part| matches!(part, "watch=true" | "follow=true"));
        if is_stream { &self.streams } else { &self.short }
    }
}

/// The innermost service of a client.
#[derive(Clone)]
struct Transport(Arc<TransportState>);

struct TransportState {
    http1: Http1,
    /// None for servers without TLS.
    http2: Option<Http2Lanes>,
}

impl Service<Request<Body>> for Transport {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let state = self.0.clone();
        Box::pin(async move { state.send(request).await })
    }
}

impl TransportState {
    async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let Some(http2) = self.http2.as_ref().filter(|http2| !http2.is_avoided()) else {
            return (self.http1)(request).await;
        };
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        match send_over_http2(http2, &head, &body).await {
            Err(TransportError::NotSpoken { avoid_for }) => {
                http2.avoid_until(Instant::now() + avoid_for);
                tracing::debug!("the API server does not speak HTTP/2: requests go over HTTP/1.1");
                (self.http1)(Request::from_parts(head, Body::from(body))).await
            }
            sent => Ok(sent?),
        }
    }
}

async fn send_over_http2(
    http2: &Http2Lanes,
    head: &Parts,
    body: &Bytes,
) -> Result<Response<ResponseBody>, TransportError> {
    let lane = http2.lane(&head.uri);
    let mut attempt = 1;
    loop {
        let slot = lane.slot().await?;
        match slot.send(request_head(head, body), body.clone()).await {
            Err(TransportError::Unprocessed(_)) if attempt < ATTEMPTS => attempt += 1,
            sent => return sent.map(|response| response.map(BodyExt::boxed_unsync)),
        }
    }
}

/// Returns the head of a request without its body.
fn request_head(head: &Parts, body: &Bytes) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.version_mut() = http::Version::HTTP_2;
    request.headers_mut().clone_from(&head.headers);
    request.headers_mut().remove(http::header::HOST);
    if !body.is_empty() {
        request.headers_mut().insert(http::header::CONTENT_LENGTH, body.len().into());
    }
    request
}

#[cfg(test)]
mod tests;
