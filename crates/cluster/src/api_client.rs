//! Sends single requests to the API server.
//!
//! In: an [`ApiRequest`].
//! Out: an [`ApiResponse`], or an [`ApiError`]. Every request of the daemon except those for its
//! Lease passes here, where it gets a deadline, is counted by its class, and is not sent if the
//! daemon has lost the Lease.

use std::ops::RangeInclusive;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::lease::{Terms, WritePermit};
use crate::api_error::{ApiError, ApiStatus, StatusCause};
use crate::outage_log::OutageLog;
use crate::rewind_detection::WriteHistory;
use crate::transport::innermost_cause;
use moorline_metrics::{Metrics, RequestClass};
use moorline_runtime::clock;

/// Platform that our sandbox reports.
const SANDBOX: &str = "moorline/sandbox";

/// Maximum number of bytes of a response. A page of the metadata of 500 objects is far below.
const MAX_ANSWER: usize = 64 << 20;

/// Maximum number of bytes of the version of a server, which is shown to people.
const MAX_RELEASE: usize = 128;

/// Maximum number of warnings that are kept of a response.
const MAX_WARNINGS: usize = 5;

/// Accept header for metadata alone, where the server supports it.
pub(super) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// Accept header for lists of metadata.
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Accept header for whole objects.
pub(super) const WHOLE: &str = "application/json";

/// A request before it is sent.
#[derive(Debug)]
pub(super) struct ApiRequest {
    pub(super) class: RequestClass,
    /// Verb, as in the API server's audit log.
    pub(super) verb: &'static str,
    /// True for an apply of a desired object, which has its own timing metric.
    pub(super) applies: bool,
    pub(super) uri: String,
    pub(super) accept: &'static str,
    pub(super) content: Option<(&'static str, Vec<u8>)>,
    /// Permit of the term in which it was queued; none before that.
    pub(super) permit: Option<WritePermit>,
}

impl ApiRequest {
    pub(super) fn new(class: RequestClass, verb: &'static str, uri: String) -> Self {
        Self { class, verb, applies: false, uri, accept: WHOLE, content: None, permit: None }
    }

    pub(super) fn accept(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    pub(super) fn content(self, of: &'static str, body: Vec<u8>) -> Self {
        Self { content: Some((of, body)), ..self }
    }

    pub(super) fn applies(self) -> Self {
        Self { applies: true, ..self }
    }

    fn method(&self) -> Method {
        match self.verb {
            "patch" => Method::PATCH,
            "delete" => Method::DELETE,
            "create" => Method::POST,
            "update" => Method::PUT,
            _ => Method::GET,
        }
    }

    fn writes(&self) -> bool {
        self.method() != Method::GET
    }
}

/// A response with a success status.
#[derive(Debug)]
pub(super) struct ApiResponse {
    pub(super) created: bool,
    pub(super) warnings: Vec<Box<str>>,
    pub(super) body: Vec<u8>,
}

impl ApiResponse {
    /// Parses the body.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.body).map_err(|error| unreadable(&error))
    }
}

/// Error for unexpected JSON. The parser's message may quote a value, which may be secret.
pub(super) fn unreadable(error: &serde_json::Error) -> ApiError {
    let what = if error.is_data() { "of an unexpected form" } else { "not JSON" };
    ApiError::InvalidResponse(
        format!("it is {what} (at byte {} of line {})", error.column(), error.line()).into(),
    )
}

/// Client of one API server, as one identity.
#[derive(Clone)]
pub(super) struct ApiClient {
    pub(super) client: kube::Client,
    pub(super) metrics: Metrics,
    pub(super) terms: Terms,
    pub(super) timeout: Duration,
    /// Shortest and longest duration of a watch request.
    pub(super) open: RangeInclusive<Duration>,
    pub(super) write_history: WriteHistory,
    pub(super) complaints: OutageLog,
    /// True if the server runs on this machine.
    pub(super) is_local: bool,
}

impl ApiClient {
    /// Sends a request and reads the whole response.
    pub(super) async fn send(&self, call: ApiRequest) -> Result<ApiResponse, ApiError> {
        let (class, verb, begun) = (call.class, call.verb, clock::now());
        let (within, applies) = (self.within(&call), call.applies);
        let path = call.uri.split('?').next().unwrap_or_default().to_owned();
        let work = async {
            let response = self.begin(call).await?;
            let (status, created) = (response.status(), response.status() == http::StatusCode::CREATED);
            let (head, body) = response.into_parts();
            let body = collect(body).await?;
            if !status.is_success() {
                return Err(ApiError::Refused(Box::new(refusal(status.as_u16(), &head.headers, &body))));
            }
            Ok(ApiResponse { created, warnings: warnings(&head.headers), body })
        };
        let done = ended_within(within, work).await;
        let code = match &done {
            Ok(reply) if reply.created => 201,
            Ok(_) => 200,
            Err(failure) => failure.code().unwrap_or_default(),
        };
        self.metrics.request(class, verb, code);
        self.complaints.note(class, verb, &path, done.as_ref().err());
        if class == RequestClass::Object {
            self.metrics.object_request(if applies { "apply" } else { verb }, clock::since(begun));
        }
        tracing::debug!(target: "moorline_trace", verb, path, code, took = ?clock::since(begun), "asked");
        done
    }

    /// Sends a watch request, and returns the body of the response.
    pub(super) async fn stream(&self, call: ApiRequest) -> Result<Body, ApiError> {
        let (class, verb) = (call.class, call.verb);
        let path = call.uri.split('?').next().unwrap_or_default().to_owned();
        let work = async {
            let response = self.begin(call).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response.into_body());
            }
            let (head, body) = response.into_parts();
            Err(ApiError::Refused(Box::new(refusal(status.as_u16(), &head.headers, &collect(body).await?))))
        };
        let done = tokio::time::timeout(self.timeout, work).await;
        let done = done.unwrap_or(Err(ApiError::Timeout(self.timeout)));
        let code = done.as_ref().map_or_else(|failure| failure.code().unwrap_or_default(), |_| 200);
        self.metrics.request(class, verb, code);
        self.complaints.note(class, verb, &path, done.as_ref().err());
        done
    }

    /// Reads the server's release. None if it is refused: a server that has only just started
    /// forbids even that. What cannot be a version is none.
    pub(super) async fn release(&self) -> Result<Option<Box<str>>, ApiError> {
        match self.send(ApiRequest::new(RequestClass::Watch, "get", "/version".to_owned())).await {
            Ok(reply) => {
                let release = reply.json::<Release>().ok();
                Ok(release.map(|release| release.git_version).filter(|text| is_version(text)))
            }
            Err(ApiError::Refused(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Timeout of a request: a write must end before another daemon can have taken the Lease.
    fn within(&self, call: &ApiRequest) -> Duration {
        let left = self.permit_of(call).time_left().filter(|_| call.writes());
        // Without any time left the request is refused just before it is sent, with the right
        // error.
        left.filter(|left| !left.is_zero()).map_or(self.timeout, |left| left.min(self.timeout))
    }

    /// Returns the permit of the term in which the request was queued, or else the current one.
    fn permit_of(&self, call: &ApiRequest) -> WritePermit {
        call.permit.clone().unwrap_or_else(|| self.terms.current())
    }

    async fn begin(&self, call: ApiRequest) -> Result<Response<Body>, ApiError> {
        let bad = |error: http::Error| ApiError::InvalidResponse(error.to_string().into());
        let mut request =
            Request::builder().method(call.method()).uri(&call.uri).header(header::ACCEPT, call.accept);
        let permit = call.writes().then(|| self.permit_of(&call));
        let body = match call.content {
            Some((of, body)) => {
                request = request.header(header::CONTENT_TYPE, of);
                Body::from(body)
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(bad)?;
        // Checked last, so that no write begins after the Lease was lost.
        if permit.is_some_and(|permit| !permit.may_write()) {
            return Err(ApiError::NotLeader);
        }
        let sent = self.client.send(request).await;
        sent.map_err(|error| {
            self.write_history.interrupted();
            unreachable(error)
        })
    }

    /// True if this is a sandbox on this machine, which serves no other daemon.
    pub(super) async fn is_sandbox(&self) -> bool {
        #[derive(Default, Deserialize)]
        struct About {
            platform: Box<str>,
        }
        if !self.is_local {
            return false;
        }
        let reply = self.send(ApiRequest::new(RequestClass::Watch, "get", "/version".to_owned())).await;
        reply.and_then(|reply| reply.json::<About>()).is_ok_and(|about| &*about.platform == SANDBOX)
    }
}

/// Runs a request for at most this time, and never continues it later. A timeout alone is not
/// enough: after a pause of the whole process, a connection that was being made would carry a write
/// that another daemon no longer expects, before the timeout is noticed.
async fn ended_within<T>(
    within: Duration,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let (begun, mut work) = (clock::now(), std::pin::pin!(work));
    let in_time = std::future::poll_fn(|context| match clock::since(begun) < within {
        true => work.as_mut().poll(context),
        false => Poll::Ready(Err(ApiError::Timeout(within))),
    });
    tokio::time::timeout(within, in_time).await.unwrap_or(Err(ApiError::Timeout(within)))
}

#[derive(Deserialize)]
struct Release {
    #[serde(rename = "gitVersion")]
    git_version: Box<str>,
}

/// True for a text that can be a version: the server of a tenant may send anything.
fn is_version(text: &str) -> bool {
    (1..=MAX_RELEASE).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The innermost cause names the problem; the outer ones only say that there is one.
fn unreachable(error: kube::Error) -> ApiError {
    ApiError::Unreachable(innermost_cause(&error))
}

async fn collect(body: Body) -> Result<Vec<u8>, ApiError> {
    match Limited::new(body, MAX_ANSWER).collect().await {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) => Err(ApiError::Unreachable(error.to_string().into())),
    }
}

/// Parses `299 - "text"`, the format of the API server.
fn warnings(headers: &HeaderMap) -> Vec<Box<str>> {
    let texts = headers.get_all(header::WARNING).iter().filter_map(|value| value.to_str().ok());
    let inner = texts.filter_map(|text| Some(text.split_once('"')?.1.trim_end_matches('"')));
    inner.map(Box::from).take(MAX_WARNINGS).collect()
}

fn refusal(code: u16, headers: &HeaderMap, body: &[u8]) -> ApiStatus {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        reason: Box<str>,
        message: Box<str>,
        details: Option<Details>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Details {
        causes: Vec<StatusCause>,
        retry_after_seconds: u64,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let details = status.details.unwrap_or_default();
    let header = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let seconds = header.or(Some(details.retry_after_seconds).filter(|seconds| *seconds > 0));
    ApiStatus {
        code,
        reason: status.reason,
        message: status.message,
        causes: details.causes,
        retry_after: seconds.map(Duration::from_secs),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scripted_server::scripted_cluster;

    #[test]
    fn a_request_is_not_continued_after_its_time_whatever_comes_first() {
        use futures::FutureExt as _;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let is_sent = std::cell::Cell::new(false);
        let mut polls = 0;
        // It waits for a connection at first, and would send at the second poll.
        let work = std::future::poll_fn(|_| {
            polls += 1;
            is_sent.set(polls > 1);
            if polls > 1 { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        let mut request = Box::pin(ended_within(Duration::from_millis(20), work));
        assert!(request.as_mut().now_or_never().is_none());
        // The process is stopped, and the connection is there before a timer has fired.
        std::thread::sleep(Duration::from_millis(40));
        assert!(matches!(request.now_or_never(), Some(Err(ApiError::Timeout(_)))));
        assert!(!is_sent.get());
    }

    #[test]
    fn a_refusal_says_when_to_ask_again() {
        let check = |header: Option<&str>, details: serde_json::Value, expect: Option<u64>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert(header::RETRY_AFTER, value.parse().unwrap());
            }
            let body =
                json!({"reason": "TooManyRequests", "message": "later", "details": details}).to_string();
            let refusal = refusal(429, &headers, body.as_bytes());
            assert_eq!(refusal.retry_after, expect.map(Duration::from_secs), "{header:?} {details}");
            assert_eq!((&*refusal.reason, &*refusal.message), ("TooManyRequests", "later"));
        };
        check(Some("5"), json!(null), Some(5));
        check(None, json!({"retryAfterSeconds": 7}), Some(7));
        check(Some("5"), json!({"retryAfterSeconds": 7}), Some(5));
        check(None, json!({"retryAfterSeconds": 0}), None);
        check(None, json!({"causes": []}), None);
        // Proxies may send a date, which is ignored.
        check(Some("Wed, 21 Oct 2026 07:28:00 GMT"), json!({}), None);
        check(Some("Wed, 21 Oct 2026 07:28:00 GMT"), json!({"retryAfterSeconds": 7}), Some(7));
        // Error pages of proxies are not JSON; the header counts all the same.
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, "9".parse().unwrap())]);
        let proxied = refusal(503, &headers, b"<html>busy</html>");
        assert_eq!((proxied.retry_after, &*proxied.message), (Some(Duration::from_secs(9)), ""));
    }

    #[tokio::test]
    async fn a_text_that_can_be_no_version_is_not_shown() {
        let longest = "v".repeat(MAX_RELEASE);
        let longer = format!("{longest}1");
        for (text, is_shown) in [
            ("v1.33.4-gke.1013000+a_b", true),
            (&*longest, true),
            (&*longer, false),
            ("", false),
            ("v1\u{1b}[2J", false),
            ("v1 \u{202e}", false),
        ] {
            let body = json!({"gitVersion": text}).to_string();
            let cluster = scripted_cluster(move |_| (200, body.clone()));
            let found = cluster.0.wire.release().await.unwrap();
            assert_eq!(found.as_deref(), Some(text).filter(|_| is_shown), "{text:?}");
        }
    }

    #[test]
    fn warnings_are_reported_without_their_wrapping_and_not_too_many() {
        let mut headers = HeaderMap::new();
        for nth in 0..7 {
            headers.append(header::WARNING, format!("299 - \"field {nth} is old\"").parse().unwrap());
        }
        headers.insert("x-other", "299 - \"no\"".parse().unwrap());
        let told = warnings(&headers);
        assert_eq!((told.len(), &*told[0], &*told[4]), (5, "field 0 is old", "field 4 is old"));
        assert!(warnings(&HeaderMap::from_iter([(header::WARNING, "odd".parse().unwrap())])).is_empty());
    }
}
