//! Requests to services that are no repositories, such as a chat, under the same host policy.
//!
//! In: a request that somebody else has built, and certificate authorities.
//! Out: the status and the first bytes of the answer. No redirect is followed. An address within
//! the daemon's own network is contacted only if the operator lists it.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use moorline_identity::ExchangeRequest;
use ureq::http;

use super::credentials::{Credentials, Sensitive};
use super::error::Error;
use super::http::{HttpClient, SharedNetwork};
use super::repository::Repositories;
use crate::resolver::{AddressScope, MAX_ADDRESSES, ResolveError, host_and_port, resolved};
use moorline_runtime::clock;

/// Maximum number of bytes of an answer that are read.
const MAX_ANSWER: u64 = 4096;
/// Words about a request that cannot be sent.
const UNSENDABLE: &str = "the request cannot be sent";

/// Client for services; cheap to clone.
#[derive(Debug, Clone)]
pub struct OutboundClient(Arc<SharedNetwork>);

/// Answer of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The pause that the service asks for; for a limit of requests, the time until its end.
    pub retry_after: Option<Duration>,
    /// The ETag, if there is one.
    pub etag: Option<String>,
    /// The first bytes of the body; empty if they cannot be read.
    pub body: Vec<u8>,
}

impl OutboundClient {
    /// Creates a client with the proxy, the authorities and the host policy of the repositories.
    pub fn new(repositories: &Repositories) -> Self {
        Self(repositories.network())
    }

    /// Returns the addresses of a host that a person has configured, as far as the host policy
    /// allows them; or a sentence that says why none is allowed. Blocks this thread.
    pub fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let mut found = resolved(self.0.hosts(), host, port).map_err(|error| match error {
            ResolveError::Unknown => format!("the host {host} is not known"),
            ResolveError::Refused(refused) => format!("the host {host} is refused: {refused}"),
        })?;
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }

    /// Sends a request, on this thread.
    ///
    /// # Guarantees
    ///
    /// One request, which ends by `by`.
    ///
    /// # Cancellation
    ///
    /// It cannot be cancelled.
    ///
    /// # Errors
    ///
    /// An [`Error`] if there is no answer; any answer is a success.
    pub fn send(
        &self,
        request: &ExchangeRequest,
        authorities: Option<Vec<u8>>,
        by: Instant,
    ) -> Result<OutboundAnswer, Error> {
        self.send_within(request, authorities, (by, MAX_ANSWER))
    }

    /// Sends a request as [`Self::send`] does, and reads as many bytes of the answer as `most`.
    ///
    /// # Guarantees
    ///
    /// One request, which ends by the given time.
    ///
    /// # Cancellation
    ///
    /// It cannot be cancelled.
    ///
    /// # Errors
    ///
    /// An [`Error`] if there is no answer; any answer is a success.
    pub fn send_within(
        &self,
        request: &ExchangeRequest,
        authorities: Option<Vec<u8>>,
        (by, most): (Instant, u64),
    ) -> Result<OutboundAnswer, Error> {
        let uri: http::Uri = request.url.parse().map_err(|_| bad())?;
        let (host, port) = host_and_port(&uri).ok_or_else(bad)?;
        let server = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let trust = Credentials { authorities: authorities.map(Sensitive::new), ..Credentials::default() };
        let client = HttpClient::reaching(AddressScope::PublicOrListed, host, &trust, &self.0)?;
        let answer = client.begin_exchange(request, (&server, UNSENDABLE), by)?;
        let now = Timestamp::from_second(clock::wall().as_secs().try_into().unwrap_or_default());
        let pause = answer.limits.pause(answer.status, answer.date.as_deref(), now.unwrap_or_default());
        let (status, etag) = (answer.status, answer.etag);
        let mut body = Vec::new();
        // The status says everything that has to be known.
        let _ = answer.body.take(most).read_to_end(&mut body);
        Ok(OutboundAnswer { status, retry_after: pause, etag, body })
    }
}

fn bad() -> Error {
    Error::InvalidResponse { server: "".into(), what: UNSENDABLE }
}
