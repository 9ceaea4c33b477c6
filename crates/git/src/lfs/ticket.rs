//! Asks a server over ssh who serves the files of a repository.
//!
//! In: an address and a key. Out: the https URL of Git LFS, and headers for it, which the server of
//! the repository gives for a short time.

use std::io::Read as _;
use std::time::Instant;

use serde_json::Value;
use ureq::http::HeaderMap;

use super::super::address::SshAddress;
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::hosts::HostPolicy;
use super::super::http_failure::fault;
use super::super::ssh_session::SshSession;
use super::super::ssh_transport::SshLogin;
use super::batch;
use super::error::LfsProblem;
use crate::chart::url::Url;
use crate::pkt_line::ProtocolError;

/// Maximum number of bytes of the answer.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// Runs `git-lfs-authenticate` on the server.
pub(super) fn ask(
    address: &SshAddress,
    credentials: &Credentials,
    hosts: &HostPolicy,
    by: Instant,
) -> Result<(Url, HeaderMap), LfsProblem> {
    let login = SshLogin::read(credentials).map_err(Error::from)?;
    // The address contains no character that ends the quotes.
    let command = format!("git-lfs-authenticate '{}' download", address.path);
    let mut session = SshSession::open(address, &login, hosts, command, by)?;
    let (server, mut said) = (address.server(), Vec::new());
    let read = session.answer(by).take(MAX_ANSWER_BYTES).read_to_end(&mut said);
    let status = session.exit(by);
    session.close();
    read.map_err(|error| fault(&server, "bytes of a ticket", ProtocolError::Input(error)))?;
    answer(&server, &said)
        .filter(|_| status.is_none_or(|status| status == 0))
        .unwrap_or_else(|| Err(LfsProblem::NoTicket { server: server.into() }))
}

/// Reads the answer; none if it is not one.
fn answer(server: &str, said: &[u8]) -> Option<Result<(Url, HeaderMap), LfsProblem>> {
    let said: Value = serde_json::from_slice(said).ok()?;
    said["href"].as_str()?;
    Some(batch::place(server, &said).and_then(|place| match place.0.is_tls() {
        true => Ok(place),
        false => {
            let problem = "gives an address of Git LFS that is not one of https";
            Err(LfsProblem::Invalid { server: server.into(), problem })
        }
    }))
}
