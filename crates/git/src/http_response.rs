//! Response of an http(s) server.
//!
//! In: what the client has received.
//! Out: the parts that this crate reads, with the body still to be read.

use std::io::Read;

use super::named_pause::LimitHeaders;

/// Head and body of a response.
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) content_type: String,
    /// The `WWW-Authenticate` challenge.
    pub(super) challenge: Option<String>,
    /// The `Date` header.
    pub(super) date: Option<String>,
    pub(super) etag: Option<String>,
    /// Time of the last change, as the server writes it.
    pub(super) modified: Option<String>,
    /// The digest that a registry announces for a manifest.
    pub(super) content_digest: Option<String>,
    /// Headers about limits of requests.
    pub(super) limits: LimitHeaders,
    /// Link to the next page.
    pub(super) link: Option<String>,
    pub(super) body: Box<dyn Read>,
}
