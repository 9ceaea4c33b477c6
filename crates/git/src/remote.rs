//! One remote repository: its refs, and the objects of a commit.
//!
//! In: a transport, and the wanted objects.
//! Out: refs and packs. The first request asks for the capabilities of the server; over http a
//! later listing is one POST for the wanted refs. After a failure the capabilities are requested
//! again, so that a server that was replaced under the same name is understood.

use std::io::Write;
use std::time::Instant;

use super::error::Error;
use super::http::fault;
use super::revision::AdvertisedRef;
use super::transport::{MAX_LISTING_BYTES, Transport};
use crate::upload_pack;
use crate::upload_pack::{FetchRequest, FetchResult, ProtocolVersion, ServerCapabilities};
use crate::worker_pool::ContactResult;

/// A repository on a server.
#[derive(Debug)]
pub(super) struct Remote {
    transport: Box<dyn Transport>,
    /// Last known capabilities of the server.
    found: Option<ServerCapabilities>,
    /// Result of the last contact, until it is taken.
    heard: ContactResult,
}

impl Remote {
    pub(super) fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), found: None, heard: ContactResult::Nothing }
    }

    /// Takes the result of the last contact with the server.
    pub(super) fn heard(&mut self) -> ContactResult {
        std::mem::take(&mut self.heard)
    }

    /// Returns the refs with one of `prefixes`.
    pub(super) fn list(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<AdvertisedRef>, Error> {
        let listed = self.listed(prefixes, by);
        self.heard = heard(listed.as_ref().err());
        self.transport.end();
        listed
    }

    fn listed(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<AdvertisedRef>, Error> {
        if self.transport.is_ready() && self.found.is_some_and(|found| found.version == ProtocolVersion::Two)
        {
            match self.refs(prefixes, by) {
                Ok(refs) => return Ok(refs),
                // These errors do not depend on the capabilities.
                Err(error @ (Error::Timeout { .. } | Error::Unreachable { .. } | Error::Denied { .. })) => {
                    return Err(error);
                }
                Err(_) => self.found = None,
            }
        }
        let (greeting, refs) = self.transport.greet(by)?;
        let refs = match greeting.version {
            ProtocolVersion::Two => self.refs(prefixes, by)?,
            ProtocolVersion::One => refs
                .into_iter()
                .filter(|found| prefixes.iter().any(|prefix| found.name.starts_with(prefix.as_str())))
                .collect(),
        };
        self.found = Some(greeting);
        Ok(refs)
    }

    /// Fetches the objects of a commit; the pack is written to `pack`, at most `limit` bytes.
    pub(super) fn fetch(
        &mut self,
        wanted: &FetchRequest<'_>,
        pack: &mut dyn Write,
        limit: u64,
        by: Instant,
    ) -> Result<FetchResult, Error> {
        let fetched = self.fetched(wanted, pack, limit, by);
        self.heard = heard(fetched.as_ref().err());
        self.transport.end();
        if !matches!(fetched, Ok(_) | Err(Error::Timeout { .. } | Error::NoCommit { .. })) {
            self.found = None;
        }
        fetched
    }

    fn fetched(
        &mut self,
        wanted: &FetchRequest<'_>,
        pack: &mut dyn Write,
        limit: u64,
        by: Instant,
    ) -> Result<FetchResult, Error> {
        let greeting = match self.found.filter(|_| self.transport.is_ready()) {
            Some(greeting) => greeting,
            None => self.transport.greet(by)?.0,
        };
        self.found = Some(greeting);
        let server = self.transport.server();
        let mut packets = self.transport.ask(upload_pack::fetch_request(&greeting, wanted), limit, by)?;
        let received = upload_pack::objects(&mut packets, &greeting, wanted.depth.is_some(), pack);
        received.map_err(|error| match (fault(&server, "bytes of objects", error), wanted.commits) {
            (Error::NoCommit { .. }, [commit, ..]) => Error::NoCommit { commit: commit.to_string().into() },
            (error, _) => error,
        })
    }

    /// True if the server supports shallow fetches; false before the first contact.
    pub(super) fn cuts_history(&self) -> bool {
        self.found.is_some_and(|greeting| greeting.shallow)
    }

    fn refs(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<AdvertisedRef>, Error> {
        let server = self.transport.server();
        let mut packets = self.transport.ask(upload_pack::refs_request(prefixes), MAX_LISTING_BYTES, by)?;
        upload_pack::refs(&mut packets).map_err(|error| fault(&server, "bytes of refs", error))
    }
}

/// Classifies a result: any response, also an error, shows that the server is up.
pub(super) fn heard(failed: Option<&Error>) -> ContactResult {
    match failed {
        Some(Error::Timeout { .. } | Error::Unreachable { .. }) => ContactResult::Silence,
        Some(Error::NotAllowed { .. }) => ContactResult::Nothing,
        Some(_) | None => ContactResult::Answer,
    }
}
