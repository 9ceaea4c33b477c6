//! The response to a request, before it is sent over HTTP.
//!
//! In: the result or error of a handler.
//! Out: [`ApiResponse`]: status code, headers, and a body that is either complete or a watch
//! stream.

use serde_json::Value;

use crate::status_error::StatusError;
use crate::watch::WatchStream;

/// Response to one request.
pub(crate) struct ApiResponse {
    pub(crate) code: u16,
    pub(crate) content: &'static str,
    /// Texts of `Warning` headers: hints for the user although the request succeeded.
    pub(crate) warnings: Vec<String>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: Body,
}

/// Body of a response.
pub(crate) enum Body {
    Complete(Vec<u8>),
    /// A watch: the body is a stream of events.
    Watch(Box<WatchStream>),
}

/// Content type of all bodies except plain text and discovery documents.
pub(crate) const JSON: &str = "application/json";

impl ApiResponse {
    /// Returns a response with a body that is JSON text already.
    pub(crate) fn text(code: u16, text: Vec<u8>) -> Self {
        Self { code, content: JSON, warnings: Vec::new(), retry_after: None, body: Body::Complete(text) }
    }

    /// Returns a response with the value as JSON.
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::text(code, value.to_string().into_bytes())
    }

    /// Returns a plain-text response with code 200.
    pub(crate) fn plain_text(word: &str) -> Self {
        Self { content: "text/plain; charset=utf-8", ..Self::text(200, word.as_bytes().to_vec()) }
    }

    /// Adds a warning before all others.
    pub(crate) fn warning_first(mut self, warning: Option<&str>) -> Self {
        self.warnings.splice(0..0, warning.map(str::to_owned));
        self
    }

    /// Replaces the warnings.
    pub(crate) fn warning(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

impl From<StatusError> for ApiResponse {
    fn from(refusal: StatusError) -> Self {
        let answer = Self::json(refusal.code, &refusal.status()).warning(refusal.warnings);
        Self { retry_after: refusal.retry_after, ..answer }
    }
}
