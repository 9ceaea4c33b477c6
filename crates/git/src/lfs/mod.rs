//! Fetches the files that Git LFS keeps outside of a repository.
//!
//! In: pointers, and the address and login of the repository.
//! Out: the files in a cache on disk, verified by size and digest. `client.rs` sends the requests
//! of `batch.rs`, `ticket.rs` asks a server over ssh who serves them, and `error.rs` has the
//! errors.
//!
//! The server of the repository is asked, and says where each file is. Our login is sent to that
//! server only; another one gets the headers that the answer gives for it, and has to be allowed
//! by the host policy. A redirected download carries neither. `.lfsconfig` is not read: a
//! repository must not choose who gets the login.

mod batch;
mod client;
mod error;
mod ticket;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

pub use error::{LfsError, LfsProblem};

use super::address::Address;
use super::chart::Digest;
use super::credentials::Credentials;
use super::digest_cache::{DigestCache, ReceiveError};
use super::error::Error;
use super::http::SharedNetwork;
use super::http_failure::fault;
use crate::pkt_line::ProtocolError;
use client::LfsClient;
use moorline_core::tree::{LfsPointer, MAX_FILE_BYTES};

/// Maximum number of bytes of all files of one render.
pub(super) const MAX_RENDER_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum number of files of one render.
pub(super) const MAX_RENDER_FILES: usize = 1000;

/// Maximum number of bytes of all cached files.
pub(super) const MAX_CACHE_BYTES: u64 = 2 * MAX_RENDER_BYTES;

/// Maximum number of cached files.
pub(super) const MAX_CACHE_FILES: usize = 4 * MAX_RENDER_FILES;

/// Maximum number of files in one request, as Git LFS has it.
const MAX_BATCH: usize = 100;

/// A file in Git LFS that a render reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LfsFile {
    /// Path of the pointer.
    pub path: Box<str>,
    /// The pointer.
    pub pointer: LfsPointer,
}

impl LfsFile {
    /// Returns the error for this file.
    pub fn error(&self, problem: impl Into<LfsProblem>) -> LfsError {
        LfsError { path: self.path.clone(), oid: self.pointer.oid.clone(), problem: problem.into() }
    }

    /// Returns the digest of the file.
    pub(super) fn digest(&self) -> Option<Digest> {
        Digest::parse(&self.pointer.oid)
    }
}

/// Checks that the files of one render are within the bounds.
pub(super) fn check_bounds(files: &[LfsFile]) -> Result<(), LfsError> {
    let is_large = |file: &&LfsFile| file.pointer.size > MAX_FILE_BYTES;
    if let Some(large) = files.iter().find(is_large) {
        return Err(large.error(LfsProblem::TooLarge { size: large.pointer.size }));
    }
    let all: BTreeSet<&LfsPointer> = files.iter().map(|file| &file.pointer).collect();
    let bytes: u64 = all.iter().map(|pointer| pointer.size).sum();
    match files.last() {
        Some(last) if bytes > MAX_RENDER_BYTES || all.len() > MAX_RENDER_FILES => {
            Err(last.error(LfsProblem::TooMuch))
        }
        Some(_) | None => Ok(()),
    }
}

/// Fetches the files that are not in the cache yet.
pub(super) fn fetch(
    (cache, owner): (&DigestCache, &str),
    network: &SharedNetwork,
    (address, credentials): (&Address, &Credentials),
    files: &[LfsFile],
    by: Instant,
) -> Result<(), LfsError> {
    check_bounds(files)?;
    // A file at several paths is fetched once.
    let mut wanted: BTreeMap<&str, (&LfsFile, Digest)> = BTreeMap::new();
    for file in files {
        if let Some(digest) = file.digest().filter(|digest| !cache.has(owner, *digest)) {
            wanted.insert(&file.pointer.oid, (file, digest));
        }
    }
    let wanted: Vec<(&LfsFile, Digest)> = wanted.into_values().collect();
    let Some((first, _)) = wanted.first() else { return Ok(()) };
    let mut client =
        LfsClient::new(address, credentials, network, by).map_err(|problem| first.error(problem))?;
    for part in wanted.chunks(MAX_BATCH) {
        let pointers: Vec<&LfsPointer> = part.iter().map(|(file, _)| &file.pointer).collect();
        let mut places = client.places(&pointers).map_err(|problem| first.error(problem))?;
        for (file, digest) in part {
            let missing = || Err(LfsProblem::Missing { server: client.server() });
            let place = places.remove(&file.pointer.oid).unwrap_or_else(missing);
            let place = place.map_err(|problem| file.error(problem))?;
            let received = client.download(place).and_then(|(answer, server)| {
                let announced = (*digest, file.pointer.size);
                let mut body = answer.body;
                cache
                    .receive(owner, announced, &mut body)
                    .map_err(|error| received(&server, announced.1, error))
            });
            received.map_err(|problem| file.error(problem))?;
        }
    }
    Ok(())
}

/// Converts the error of a file that arrives.
fn received(server: &str, size: u64, error: ReceiveError) -> LfsProblem {
    match error {
        ReceiveError::Sender(error) => fault(server, "bytes of a file", ProtocolError::Input(error)).into(),
        ReceiveError::Disk(error) => {
            Error::Disk { what: "write a file of Git LFS", cause: error.to_string().into() }.into()
        }
        ReceiveError::Size => LfsProblem::Size { server: server.into(), size },
        ReceiveError::Digest(found) => {
            LfsProblem::Digest { server: server.into(), found: found.to_string().into() }
        }
    }
}
