//! Parts of a registry's answers.
//!
//! In: a body or an error.
//! Out: bounded bytes, an error that names a registry.

use std::io::Read;

use super::super::error::Error;
use super::super::http_failure::fault;
use super::artifact_error::ArtifactError;
use crate::pkt_line::ProtocolError;

/// Reads a body of at most `limit` bytes.
pub(super) fn read_bounded(
    body: Box<dyn Read>,
    server: &str,
    limit: u64,
    what: &'static str,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = body.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| of_registry(fault(server, what, ProtocolError::Input(error))))?;
    match bytes.len() as u64 > limit {
        true => Err(Error::TooLarge { server: server.into(), what, limit }),
        false => Ok(bytes),
    }
}

/// Names a registry where the message would name a Git server.
pub(super) fn of_registry(error: Error) -> Error {
    match error {
        Error::InvalidResponse { server, what } => ArtifactError::Registry {
            server,
            problem: format!("does not answer as a registry: {what}").into(),
        }
        .into(),
        error => error,
    }
}
