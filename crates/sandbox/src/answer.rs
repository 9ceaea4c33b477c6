//! An answer, before it is sent.
//!
//! In: what a handler found or refused. Out: [`Answer`]: a status, headers, and a body that is whole, or that goes on.

use serde_json::Value;

use super::follow::Follow;
use super::refusal::Refusal;

/// An answer to one request.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) content: &'static str,
    /// What a person should know although it went well.
    pub(crate) warnings: Vec<String>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: Body,
}

/// The body of an answer.
pub(crate) enum Body {
    Whole(Vec<u8>),
    /// A watch.
    Goes(Box<Follow>),
}

/// The usual form of bodies.
pub(crate) const JSON: &str = "application/json";

impl Answer {
    /// JSON text.
    pub(crate) fn text(code: u16, text: Vec<u8>) -> Self {
        Self { code, content: JSON, warnings: Vec::new(), retry_after: None, body: Body::Whole(text) }
    }

    /// A value as JSON.
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::text(code, value.to_string().into_bytes())
    }

    /// A plain word.
    pub(crate) fn word(word: &str) -> Self {
        Self { content: "text/plain; charset=utf-8", ..Self::text(200, word.as_bytes().to_vec()) }
    }

    /// With one more warning, before all others.
    pub(crate) fn warning_first(mut self, warning: Option<&str>) -> Self {
        self.warnings.splice(0..0, warning.map(str::to_owned));
        self
    }

    /// With warnings.
    pub(crate) fn warning(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let answer = Self::json(refusal.code, &refusal.status()).warning(refusal.warnings);
        Self { retry_after: refusal.retry_after, ..answer }
    }
}
