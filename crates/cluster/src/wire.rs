//! One request to the API server, and its answer.
//!
//! In: a [`Call`]. Out: a [`Reply`], or a [`Failure`] that says what happened. Every request of the daemon but
//! those for its Lease goes through here, so that here is where each has a deadline, is counted by its class, and
//! is not sent by a daemon that no longer leads.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Cluster;
use super::answer::{Cause, Refusal};
use super::complaints::Complaints;
use super::lease::{Permit, Terms};
use super::newest::Written;
use moorline_metrics::{Class, Metrics};
use moorline_runtime::clock;

/// The platform that a sandbox of ours names.
const SANDBOX: &str = "moorline/sandbox";

/// The most bytes of one answer that is read into memory. A page of 500 objects' metadata is far below.
const MAX_ANSWER: usize = 64 << 20;

/// The most warnings that are kept of one answer.
const MAX_WARNINGS: usize = 5;

/// Metadata alone, where the server can say it so.
pub(super) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// The same for lists.
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Whole objects.
pub(super) const WHOLE: &str = "application/json";

/// A request, before it is sent.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) class: Class,
    /// As the API server's audit log names it.
    pub(super) verb: &'static str,
    /// It applies an object as Git has it, which is timed by itself.
    pub(super) applies: bool,
    pub(super) uri: String,
    pub(super) accept: &'static str,
    pub(super) content: Option<(&'static str, Vec<u8>)>,
    /// Of the term in which it was queued; none before that.
    pub(super) permit: Option<Permit>,
}

impl Call {
    pub(super) fn new(class: Class, verb: &'static str, uri: String) -> Self {
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

/// An answer with a status that means success.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) created: bool,
    pub(super) warnings: Vec<Box<str>>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// The body as what it should be.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| unreadable(&error))
    }
}

/// JSON that is not what it should be. The parser's own words may quote a value, which may be a secret.
pub(super) fn unreadable(error: &serde_json::Error) -> Failure {
    let what = if error.is_data() { "not what was asked for" } else { "no JSON" };
    Failure::BadAnswer(format!("it is {what} (at byte {} of line {})", error.column(), error.line()).into())
}

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nothing answers, or the connection broke.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(Box<str>),
    /// The answer took longer than it may.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The server says no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The answer is not one that an API server gives.
    #[error("the API server's answer cannot be read: {0}")]
    BadAnswer(Box<str>),
    /// The server has not been seen to serve this kind; it may serve it in a moment.
    #[error("{0} is no kind of this server")]
    UnknownKind(Box<str>),
    /// This daemon leads no more, so it does not write.
    #[error("another daemon leads, so nothing is written")]
    NotLeading,
    /// Something newer has come before it was sent.
    #[error("something newer has come, so it is not written any more")]
    Superseded,
}

impl Failure {
    /// True if the API server is away, also where a load balancer says so for it.
    pub(super) fn is_away(&self) -> bool {
        matches!(self, Self::Unreachable(_)) || matches!(self.code(), Some(502..=504))
    }

    /// True if the API server is behind the version that it was asked for.
    pub(super) fn is_behind(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.is_behind())
    }

    /// The HTTP status, if there was an answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Unreachable(_)
            | Self::Timeout(_)
            | Self::BadAnswer(_)
            | Self::UnknownKind(_)
            | Self::NotLeading
            | Self::Superseded => None,
        }
    }
}

/// The way to one API server, as one user.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) client: kube::Client,
    pub(super) metrics: Metrics,
    pub(super) terms: Terms,
    pub(super) timeout: Duration,
    /// How long a watch stays open, at least and at most.
    pub(super) open: RangeInclusive<Duration>,
    pub(super) written: Written,
    pub(super) complaints: Complaints,
    /// The server is on this machine.
    pub(super) is_local: bool,
}

impl Wire {
    /// Sends a request and reads the whole answer.
    pub(super) async fn send(&self, call: Call) -> Result<Reply, Failure> {
        let (class, verb, begun) = (call.class, call.verb, clock::now());
        let (within, applies) = (self.within(&call), call.applies);
        let path = call.uri.split('?').next().unwrap_or_default().to_owned();
        let work = async {
            let response = self.begin(call).await?;
            let (status, created) = (response.status(), response.status() == http::StatusCode::CREATED);
            let (head, body) = response.into_parts();
            let body = collect(body).await?;
            if !status.is_success() {
                return Err(Failure::Refused(Box::new(refusal(status.as_u16(), &head.headers, &body))));
            }
            Ok(Reply { created, warnings: warnings(&head.headers), body })
        };
        let done = tokio::time::timeout(within, work).await;
        let done = done.unwrap_or(Err(Failure::Timeout(within)));
        let code = match &done {
            Ok(reply) if reply.created => 201,
            Ok(_) => 200,
            Err(failure) => failure.code().unwrap_or_default(),
        };
        self.metrics.request(class, verb, code);
        self.complaints.note(class, verb, &path, done.as_ref().err());
        if class == Class::Object {
            self.metrics.object_request(if applies { "apply" } else { verb }, clock::since(begun));
        }
        tracing::trace!(verb, path, code, took = ?clock::since(begun), "asked");
        done
    }

    /// Sends a request whose answer has no end, and gives the answer's body.
    pub(super) async fn stream(&self, call: Call) -> Result<Body, Failure> {
        let (class, verb) = (call.class, call.verb);
        let path = call.uri.split('?').next().unwrap_or_default().to_owned();
        let work = async {
            let response = self.begin(call).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response.into_body());
            }
            let (head, body) = response.into_parts();
            Err(Failure::Refused(Box::new(refusal(status.as_u16(), &head.headers, &collect(body).await?))))
        };
        let done = tokio::time::timeout(self.timeout, work).await;
        let done = done.unwrap_or(Err(Failure::Timeout(self.timeout)));
        let code = done.as_ref().map_or_else(|failure| failure.code().unwrap_or_default(), |_| 200);
        self.metrics.request(class, verb, code);
        self.complaints.note(class, verb, &path, done.as_ref().err());
        done
    }

    /// The release of the server. None if it does not say: one that has only just started forbids even that.
    pub(super) async fn release(&self) -> Result<Option<Box<str>>, Failure> {
        match self.send(Call::new(Class::Watch, "get", "/version".to_owned())).await {
            Ok(reply) => Ok(reply.json::<Release>().map(|release| release.git_version).ok()),
            Err(Failure::Refused(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// How long a request may take: a write must be over before another daemon can have taken the Lease.
    fn within(&self, call: &Call) -> Duration {
        let left = self.permit_of(call).time_left().filter(|_| call.writes());
        // One without any time left is refused when it is about to be sent, and says why.
        left.filter(|left| !left.is_zero()).map_or(self.timeout, |left| left.min(self.timeout))
    }

    /// The permit of the term in which a request was queued; if it never was, that of the current one.
    fn permit_of(&self, call: &Call) -> Permit {
        call.permit.clone().unwrap_or_else(|| self.terms.current())
    }

    async fn begin(&self, call: Call) -> Result<Response<Body>, Failure> {
        let bad = |error: http::Error| Failure::BadAnswer(error.to_string().into());
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
        // Asked last, so that no write begins after the lead was lost.
        if permit.is_some_and(|permit| !permit.may_write()) {
            return Err(Failure::NotLeading);
        }
        let sent = self.client.send(request).await;
        sent.map_err(|error| {
            self.written.interrupted();
            unreachable(error)
        })
    }
}

#[derive(Deserialize)]
struct Release {
    #[serde(rename = "gitVersion")]
    git_version: Box<str>,
}

impl Cluster {
    /// True if this is a sandbox on this machine, of whose daemon nobody else is.
    pub async fn is_sandbox(&self) -> bool {
        #[derive(Default, Deserialize)]
        struct About {
            platform: Box<str>,
        }
        let wire = &self.0.wire;
        if !wire.is_local {
            return false;
        }
        let reply = wire.send(Call::new(Class::Watch, "get", "/version".to_owned())).await;
        reply.and_then(|reply| reply.json::<About>()).is_ok_and(|about| &*about.platform == SANDBOX)
    }
}

/// The innermost cause says what happened; the outer ones say that it happened.
fn unreachable(error: kube::Error) -> Failure {
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Failure::Unreachable(cause.to_string().into())
}

async fn collect(body: Body) -> Result<Vec<u8>, Failure> {
    match Limited::new(body, MAX_ANSWER).collect().await {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) => Err(Failure::Unreachable(error.to_string().into())),
    }
}

/// `299 - "text"`, as the API server writes it.
fn warnings(headers: &HeaderMap) -> Vec<Box<str>> {
    let texts = headers.get_all(header::WARNING).iter().filter_map(|value| value.to_str().ok());
    let inner = texts.filter_map(|text| Some(text.split_once('"')?.1.trim_end_matches('"')));
    inner.map(Box::from).take(MAX_WARNINGS).collect()
}

fn refusal(code: u16, headers: &HeaderMap, body: &[u8]) -> Refusal {
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
        causes: Vec<Cause>,
        retry_after_seconds: u64,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let details = status.details.unwrap_or_default();
    let header = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let seconds = header.or(Some(details.retry_after_seconds).filter(|seconds| *seconds > 0));
    Refusal {
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
        // Proxies may send a date, which is as good as nothing.
        check(Some("Wed, 21 Oct 2026 07:28:00 GMT"), json!({}), None);
        check(Some("Wed, 21 Oct 2026 07:28:00 GMT"), json!({"retryAfterSeconds": 7}), Some(7));
        // What proxies say is no JSON; the header counts all the same.
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, "9".parse().unwrap())]);
        let proxied = refusal(503, &headers, b"<html>busy</html>");
        assert_eq!((proxied.retry_after, &*proxied.message), (Some(Duration::from_secs(9)), ""));
    }

    #[test]
    fn warnings_are_told_without_their_wrapping_and_not_too_many() {
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
