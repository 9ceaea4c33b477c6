//! How a server is talked to, apart from what is said: the one trait that http and ssh have in common.
//!
//! In: requests as bytes, with deadlines. Out: the server's greeting, and the frames of its answers. Over http every
//! request stands for itself and a greeting holds for later ones; over ssh a talk is one connection with a
//! beginning and an end. `remote.rs` knows only that a talk may have to be begun.

use std::fmt;
use std::io::Read;
use std::time::Instant;

use super::error::Error;
use super::packet::Packets;
use super::protocol::Greeting;
use super::revision::Advertised;

/// The most bytes of a listing of refs.
pub(super) const MAX_LISTING_BYTES: u64 = 64 * 1024 * 1024;

/// The frames of an answer that is still coming in.
pub(super) type Answered<'a> = Packets<Box<dyn Read + 'a>>;

/// A way to one repository on a server.
pub(super) trait Transport: fmt::Debug + Send {
    /// The server as messages name it, without user and path.
    fn server(&self) -> String;

    /// True if a request can be sent as things are; else a greeting comes first.
    fn is_ready(&self) -> bool;

    /// Begins a talk: what the server can do, and its refs if it tells them unasked.
    fn greet(&mut self, by: Instant) -> Result<(Greeting, Vec<Advertised>), Error>;

    /// Sends a request; its answer may have at most `limit` bytes.
    fn ask(&mut self, request: Vec<u8>, limit: u64, by: Instant) -> Result<Answered<'_>, Error>;

    /// Ends the talk, whatever became of it. It never takes long.
    fn end(&mut self);
}
