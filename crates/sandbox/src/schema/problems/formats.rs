//! Formats of strings.
//!
//! In: the `format` of a definition, and a text.
//! Out: true if the text has the format. Formats that the API server ignores are ignored; so are
//! those of ISBNs, credit cards and colors, which no definition on a cluster uses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use moorline_core::name_rules::{is_dns_label, is_dns_subdomain};
use serde_json::{Map, Value};

/// String formats that are checked, without their hyphens.
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

/// Returns the format that the server checks here; empty if it checks none.
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

/// True if the format applies to strings.
pub(super) fn is_of_text(rules: &Map<String, Value>) -> bool {
    rules.get("type").and_then(Value::as_str).is_none_or(|name| name == "string")
}

/// True if the text has the format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match &*plain(format) {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_range(text),
        "mac" => is_groups(text, ':', &[2; 6]) || is_groups(text, '-', &[2; 6]),
        "uuid" => is_groups(text, '-', &[8, 4, 4, 4, 12]) || is_groups(text, '-', &[32]),
        "byte" => {
            let digits = text.trim_end_matches('=');
            let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
            text.len().is_multiple_of(4) && text.len() - digits.len() < 3 && digits.bytes().all(is_digit)
        }
        "date" => is_date(text),
        "datetime" => text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time)),
        "duration" => is_duration(text),
        "uri" => {
            let is_scheme = |scheme: &str| {
                scheme.starts_with(|char: char| char.is_ascii_alphabetic())
                    && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+.-".contains(char))
            };
            text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
        }
        "email" => text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()),
        "hostname" => text.len() <= 253 && text.split('.').all(is_host_part),
        "k8sshortname" => is_dns_label(text),
        "k8slongname" => is_dns_subdomain(text),
        _ => true,
    }
}

/// Checks a part of a host name between two dots. Hosts may have capitals and underscores, which
/// names of Kubernetes have not.
fn is_host_part(text: &str) -> bool {
    let is_inner = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.chars().all(is_inner)
}

/// Checks for exactly this number of digits, within the bounds.
fn is_number(text: Option<&str>, digits: usize, least: u16, most: u16) -> bool {
    text.filter(|text| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .is_some_and(|number: u16| (least..=most).contains(&number))
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    is_number(parts.next(), 4, 0, 9999)
        && is_number(parts.next(), 2, 1, 12)
        && is_number(parts.next(), 2, 1, 31)
        && parts.next().is_none()
}

fn is_time(text: &str) -> bool {
    let end = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(end);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let is_clock = |text: &str, seconds: bool| {
        let mut parts = text.split(':');
        is_number(parts.next(), 2, 0, 23)
            && is_number(parts.next(), 2, 0, 59)
            && (!seconds || is_number(parts.next(), 2, 0, 59))
            && parts.next().is_none()
    };
    let is_zone = matches!(zone, "Z" | "z") || zone.get(1..).is_some_and(|zone| is_clock(zone, false));
    is_clock(clock, true)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && is_zone
}

/// Checks for numbers with units: `1h30m`, `22 ns`. Not Go's dialect: that of the library for
/// formats has blanks before units, and units up to weeks.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let digits = rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
        let unit = digits.trim_start_matches(' ');
        let next = unit.trim_start_matches(char::is_alphabetic);
        if digits.len() == rest.len() || next.len() == unit.len() {
            return false;
        }
        rest = next;
    }
    !text.is_empty()
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

/// Checks for groups of hexadecimal digits with these lengths.
fn is_groups(text: &str, sign: char, lengths: &[usize]) -> bool {
    let groups: Vec<&str> = text.split(sign).collect();
    groups.len() == lengths.len()
        && groups.iter().zip(lengths).all(|(group, length)| {
            group.len() == *length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_formats() {
        let check = |format: &str, yes: &[&str], no: &[&str]| {
            assert!(yes.iter().all(|text| fits(format, text)), "{format}: {yes:?}");
            assert!(no.iter().all(|text| !fits(format, text)), "{format}: {no:?}");
        };
        check(
            "date-time",
            &["2026-01-02T03:04:05Z", "2026-01-02t03:04:05.5+01:00"],
            &["", "2026-01-02", "2026-13-02T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T25:04:05Z"],
        );
        check("date", &["2026-01-02"], &["2026-1-2", "x"]);
        check("duration", &["0", "1h30m", "1.5s", "22 ns", "-3ms"], &["", "1", "h", "1h3"]);
        check("ipv4", &["1.2.3.4"], &["1.2.3", "::1"]);
        check("ipv6", &["::1"], &["1.2.3.4"]);
        check("cidr", &["10.0.0.0/8", "::/64"], &["10.0.0.0", "10.0.0.0/33"]);
        check("mac", &["00:1a:2b:3c:4d:5e"], &["00:1a"]);
        check("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567"]);
        check("byte", &["", "aGk="], &["aGk", "a*k="]);
        check("uri", &["https://a.b/c", "/path"], &["a b", ""]);
        check("email", &["a@b.c"], &["a", "@b"]);
        check("hostname", &["a-b.C"], &["", "-a", "a..b"]);
        check("k8s-short-name", &["a-b"], &["A", "a.b"]);
        check("k8s-long-name", &["a-b.c"], &["a..b"]);
    }
}
