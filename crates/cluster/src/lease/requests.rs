//! The three requests on a Lease, each with a timeout.
//!
//! In: a client and a claim.
//! Out: the Lease as the server has it, or a [`LeaseRequestError`]. A request without a response
//! may have been carried out; the resourceVersion of the next write shows it.

use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams};

use super::decide::{with_holder, without_holder};
use super::{Clock, LeaseClaim, LeaseTimings};
use moorline_api::{DAEMON_MANAGER, JOURNAL_ANNOTATION};
use moorline_journal::Journal;
use moorline_metrics::{Metrics, RequestClass};

/// Maximum number of characters of a server message that are passed on.
const MAX_CAUSE: usize = 300;

/// Error of a request.
#[derive(Debug)]
pub(super) enum LeaseRequestError {
    /// The Lease was written, created or deleted concurrently: read it again.
    Conflict,
    /// The server will never accept it.
    Rejected(Box<str>),
    /// A temporary failure: no connection, timeout, missing rights, an overloaded server.
    Failed(Box<str>),
}

impl LeaseRequestError {
    /// Returns the message for people.
    pub(super) fn cause(self) -> Box<str> {
        match self {
            Self::Conflict => "the Lease was changed concurrently".into(),
            Self::Rejected(cause) | Self::Failed(cause) => cause,
        }
    }
}

/// Client of one Lease.
#[derive(Debug)]
pub(super) struct LeaseClient {
    api: Api<Lease>,
    metrics: Metrics,
    pub(super) claim: LeaseClaim,
    pub(super) timings: LeaseTimings,
    pub(super) clock: Clock,
    /// The journal whose head every write of the Lease repeats.
    pub(super) journal: Arc<OnceLock<Journal>>,
}

impl LeaseClient {
    pub(super) fn new(
        clock: Clock,
        client: kube::Client,
        metrics: Metrics,
        claim: LeaseClaim,
        timings: LeaseTimings,
    ) -> Self {
        let api = Api::namespaced(client, &claim.namespace);
        Self { api, metrics, claim, timings, clock, journal: Arc::default() }
    }

    /// Reads the Lease from the server's storage, not from a cache.
    pub(super) async fn read(&self) -> Result<Option<Lease>, LeaseRequestError> {
        self.bounded("get", self.api.get_opt(&self.claim.name)).await
    }

    /// Writes us as the holder.
    pub(super) async fn hold(&self, found: Option<&Lease>) -> Result<Lease, LeaseRequestError> {
        let lease = with_holder(found, &self.claim, self.timings.duration, Timestamp::now());
        let lease = self.anchored(lease);
        let parameters = as_daemon();
        match found {
            Some(_) => self.bounded("update", self.api.replace(&self.claim.name, &parameters, &lease)).await,
            None => self.bounded("create", self.api.create(&parameters, &lease)).await,
        }
    }

    /// Clears the holder.
    pub(super) async fn release(&self, lease: &Lease) -> Result<Lease, LeaseRequestError> {
        let lease = self.anchored(without_holder(lease, Timestamp::now()));
        self.bounded("update", self.api.replace(&self.claim.name, &as_daemon(), &lease)).await
    }

    /// Adds the head of the journal.
    fn anchored(&self, mut lease: Lease) -> Lease {
        if let Some(head) = self.journal.get().and_then(Journal::head) {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(JOURNAL_ANNOTATION.to_owned(), head.to_string());
        }
        lease
    }

    async fn bounded<T>(
        &self,
        verb: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, LeaseRequestError> {
        let answer = tokio::time::timeout(self.timings.request, request).await;
        let code = match &answer {
            Ok(Ok(_)) => 200,
            Ok(Err(kube::Error::Api(status))) => status.code,
            Ok(Err(_)) | Err(_) => 0,
        };
        self.metrics.request(RequestClass::Lease, verb, code);
        match answer {
            Ok(answer) => answer.map_err(trouble),
            Err(_) => Err(late(self.timings.request)),
        }
    }
}

/// Parameters of a write, which name the daemon as the field manager.
fn as_daemon() -> PostParams {
    PostParams { field_manager: Some(DAEMON_MANAGER.into()), ..PostParams::default() }
}

/// Error of a request without a response.
pub(super) fn late(time: Duration) -> LeaseRequestError {
    LeaseRequestError::Failed(format!("no answer within {time:?}").into())
}

fn trouble(error: kube::Error) -> LeaseRequestError {
    match &error {
        kube::Error::Api(status) => {
            let cause = cut(&format!("status {} {}: {}", status.code, status.reason, status.message));
            match status.code {
                // A write with a uid that finds no object also gets 409; both mean: read again.
                404 | 409 if !names_namespace(status) => LeaseRequestError::Conflict,
                400 | 422 => LeaseRequestError::Rejected(cause),
                _ => LeaseRequestError::Failed(cause),
            }
        }
        other => {
            let mut cause = other.to_string();
            let mut source = other.source();
            while let Some(inner) = source {
                let text = inner.to_string();
                // Many errors repeat their source in their own text.
                if !cause.contains(&text) {
                    cause = format!("{cause}: {text}");
                }
                source = inner.source();
            }
            LeaseRequestError::Failed(cut(&cause))
        }
    }
}

/// True if the namespace is missing, and not the Lease.
fn names_namespace(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

/// Returns one line of bounded length.
fn cut(text: &str) -> Box<str> {
    text.chars().take(MAX_CAUSE).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
