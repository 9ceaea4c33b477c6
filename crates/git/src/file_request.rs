//! Request for a file over http(s).
//!
//! In: what is asked of a server, and what is here already.
//! Out: the request without its login, which is added when it is sent.

use ureq::http;

use super::sensitive::Sensitive;

/// Validators of a response: its entity tag and the time of its last change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Validators {
    pub(super) etag: Option<String>,
    pub(super) modified: Option<String>,
}

/// Request for a file.
pub(super) struct FileRequest<'a> {
    /// HEAD instead of GET.
    pub(super) is_head: bool,
    pub(super) accept: &'a str,
    pub(super) authorization: Option<&'a Sensitive<String>>,
    /// Content that is here already.
    pub(super) known: Option<&'a Validators>,
}

impl FileRequest<'_> {
    /// Returns the request for a whole URL.
    pub(super) fn request(&self, url: &str) -> Result<http::Request<()>, http::Error> {
        let method = if self.is_head { http::Method::HEAD } else { http::Method::GET };
        let mut request =
            http::Request::builder().method(method).uri(url).header(http::header::ACCEPT, self.accept);
        let known = self.known.map(|known| (known.etag.as_deref(), known.modified.as_deref()));
        let (etag, modified) = known.unwrap_or_default();
        let conditions = [(http::header::IF_NONE_MATCH, etag), (http::header::IF_MODIFIED_SINCE, modified)];
        for (name, value) in conditions {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.body(())
    }
}
