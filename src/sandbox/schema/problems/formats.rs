//! Formats and patterns of texts.
//!
//! In: what a definition says of a text. Out: whether a text is so. Formats that the API server does not check are not
//! checked; neither are those of books, cards and colours, which no definition of a cluster has.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use regex::bytes::RegexBuilder;
use serde_json::{Map, Value};

/// A pattern takes no more memory than this when it is compiled.
const MAX_PATTERN: usize = 1 << 20;

/// Formats of texts that are looked at, as they are without hyphens.
const TEXTS: [&str; 15] = [
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "byte",
    "date",
    "duration",
    "datetime",
    "password",
    "k8sshortname",
    "k8slongname",
];

/// The format that the server checks here; empty if it checks none.
pub(super) fn checked(rules: &Map<String, Value>) -> &str {
    let format = rules.get("format").and_then(Value::as_str).unwrap_or_default();
    let is_checked = match rules.get("type").and_then(Value::as_str) {
        Some("integer") => ["int32", "int64"].contains(&format),
        Some("number") => ["float", "double"].contains(&format),
        Some("string") | None => TEXTS.contains(&&*plain(format)),
        Some(_) => false,
    };
    if is_checked { format } else { "" }
}

/// True if the format is one of texts.
pub(super) fn is_of_text(rules: &Map<String, Value>) -> bool {
    rules.get("type").and_then(Value::as_str).is_none_or(|name| name == "string")
}

/// True if a text has a format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match &*plain(format) {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_range(text),
        "mac" => is_groups(text, ':', &[2; 6]) || is_groups(text, '-', &[2; 6]),
        "uuid" => is_groups(text, '-', &[8, 4, 4, 4, 12]) || is_groups(text, '-', &[32]),
        "byte" => text.len() % 4 == 0 && matches("^[A-Za-z0-9+/]*={0,2}$", text),
        "date" => matches("^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$", text),
        "datetime" => matches(
            "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
            text,
        ),
        "duration" => {
            text == "0" || matches("^[+-]?([0-9]+(\\.[0-9]*)? ?(ns|us|µs|ms|s|m|h|d|w|[a-z]+))+$", text)
        }
        "uri" => text.starts_with('/') || matches("^[A-Za-z][A-Za-z0-9+.-]*:[^ ]+$", text),
        "email" => matches("^[^@ ]+@[^@ ]+$", text) || matches("<[^@ ]+@[^@ ]+>$", text),
        "hostname" => !text.is_empty() && text.len() <= 253 && matches("^[A-Za-z0-9_.-]+$", text),
        "k8sshortname" => text.len() <= 63 && matches("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", text),
        "k8slongname" => {
            text.len() <= 253
                && matches("^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$", text)
        }
        _ => true,
    }
}

/// True if a pattern is found in a text. One that cannot be compiled is found nowhere.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let compile = |unicode| RegexBuilder::new(pattern).unicode(unicode).size_limit(MAX_PATTERN).build();
    // Classes such as \d are those of ASCII in Go, and here only without Unicode; a dot is a character only with it.
    let is_class =
        ["\\d", "\\w", "\\s", "\\b", "\\D", "\\W", "\\S", "\\B"].iter().any(|class| pattern.contains(class));
    let compiled = if is_class { compile(false) } else { compile(true).or_else(|_| compile(false)) };
    compiled.is_ok_and(|pattern| pattern.is_match(text.as_bytes()))
}

fn plain(format: &str) -> String {
    format.replace('-', "")
}

fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}

/// True if a text is groups of hexadecimal digits of these lengths.
fn is_groups(text: &str, sign: char, lengths: &[usize]) -> bool {
    let groups: Vec<&str> = text.split(sign).collect();
    groups.len() == lengths.len()
        && groups.iter().zip(lengths).all(|(group, length)| {
            group.len() == *length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}
