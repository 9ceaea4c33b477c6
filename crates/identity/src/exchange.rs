//! One exchange: the request that the caller sends, and the token in its answer.
//!
//! In: what a provider's functions build.
//! Out: [`ExchangeRequest`], [`Token`], and [`ExchangeError`] for an answer without a token.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::secret::SecretText;

/// Maximum number of bytes of an answer that a caller has to read.
pub const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// Maximum number of bytes of a token.
pub const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Maximum time for which a token is kept, regardless of its answer.
pub const MAX_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The status of a server that is asked too often.
pub(crate) const TOO_MANY: u16 = 429;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Without a body.
    Get,
    /// With a body.
    Post,
    /// With a body that replaces a part.
    Patch,
    /// With a body that replaces the whole.
    Put,
}

/// A request for a token. Its URL has no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeRequest {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, SecretText)>,
    /// The body; empty for a `GET`.
    pub body: SecretText,
}

/// A short-lived token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The token.
    pub value: SecretText,
    /// The time of the server at which it expires.
    pub expires: Timestamp,
}

/// Error of an exchange. Answers are never quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// The server refuses; a person has to change something.
    #[error("{problem} (status {status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The reason, and a way out.
        problem: &'static str,
    },
    /// The server is overloaded or broken.
    #[error("it returned status {0}")]
    Unavailable(u16),
    /// The answer is not one to this request.
    #[error("it {0}")]
    Answer(&'static str),
    /// An input of the request is malformed.
    #[error("{0}")]
    Input(&'static str),
}

impl ExchangeRequest {
    /// Creates a `POST` of form fields.
    pub fn form(url: String, fields: &[(&str, &str)]) -> Self {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        Self {
            method: Method::Post,
            url,
            headers: vec![
                ("content-type", "application/x-www-form-urlencoded".into()),
                ("accept", "application/json".into()),
            ],
            body: SecretText::new(fields.join("&")),
        }
    }
}

impl Token {
    /// Returns the time that is left at a time of the server, at most [`MAX_LIFETIME`].
    pub fn lifetime(&self, now: Timestamp) -> Duration {
        let left = self.expires.as_second().saturating_sub(now.as_second());
        Duration::from_secs(left.try_into().unwrap_or(0)).min(MAX_LIFETIME)
    }
}

/// Reads the time in a `Date` header.
pub fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|time| time.timestamp())
}

/// Accepts the status 200. `problem` is the reason for which a server refuses.
pub(crate) fn accept(status: u16, problem: &'static str) -> Result<(), ExchangeError> {
    match status {
        200 => Ok(()),
        300..=399 => {
            Err(ExchangeError::Refused { status, problem: "it redirects elsewhere, which is not followed" })
        }
        400..=499 if status != TOO_MANY => Err(ExchangeError::Refused { status, problem }),
        status => Err(ExchangeError::Unavailable(status)),
    }
}

/// True for text that can be sent as a token.
pub(crate) fn is_token(text: &str) -> bool {
    let is_sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_sound && text.len() <= MAX_TOKEN_BYTES
}

/// Reads an answer of JSON.
pub(crate) fn json(body: &[u8]) -> Result<Value, ExchangeError> {
    serde_json::from_slice(body).map_err(|_| ExchangeError::Answer("sends no JSON"))
}

/// Returns a field of an answer that can be sent as a token.
pub(crate) fn token_field(answer: &Value, name: &str) -> Result<SecretText, ExchangeError> {
    let text = answer[name].as_str().filter(|text| is_token(text));
    text.map(SecretText::from).ok_or(ExchangeError::Answer("gives no token that can be used"))
}

/// Returns the time of a number of seconds after `now`.
pub(crate) fn after(now: Timestamp, seconds: &Value) -> Result<Timestamp, ExchangeError> {
    let number = seconds.as_u64().or_else(|| seconds.as_str().and_then(|text| text.parse().ok()));
    let seconds = number.and_then(|number| i64::try_from(number).ok());
    let until = seconds.and_then(|seconds| now.as_second().checked_add(seconds));
    until
        .and_then(|until| Timestamp::from_second(until).ok())
        .ok_or(ExchangeError::Answer("does not say when the token expires"))
}

/// Reads a time in RFC 3339.
pub(crate) fn time(text: Option<&str>) -> Result<Timestamp, ExchangeError> {
    text.and_then(|text| text.parse().ok())
        .ok_or(ExchangeError::Answer("does not say when the token expires"))
}

/// Encodes all but the unreserved characters of RFC 3986, as forms and AWS have it.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_of_the_servers_clock_and_bounded() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let token = |until: &str| Token { value: "t".into(), expires: time(until) };
        let now = time("2026-01-02T03:00:00Z");
        for (until, seconds) in
            [("2026-01-02T03:10:00Z", 600), ("2026-01-02T02:00:00Z", 0), ("2030-01-01T00:00:00Z", 3600)]
        {
            assert_eq!(token(until).lifetime(now), Duration::from_secs(seconds), "{until}");
        }
        assert_eq!(http_date("Fri, 02 Jan 2026 03:00:00 GMT"), Some(now));
        assert_eq!(http_date("yesterday"), None);
    }

    #[test]
    fn answers_are_read_and_never_quoted() {
        let answer = |text: &str| json(text.as_bytes()).unwrap();
        assert_eq!(token_field(&answer(r#"{"t": "abc"}"#), "t").unwrap().as_str(), "abc");
        let long = format!(r#"{{"t": "{}"}}"#, "a".repeat(MAX_TOKEN_BYTES + 1));
        for wrong in [r#"{"t": ""}"#, r#"{"t": "pla nted"}"#, r#"{"t": 7}"#, "[]", &long] {
            let error = token_field(&answer(wrong), "t").unwrap_err().to_string();
            assert_eq!(error, "it gives no token that can be used");
        }
        assert_eq!(json(b"planted").unwrap_err(), ExchangeError::Answer("sends no JSON"));
        let now = Timestamp::from_second(1000).unwrap();
        assert_eq!(after(now, &answer("60")).unwrap().as_second(), 1060);
        assert_eq!(after(now, &answer("\"60\"")).unwrap().as_second(), 1060);
        assert!(after(now, &answer("18446744073709551615")).is_err() && after(now, &Value::Null).is_err());
    }
}
