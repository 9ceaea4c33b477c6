//! Transport interface shared by http and ssh.
//!
//! In: requests as bytes, with deadlines.
//! Out: the capabilities of the server, and the pkt-lines of its responses. Over http every request
//! is independent and capabilities stay valid; over ssh an exchange is one connection with a
//! beginning and an end. `remote.rs` only knows that an exchange may have to be started.

use std::fmt;
use std::io::Read;
use std::time::Instant;

use super::error::Error;
use super::revision::AdvertisedRef;
use crate::pkt_line::PktLineReader;
use crate::upload_pack::ServerCapabilities;

/// Maximum number of bytes of a listing of refs.
pub(super) const MAX_LISTING_BYTES: u64 = 64 * 1024 * 1024;

/// Pkt-lines of a response that is still arriving.
pub(super) type ResponseLines<'a> = PktLineReader<Box<dyn Read + 'a>>;

/// Transport to one repository on a server.
pub(super) trait Transport: fmt::Debug + Send {
    /// Name of the server in messages, without user and path.
    fn server(&self) -> String;

    /// True if a request can be sent; otherwise a greeting is needed first.
    fn is_ready(&self) -> bool;

    /// Starts an exchange: returns the capabilities, and the refs if the server sends them unasked.
    fn greet(&mut self, by: Instant) -> Result<(ServerCapabilities, Vec<AdvertisedRef>), Error>;

    /// Sends a request; the response may have at most `limit` bytes.
    fn ask(&mut self, request: Vec<u8>, limit: u64, by: Instant) -> Result<ResponseLines<'_>, Error>;

    /// Ends the exchange, after any result. It never takes long.
    fn end(&mut self);
}
