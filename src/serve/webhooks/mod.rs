//! Webhooks of Git hosting services and registries: `POST /hooks/<kind>`.
//!
//! In: a call. Out: names of repositories to poll now. A call is parsed only if it is signed with
//! the secret that the daemon shares with the services. Its only effect is a poll: a replayed call
//! costs one, and calls are limited to [`RATE`].

mod body_reader;
mod signature;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{PLAIN, REQUEST_TIMEOUT, TextResponse, text};
use crate::source::webhook_call::{RepositoryNames, parse_call};
use body_reader::{BodyError, BodyReader};

/// The most bytes of a call.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Calls per second, and the burst.
pub const RATE: (f64, f64) = (10.0, 40.0);

/// The webhook endpoint; cheap to clone.
#[derive(Debug, Clone)]
pub struct WebhookEndpoint(Arc<WebhooksInner>);

#[derive(Debug)]
struct WebhooksInner {
    secret: PathBuf,
    called: mpsc::Sender<RepositoryNames>,
    reading: BodyReader,
    /// Calls that are left in the rate limit, and the time of that count.
    tokens: Mutex<(f64, Instant)>,
}

/// The service that sends the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WebhookKind {
    Github,
    Gitlab,
    Gitea,
    Bitbucket,
    DockerHub,
    Harbor,
    Quay,
    Acr,
    Generic,
}

impl WebhookKind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "github" => Some(Self::Github),
            "gitlab" => Some(Self::Gitlab),
            "gitea" | "forgejo" => Some(Self::Gitea),
            "bitbucket" => Some(Self::Bitbucket),
            "dockerhub" => Some(Self::DockerHub),
            "harbor" => Some(Self::Harbor),
            "quay" => Some(Self::Quay),
            "acr" => Some(Self::Acr),
            "generic" => Some(Self::Generic),
            _ => None,
        }
    }
}

const KINDS: &str = "github, gitlab, gitea, forgejo, bitbucket, dockerhub, harbor, quay, acr and generic";

impl WebhookEndpoint {
    /// Calls are authenticated by the secret in this file, and sent to `called`.
    pub fn new(secret: PathBuf, called: mpsc::Sender<RepositoryNames>) -> Self {
        let left = Mutex::new((RATE.1, Instant::now()));
        Self(Arc::new(WebhooksInner { secret, called, reading: BodyReader::default(), tokens: left }))
    }

    pub(super) fn router(self) -> Router {
        let call = |State(hooks): State<Self>,
                    Path(kind): Path<String>,
                    RawQuery(query): RawQuery,
                    headers: HeaderMap,
                    body: Body| async move {
            match hooks.handle(&kind, (&headers, &query.unwrap_or_default()), body).await {
                Ok(said) => plain_response(StatusCode::ACCEPTED, said),
                Err((status, why)) => {
                    tracing::warn!(
                        kind = &*crate::sanitize::sanitize(&kind),
                        status = status.as_u16(),
                        why,
                        "a webhook was refused"
                    );
                    plain_response(status, &why)
                }
            }
        };
        Router::new().route("/hooks/{kind}", post(call)).with_state(self)
    }

    async fn handle(
        &self,
        kind: &str,
        (headers, query): (&HeaderMap, &str),
        body: Body,
    ) -> Result<&'static str, (StatusCode, String)> {
        let refuse = |status: StatusCode, why: &str| Err((status, why.to_owned()));
        let Some(kind) = WebhookKind::named(kind) else {
            return refuse(StatusCode::NOT_FOUND, &format!("unknown webhook kind; supported: {KINDS}"));
        };
        let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if declared.is_some_and(|length: usize| length > MAX_BODY_BYTES) {
            return refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("the body is longer than {MAX_BODY_BYTES} bytes"),
            );
        }
        let body = match timeout(REQUEST_TIMEOUT, self.0.reading.read(body, MAX_BODY_BYTES)).await {
            Ok(Ok(body)) => body,
            Ok(Err(BodyError::Aborted)) => {
                return refuse(StatusCode::TOO_MANY_REQUESTS, "too many concurrent calls");
            }
            Ok(Err(BodyError::Invalid)) | Err(_) => {
                let why = format!("the body is longer than {MAX_BODY_BYTES} bytes, too slow, or was cut off");
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, &why);
            }
        };
        let Some(secret) = self.secret() else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "the secret of the webhooks cannot be read");
        };
        if let Err(refused) = signature::verify_call(kind, (headers, query), &body, &secret) {
            return refuse(StatusCode::UNAUTHORIZED, &refused.to_string());
        }
        if !self.take_token() {
            return refuse(StatusCode::TOO_MANY_REQUESTS, "too many calls");
        }
        let Some(called) = parse_call(&body) else {
            return refuse(
                StatusCode::BAD_REQUEST,
                "the body is not JSON: set the content type application/json",
            );
        };
        if called.is_empty() {
            return refuse(StatusCode::BAD_REQUEST, "the body names no repository: set url or urls");
        }
        match self.0.called.try_send(called) {
            Ok(()) => Ok("accepted"),
            Err(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "the daemon is not ready for webhooks"),
        }
    }

    /// Reads the secret; line breaks at its end do not count.
    fn secret(&self) -> Option<Vec<u8>> {
        let mut secret = std::fs::read(&self.0.secret).ok()?;
        while secret.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            secret.pop();
        }
        (!secret.is_empty()).then_some(secret)
    }

    /// True if the rate limit permits one more call.
    fn take_token(&self) -> bool {
        let mut left = self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(left.1).as_secs_f64() * RATE.0;
        *left = ((left.0 + gained).min(RATE.1), now);
        let allowed = left.0 >= 1.0;
        left.0 -= f64::from(u8::from(allowed));
        allowed
    }
}

fn plain_response(status: StatusCode, said: &str) -> TextResponse {
    text(status, PLAIN, format!("{said}\n"))
}
