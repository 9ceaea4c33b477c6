//! URLs, as Go parses those of requests.
//!
//! In: a text.
//! Out: a [`Url`], and its parts. A path alone is a URL; a name without a slash is not. There are
//! no fragments.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use super::evaluate::EvaluationError;
use super::value::CelValue;

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

/// Part of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlPart {
    Scheme,
    Host,
    Hostname,
    Port,
    Path,
    Query,
}

impl Url {
    /// Parses a URL; `None` if it is invalid.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.is_empty() || text.contains(|char: char| char.is_ascii_control()) {
            return None;
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let url = |host: &str, path: &str| Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        };
        if !rest.starts_with('/') {
            return (!scheme.is_empty() || rest == "*").then(|| url("", ""));
        }
        let Some(after) = rest.strip_prefix("//").filter(|_| !scheme.is_empty()) else {
            return unescaped(rest, false).map(|_| url("", rest));
        };
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let is_host = is_host(host) && unescaped(path, false).is_some();
        is_host.then(|| url(host, path))
    }
}

/// Returns a part of a URL as a value.
pub(super) fn piece<'a>(piece: UrlPart, of: &CelValue<'a>) -> Result<CelValue<'a>, EvaluationError> {
    let CelValue::Url(url) = of else { return Err(EvaluationError::WrongType("a URL")) };
    let (name, port) = host_and_port(&url.host);
    let text = match piece {
        UrlPart::Scheme => &url.scheme,
        UrlPart::Host => &url.host,
        UrlPart::Hostname => name.trim_start_matches('[').trim_end_matches(']'),
        UrlPart::Port => port,
        UrlPart::Path => return Ok(CelValue::Text(escaped(&url.path).into())),
        UrlPart::Query => return Ok(query(&url.query)),
    };
    Ok(CelValue::Text(text.to_owned().into()))
}

/// Splits off the scheme before the first colon, if there is one; `None` if the scheme is invalid.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (at, char) in text.char_indices() {
        match char {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return None,
            ':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn host_and_port(host: &str) -> (&str, &str) {
    let after = host.rfind(']').unwrap_or(0);
    match host[after..].rfind(':') {
        Some(at) => (&host[..after + at], &host[after + at + 1..]),
        None => (host, ""),
    }
}

fn is_host(host: &str) -> bool {
    let (name, port) = host_and_port(host);
    let is_letter = |char: char| {
        !char.is_ascii() || char.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"".contains(char)
    };
    let closes = !name.starts_with('[') || name.ends_with(']');
    closes && port.bytes().all(|byte| byte.is_ascii_digit()) && name.chars().all(is_letter)
}

/// Decodes sequences such as `%20`; `None` if one is invalid.
fn unescaped(text: &str, plus: bool) -> Option<String> {
    let (bytes, mut made, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits =
                    text.get(at + 1..at + 3).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))?;
                made.push(u8::from_str_radix(digits, 16).ok()?);
                at += 3;
                continue;
            }
            b'+' if plus => made.push(b' '),
            byte => made.push(*byte),
        }
        at += 1;
    }
    Some(String::from_utf8_lossy(&made).into_owned())
}

/// Encodes a path for a request.
fn escaped(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    if path.bytes().all(|byte| is_plain(byte) || b"!'()*[]%".contains(&byte)) {
        return path.to_owned();
    }
    let mut made = String::with_capacity(path.len());
    for byte in unescaped(path, false).unwrap_or_default().bytes() {
        match is_plain(byte) {
            true => made.push(char::from(byte)),
            false => _ = write!(made, "%{byte:02X}"),
        }
    }
    made
}

fn query<'a>(query: &str) -> CelValue<'a> {
    let mut found: BTreeMap<String, Vec<CelValue<'a>>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(name), Some(value)) = (unescaped(name, true), unescaped(value, true)) {
            found.entry(name).or_default().push(CelValue::Text(value.into()));
        }
    }
    let entries = found
        .into_iter()
        .map(|(name, values)| (CelValue::Text(name.into()), CelValue::List(Rc::new(values))));
    CelValue::Entries(Rc::new(entries.collect()))
}
