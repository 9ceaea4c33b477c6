//! One repository on a server: which refs it has, and the objects of a commit.
//!
//! In: a way to the server, and what is wanted. Out: refs and packs. The first talk with a server asks what it can
//! do; over http a listing is from then on one POST that names the wanted refs alone. A server that fails is asked
//! anew, so that one that was exchanged behind the same name is understood.

use std::io::Write;
use std::time::Instant;

use super::error::Error;
use super::http::fault;
use super::protocol::{self, Greeting, Received, Version, Wanted};
use super::revision::Advertised;
use super::transport::{MAX_LISTING_BYTES, Transport};
use super::turns::Heard;

/// A repository on a server.
#[derive(Debug)]
pub(super) struct Remote {
    transport: Box<dyn Transport>,
    /// What the server can do, as it said the last time.
    found: Option<Greeting>,
    /// How the last talk went, until somebody asks.
    heard: Heard,
}

impl Remote {
    pub(super) fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), found: None, heard: Heard::Nothing }
    }

    /// How the server has behaved since this was asked last.
    pub(super) fn heard(&mut self) -> Heard {
        std::mem::take(&mut self.heard)
    }

    /// The refs that begin with one of `prefixes`.
    pub(super) fn list(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<Advertised>, Error> {
        let listed = self.listed(prefixes, by);
        self.heard = heard(listed.as_ref().err());
        self.transport.end();
        listed
    }

    fn listed(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<Advertised>, Error> {
        if self.transport.is_ready() && self.found.is_some_and(|found| found.version == Version::Two) {
            match self.refs(prefixes, by) {
                Ok(refs) => return Ok(refs),
                // These mean the same whoever answers.
                Err(error @ (Error::Timeout { .. } | Error::Unreachable { .. } | Error::Denied { .. })) => {
                    return Err(error);
                }
                Err(_) => self.found = None,
            }
        }
        let (greeting, refs) = self.transport.greet(by)?;
        let refs = match greeting.version {
            Version::Two => self.refs(prefixes, by)?,
            Version::One => refs
                .into_iter()
                .filter(|found| prefixes.iter().any(|prefix| found.name.starts_with(prefix.as_str())))
                .collect(),
        };
        self.found = Some(greeting);
        Ok(refs)
    }

    /// The objects of a commit; the pack goes to `pack`, which takes at most `limit` bytes.
    pub(super) fn fetch(
        &mut self,
        wanted: &Wanted<'_>,
        pack: &mut dyn Write,
        limit: u64,
        by: Instant,
    ) -> Result<Received, Error> {
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
        wanted: &Wanted<'_>,
        pack: &mut dyn Write,
        limit: u64,
        by: Instant,
    ) -> Result<Received, Error> {
        let greeting = match self.found.filter(|_| self.transport.is_ready()) {
            Some(greeting) => greeting,
            None => self.transport.greet(by)?.0,
        };
        self.found = Some(greeting);
        let server = self.transport.server();
        let mut packets = self.transport.ask(protocol::ask_objects(&greeting, wanted), limit, by)?;
        let received = protocol::objects(&mut packets, &greeting, wanted.depth.is_some(), pack);
        received.map_err(|error| match (fault(&server, "bytes of objects", error), wanted.commits) {
            (Error::NoCommit { .. }, [commit, ..]) => Error::NoCommit { commit: commit.to_string().into() },
            (error, _) => error,
        })
    }

    /// True if the server can cut histories; false before it was asked.
    pub(super) fn cuts_history(&self) -> bool {
        self.found.is_some_and(|greeting| greeting.shallow)
    }

    fn refs(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<Advertised>, Error> {
        let server = self.transport.server();
        let mut packets = self.transport.ask(protocol::ask_refs(prefixes), MAX_LISTING_BYTES, by)?;
        protocol::refs(&mut packets).map_err(|error| fault(&server, "bytes of refs", error))
    }
}

/// What an end says of a server: whatever it says, it has answered.
pub(super) fn heard(failed: Option<&Error>) -> Heard {
    match failed {
        Some(Error::Timeout { .. } | Error::Unreachable { .. }) => Heard::Silence,
        Some(Error::NotAllowed { .. }) => Heard::Nothing,
        Some(_) | None => Heard::Answer,
    }
}
