//! One repository on a server: which refs it has, and the objects of a commit.
//!
//! In: an address with credentials, and what is wanted. Out: refs and packs. The first talk with a server asks
//! what it can do; from then on a listing is one POST that names the wanted refs alone. A server that fails
//! is asked anew, so that one that was exchanged behind the same name is understood.

use std::io::{Read, Write};
use std::time::Instant;

use super::address::HttpAddress;
use super::credentials::Credentials;
use super::error::Error;
use super::http::{Answer, Client, Network, fault};
use super::packet::Packets;
use super::protocol::{self, Greeting, Received, Version, Wanted};
use super::revision::Advertised;

/// The most bytes of a listing of refs.
const MAX_LISTING_BYTES: u64 = 64 * 1024 * 1024;

/// The most redirects in a row.
const MAX_REDIRECTS: usize = 4;

const INFO_REFS: &str = "/info/refs";

/// A repository on a server.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    written: HttpAddress,
    /// Where redirects led, and what the server can do.
    found: Option<(HttpAddress, Greeting)>,
}

impl Remote {
    pub(super) fn new(
        address: &HttpAddress,
        credentials: &Credentials,
        network: &Network,
    ) -> Result<Self, Error> {
        Ok(Self {
            client: Client::new(&address.host, credentials, network)?,
            written: address.clone(),
            found: None,
        })
    }

    /// The refs that begin with one of `prefixes`.
    pub(super) fn list(&mut self, prefixes: &[String], by: Instant) -> Result<Vec<Advertised>, Error> {
        if let Some((address, Greeting { version: Version::Two, .. })) = &self.found {
            match self.refs(address, prefixes, by) {
                Ok(refs) => return Ok(refs),
                // These mean the same whoever answers.
                Err(error @ (Error::Timeout { .. } | Error::Unreachable { .. } | Error::Denied { .. })) => {
                    return Err(error);
                }
                Err(_) => self.found = None,
            }
        }
        let (address, greeting, refs) = self.greet(by)?;
        let refs = match greeting.version {
            Version::Two => self.refs(&address, prefixes, by)?,
            Version::One => refs
                .into_iter()
                .filter(|found| prefixes.iter().any(|prefix| found.name.starts_with(prefix.as_str())))
                .collect(),
        };
        self.found = Some((address, greeting));
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
        if self.found.is_none() {
            let (address, greeting, _) = self.greet(by)?;
            self.found = Some((address, greeting));
        }
        let fetched = self.ask(wanted, pack, limit, by);
        if !matches!(fetched, Ok(_) | Err(Error::Timeout { .. } | Error::NoCommit { .. })) {
            self.found = None;
        }
        fetched
    }

    fn ask(
        &self,
        wanted: &Wanted<'_>,
        pack: &mut dyn Write,
        limit: u64,
        by: Instant,
    ) -> Result<Received, Error> {
        let Some((address, greeting)) = &self.found else { return Err(Error::Stopped) };
        let body = protocol::ask_objects(greeting, wanted);
        let answer = self.client.post(address, &body, by)?;
        let server = address.server();
        let mut packets = self.result(address, answer, limit)?;
        let received = protocol::objects(&mut packets, greeting, wanted.depth.is_some(), pack);
        received.map_err(|error| match (fault(&server, "bytes of objects", error), wanted.commits) {
            (Error::NoCommit { .. }, [commit, ..]) => Error::NoCommit { commit: commit.to_string().into() },
            (error, _) => error,
        })
    }

    /// True if the server can cut histories; false before it was asked.
    pub(super) fn cuts_history(&self) -> bool {
        self.found.as_ref().is_some_and(|(_, greeting)| greeting.shallow)
    }

    fn refs(
        &self,
        address: &HttpAddress,
        prefixes: &[String],
        by: Instant,
    ) -> Result<Vec<Advertised>, Error> {
        let answer = self.client.post(address, &protocol::ask_refs(prefixes), by)?;
        let mut packets = self.result(address, answer, MAX_LISTING_BYTES)?;
        protocol::refs(&mut packets).map_err(|error| fault(&address.server(), "bytes of refs", error))
    }

    /// Asks what the server can do, following redirects.
    fn greet(&self, by: Instant) -> Result<(HttpAddress, Greeting, Vec<Advertised>), Error> {
        let mut address = self.written.clone();
        for _ in 0..=MAX_REDIRECTS {
            let query = format!("{INFO_REFS}?service=git-upload-pack");
            let answer = self.client.get(&address, &query, by)?;
            if (300..400).contains(&answer.status) {
                let refused = || Error::Redirect { server: address.server().into() };
                let location = answer.location.ok_or_else(refused)?;
                address = address.redirected(&location, INFO_REFS).ok_or_else(refused)?;
                continue;
            }
            let server = address.server();
            let answer = accepted(&address, answer)?;
            if !answer.content_type.starts_with("application/x-git-upload-pack-advertisement") {
                let what = "it sends something else than Git's listing (a web page, perhaps)";
                return Err(Error::BadAnswer { server: server.into(), what });
            }
            let mut packets = Packets::new(answer.body, MAX_LISTING_BYTES);
            let found = protocol::greeting(&mut packets);
            let (greeting, refs) = found.map_err(|error| fault(&server, "bytes of refs", error))?;
            return Ok((address, greeting, refs));
        }
        Err(Error::Redirect { server: address.server().into() })
    }

    fn result(&self, address: &HttpAddress, answer: Answer, limit: u64) -> Result<Packets<impl Read>, Error> {
        let answer = accepted(address, answer)?;
        if !answer.content_type.starts_with("application/x-git-upload-pack-result") {
            let what = "it sends something else than Git's answer (a web page, perhaps)";
            return Err(Error::BadAnswer { server: address.server().into(), what });
        }
        Ok(Packets::new(answer.body, limit))
    }
}

/// The answer, if its status is 200.
fn accepted(address: &HttpAddress, answer: Answer) -> Result<Answer, Error> {
    let server: Box<str> = address.server().into();
    match answer.status {
        200 => Ok(answer),
        status @ (401 | 403 | 407) => Err(Error::Denied { server, status }),
        404 | 410 => Err(Error::NoRepository { server, path: address.path.clone() }),
        300..=399 => Err(Error::Redirect { server }),
        status => Err(Error::Status { server, status }),
    }
}
