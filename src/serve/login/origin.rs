//! The address of the console: which hosts it answers, and which requests come from its own pages.
//!
//! In: headers. Out: decisions. A foreign website that reaches the console by DNS rebinding has
//! another host, and a foreign form has another origin.

use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN};

use crate::serve::status_page::is_of_the_loopback;

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The address under which browsers reach the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::serve) struct ConsoleAddress {
    /// The whole address, without a slash at its end.
    pub(super) url: Box<str>,
}

impl ConsoleAddress {
    pub(super) fn new(url: &str) -> Self {
        Self { url: url.to_ascii_lowercase().into() }
    }

    /// True if browsers come over TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.url.starts_with("https://")
    }

    fn host(&self) -> &str {
        let host = self.url.split("://").nth(1).unwrap_or_default();
        without_port(host, self.is_secure())
    }

    /// True if a request is for this address.
    pub(super) fn is_asked(&self, headers: &HeaderMap) -> bool {
        host(headers).is_some_and(|host| without_port(&host, self.is_secure()) == self.host())
    }

    fn is_origin(&self, origin: &str) -> bool {
        let scheme = if self.is_secure() { "https://" } else { "http://" };
        origin.strip_prefix(scheme).is_some_and(|host| without_port(host, self.is_secure()) == self.host())
    }
}

/// True if the console answers the host of a request: its own, or a name of the loopback interface.
pub(super) fn is_known_host(address: Option<&ConsoleAddress>, headers: &HeaderMap) -> bool {
    host(headers).is_some()
        && (is_of_the_loopback(headers) || address.is_some_and(|address| address.is_asked(headers)))
}

/// True if a request that changes something comes from a page of the console. Browsers say so by
/// `Origin` or `Sec-Fetch-Site`; `may_lack` is true for clients that are no browsers.
pub(in crate::serve) fn is_same_origin(
    address: Option<&ConsoleAddress>,
    headers: &HeaderMap,
    may_lack: bool,
) -> bool {
    let site = match one(headers, &SITE) {
        Ok(site) => site,
        Err(()) => return false,
    };
    if site.as_deref().is_some_and(|site| site != "same-origin") {
        return false;
    }
    match one(headers, &ORIGIN) {
        Err(()) => false,
        Ok(None) => site.is_some() || may_lack,
        // Of a page without referrers, also for its own origin; the other header decides.
        Ok(Some(origin)) if origin == "null" => site.is_some(),
        Ok(Some(origin)) => {
            let own = address.is_some_and(|address| address.is_asked(headers) && address.is_origin(&origin));
            let host = host(headers).unwrap_or_default();
            let near = is_of_the_loopback(headers)
                && ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(&*host));
            own || near
        }
    }
}

/// Returns the host of a request in lower case; `None` if there is not exactly one.
fn host(headers: &HeaderMap) -> Option<String> {
    one(headers, &HOST).ok().flatten()
}

/// Returns the value of a header in lower case; an error if it is there twice, or no text.
fn one(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, ()> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else { return Ok(None) };
    match (value.to_str(), all.next()) {
        (Ok(value), None) => Ok(Some(value.to_ascii_lowercase())),
        _ => Err(()),
    }
}

fn without_port(host: &str, is_secure: bool) -> &str {
    host.strip_suffix(if is_secure { ":443" } else { ":80" }).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_own_host_is_answered() {
        let address = ConsoleAddress::new("https://Console.example");
        for (host, expect) in [
            ("console.example", true),
            ("CONSOLE.example:443", true),
            ("127.0.0.1:8081", true),
            ("localhost", true),
            ("console.example:80", false),
            ("console.example.evil", false),
            ("evil.example", false),
            ("", false),
        ] {
            assert_eq!(is_known_host(Some(&address), &headers(&[("host", host)])), expect, "{host}");
        }
        assert!(!is_known_host(Some(&address), &headers(&[])));
        let two = headers(&[("host", "console.example"), ("host", "evil.example")]);
        assert!(!is_known_host(Some(&address), &two));
        assert!(!is_known_host(None, &headers(&[("host", "console.example")])));
    }

    #[test]
    fn only_the_own_origin_changes_something() {
        let address = ConsoleAddress::new("https://console.example");
        let own = ("host", "console.example");
        let near = ("host", "localhost:8081");
        for (lines, expect) in [
            (&[own, ("origin", "https://console.example")][..], true),
            (&[own, ("origin", "https://console.example"), ("sec-fetch-site", "same-origin")], true),
            (&[own, ("sec-fetch-site", "same-origin")], true),
            (&[own, ("origin", "null"), ("sec-fetch-site", "same-origin")], true),
            (&[near, ("origin", "http://localhost:8081")], true),
            (&[own], false),
            (&[own, ("origin", "null")], false),
            (&[own, ("origin", "http://console.example")], false),
            (&[own, ("origin", "https://evil.example")], false),
            (&[own, ("origin", "https://console.example.evil")], false),
            (&[own, ("origin", "https://console.example"), ("origin", "https://evil.example")], false),
            (&[own, ("origin", "https://console.example"), ("sec-fetch-site", "cross-site")], false),
            (&[own, ("origin", "null"), ("sec-fetch-site", "cross-site")], false),
            (&[own, ("sec-fetch-site", "same-site")], false),
            (&[own, ("sec-fetch-site", "none")], false),
            (&[near, ("origin", "https://console.example")], false),
            (&[near, ("origin", "http://localhost:8082")], false),
        ] {
            assert_eq!(is_same_origin(Some(&address), &headers(lines), false), expect, "{lines:?}");
            let foreign = lines.len() > 1 && !expect;
            assert_eq!(is_same_origin(Some(&address), &headers(lines), true), !foreign, "{lines:?}");
        }
    }
}
