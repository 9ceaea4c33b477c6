//! Sends requests to the host of a repository, with the token of a Notifier or of a SyncSet.
//!
//! In: requests. Out: answers as JSON, or a [`VisitError`]. Every request has a deadline, and every
//! answer a limit.

use std::time::Duration;

use serde_json::Value;

use super::super::super::Context;
use super::super::service_secret::{SecretContent, read_service_secret};
use super::RepositoryKey;
use crate::chance::spawn_blocking_deterministic;
use crate::clock;
use crate::cluster::lease::Terms;
use crate::notifications::pull_requests::PullRequestHost;
use crate::notifications::{AttemptResult, CompiledNotifier, Service};
use crate::source::{OutboundAnswer, OutboundClient, SecretText};
use moorline_identity::ExchangeRequest;

/// Deadline of a request.
const DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of bytes of an answer.
const MAX_ANSWER: u64 = 8 << 20;
/// The status of a list that has not changed.
const NOT_MODIFIED: u16 = 304;

/// Error of a visit, for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plans of pull requests: {problem}")]
pub(in crate::controller) struct VisitError {
    problem: String,
    /// The pause that the host asks for.
    pub(super) retry_after: Option<Duration>,
    /// The time until the end of a limit of requests, if that is the reason.
    pub(super) limit: Option<Duration>,
    /// A person has to change the Secret or the URL.
    pub(in crate::controller) needs_a_person: bool,
    /// The part of the visit that it ends.
    pub(super) reach: ErrorReach,
}

/// Part of a visit that an error ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controller) enum ErrorReach {
    /// All of it: nothing else is asked of the host.
    Visit,
    /// One request: the pull request may be the reason.
    Request,
    /// One request, whose answer is too long.
    Length,
}

impl VisitError {
    /// Returns the problem, without the feature that met it.
    pub(in crate::controller) fn problem(&self) -> &str {
        &self.problem
    }

    /// Returns the error that an HTTP status means for the request of `what`.
    pub(super) fn of_status(what: &str, status: u16, retry_after: Option<Duration>) -> Self {
        let result = AttemptResult::of_status(status, retry_after);
        let needs_a_person = result == AttemptResult::Denied;
        let limit = match result {
            AttemptResult::Limited { pause } => Some(pause),
            _ => None,
        };
        let problem = format!("the host answers with status {status} to the request of {what}");
        let is_of_host = matches!(status, 401 | 408 | 425 | 429 | 500..) || retry_after.is_some();
        let reach = if is_of_host { ErrorReach::Visit } else { ErrorReach::Request };
        Self { problem, retry_after, limit, needs_a_person, reach }
    }

    /// Returns an error without a status, which ends the visit.
    pub(super) fn new(problem: impl Into<String>, needs_a_person: bool) -> Self {
        let reach = ErrorReach::Visit;
        Self { problem: problem.into(), retry_after: None, limit: None, needs_a_person, reach }
    }

    /// Returns the same error with the time until which the host is not asked.
    pub(super) fn limited_until(&self, until: &str) -> Self {
        let problem = format!("{}, because the limit of requests is used up until {until}", self.problem);
        Self { problem, ..self.clone() }
    }

    /// Returns the same error as one that ends the visit.
    pub(super) fn of_visit(self) -> Self {
        Self { reach: ErrorReach::Visit, ..self }
    }

    /// Returns an error of an answer.
    fn of_answer(problem: String, reach: ErrorReach) -> Self {
        Self { reach, ..Self::new(problem, false) }
    }
}

/// A list, unless it is the same as before.
pub(super) enum ListAnswer {
    Same,
    Changed(Value, Option<String>),
}

/// Client for one repository.
pub(in crate::controller) struct HostClient<'a> {
    client: OutboundClient,
    /// The terms in which it may write; none if it only reads.
    terms: Option<&'a Terms>,
    service: Service,
    api: &'a str,
    repository: &'a str,
    token: SecretText,
    authorities: Option<Vec<u8>>,
}

impl<'a> HostClient<'a> {
    /// Reads the token.
    pub(super) async fn new(
        context: &'a Context,
        notifier: &'a CompiledNotifier,
        key: &'a RepositoryKey,
    ) -> Result<Self, VisitError> {
        let read = read_service_secret(context, notifier).await;
        let SecretContent { service, authorities } =
            read.map_err(|problem| VisitError::new(problem, true))?;
        let token = service.token.ok_or_else(|| VisitError::new("the Secret has no key token", true))?;
        Ok(Self {
            client: OutboundClient::new(&context.sources.repositories),
            terms: Some(context.cluster.terms()),
            service: notifier.service,
            api: &notifier.target.url,
            repository: &key.path,
            token,
            authorities,
        })
    }

    /// Creates a client that only reads.
    pub(in crate::controller) fn reader(
        client: OutboundClient,
        (service, api, repository): (Service, &'a str, &'a str),
        (token, authorities): (SecretText, Option<Vec<u8>>),
    ) -> Self {
        Self { client, terms: None, service, api, repository, token, authorities }
    }

    /// Returns the host, for its requests.
    pub(super) fn host(&self) -> PullRequestHost<'_> {
        PullRequestHost {
            service: self.service,
            api: self.api,
            repository: self.repository,
            token: &self.token,
        }
    }

    /// Reads a list that may be the same as before.
    pub(super) async fn list(&self, what: &str, request: ExchangeRequest) -> Result<ListAnswer, VisitError> {
        let answer = self.send(what, request).await?;
        if answer.status == NOT_MODIFIED {
            return Ok(ListAnswer::Same);
        }
        let etag = answer.etag.clone();
        Ok(ListAnswer::Changed(body(what, &answer)?, etag))
    }

    /// Reads JSON.
    pub(super) async fn read(&self, what: &str, request: ExchangeRequest) -> Result<Value, VisitError> {
        body(what, &self.send(what, request).await?)
    }

    /// Writes once; only while this daemon leads.
    pub(super) async fn write(
        &self,
        what: &str,
        request: ExchangeRequest,
    ) -> Result<OutboundAnswer, VisitError> {
        match self.terms.is_some_and(|terms| terms.current().may_write()) {
            true => self.send(what, request).await,
            false => Err(VisitError::new("another daemon has taken over", false)),
        }
    }

    /// Sends a request once.
    async fn send(&self, what: &str, request: ExchangeRequest) -> Result<OutboundAnswer, VisitError> {
        let (client, authorities) = (self.client.clone(), self.authorities.clone());
        let by = clock::now() + DEADLINE;
        let sent = spawn_blocking_deterministic(move || {
            client.send_within(&request, authorities, (by, MAX_ANSWER + 1))
        });
        match sent.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(VisitError::new(format!("{what}: {error}"), false)),
            Err(_) => Err(VisitError::new(format!("{what}: the request was interrupted"), false)),
        }
    }
}

/// Returns the JSON of an answer.
fn body(what: &str, answer: &OutboundAnswer) -> Result<Value, VisitError> {
    match answer.status {
        200..300 if answer.body.len() as u64 > MAX_ANSWER => {
            let problem = format!("{what}: the answer is longer than {MAX_ANSWER} bytes");
            Err(VisitError::of_answer(problem, ErrorReach::Length))
        }
        200..300 => serde_json::from_slice(&answer.body).map_err(|_| {
            VisitError::of_answer(format!("{what}: the answer is no JSON"), ErrorReach::Request)
        }),
        status => Err(VisitError::of_status(what, status, answer.retry_after)),
    }
}
