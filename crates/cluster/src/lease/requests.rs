//! The three requests on a Lease, each with a timeout.
//!
//! In: a client and a claim.
//! Out: the Lease as the server has it, or a [`LeaseRequestError`]. A request without a response
//! may have been carried out; the resourceVersion of the next write shows it.

use std::error::Error as _;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams};

use super::decide::{held, released};
use super::{Claim, Clock, Timings};
use moorline_metrics::{Class, Metrics};

/// Maximum number of characters of a server message that are passed on.
const MAX_CAUSE: usize = 300;

/// Error of a request.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The Lease was written, created or deleted concurrently: read it again.
    Conflict,
    /// The server will never accept it.
    Rejected(Box<str>),
    /// A temporary failure: no connection, timeout, missing rights, an overloaded server.
    Failed(Box<str>),
}

impl Trouble {
    /// Returns the message for people.
    pub(super) fn cause(self) -> Box<str> {
        match self {
            Self::Conflict => "somebody else wrote the Lease at the same time".into(),
            Self::Rejected(cause) | Self::Failed(cause) => cause,
        }
    }
}

/// Client of one Lease.
#[derive(Debug)]
pub(super) struct Requests {
    api: Api<Lease>,
    metrics: Metrics,
    pub(super) claim: Claim,
    pub(super) timings: Timings,
    pub(super) clock: Clock,
}

impl Requests {
    pub(super) fn new(
        clock: Clock,
        client: kube::Client,
        metrics: Metrics,
        claim: Claim,
        timings: Timings,
    ) -> Self {
        let api = Api::namespaced(client, &claim.namespace);
        Self { api, metrics, claim, timings, clock }
    }

    /// Reads the Lease from the server's storage, not from a cache.
    pub(super) async fn read(&self) -> Result<Option<Lease>, Trouble> {
        self.bounded("get", self.api.get_opt(&self.claim.name)).await
    }

    /// Writes us as the holder.
    pub(super) async fn hold(&self, found: Option<&Lease>) -> Result<Lease, Trouble> {
        let lease = held(found, &self.claim, self.timings.duration, Timestamp::now());
        let parameters = PostParams::default();
        match found {
            Some(_) => self.bounded("update", self.api.replace(&self.claim.name, &parameters, &lease)).await,
            None => self.bounded("create", self.api.create(&parameters, &lease)).await,
        }
    }

    /// Clears the holder.
    pub(super) async fn release(&self, lease: &Lease) -> Result<Lease, Trouble> {
        let lease = released(lease, Timestamp::now());
        self.bounded("update", self.api.replace(&self.claim.name, &PostParams::default(), &lease)).await
    }

    async fn bounded<T>(
        &self,
        verb: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Trouble> {
        let answer = tokio::time::timeout(self.timings.request, request).await;
        let code = match &answer {
            Ok(Ok(_)) => 200,
            Ok(Err(kube::Error::Api(status))) => status.code,
            Ok(Err(_)) | Err(_) => 0,
        };
        self.metrics.request(Class::Lease, verb, code);
        match answer {
            Ok(answer) => answer.map_err(trouble),
            Err(_) => Err(late(self.timings.request)),
        }
    }
}

/// Error of a request without a response.
pub(super) fn late(time: Duration) -> Trouble {
    Trouble::Failed(format!("no answer within {time:?}").into())
}

fn trouble(error: kube::Error) -> Trouble {
    match &error {
        kube::Error::Api(status) => {
            let cause = cut(&format!("status {} {}: {}", status.code, status.reason, status.message));
            match status.code {
                // A write with a uid that finds no object also gets 409; both mean: read again.
                404 | 409 if !names_namespace(status) => Trouble::Conflict,
                400 | 422 => Trouble::Rejected(cause),
                _ => Trouble::Failed(cause),
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
            Trouble::Failed(cut(&cause))
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
