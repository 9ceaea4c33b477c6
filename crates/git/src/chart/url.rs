//! URL of a file: an address with a query.
//!
//! In: text, or a reference in a server's file.
//! Out: a [`Url`]. The rules of repository addresses apply, except that a query is allowed. It
//! often contains a signature and is never shown.

use std::fmt;

use super::super::address::{Address, HttpAddress, Kind};
use moorline_core::tree::normalise;

/// Maximum number of bytes of a query.
const MAX_QUERY_BYTES: usize = 8 * 1024;

/// The URL of a file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    address: HttpAddress,
    /// Begins with the question mark; empty without a query, or a slash at the end of the path.
    query: Box<str>,
}

impl Url {
    /// Parses an absolute https or http URL.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.split('#').next().unwrap_or_default();
        let (front, query) = text.split_at(text.find('?').unwrap_or(text.len()));
        let is_sound = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if query.len() > MAX_QUERY_BYTES || !query.bytes().all(is_sound) {
            return None;
        }
        match Address::remote(front).ok()?.kind() {
            Kind::Http(address) => Some(Self { address: address.clone(), query: query.into() }),
            Kind::Ssh(_) | Kind::Local(_) | Kind::Registry(_) => None,
        }
    }

    /// Resolves a reference relative to this URL.
    pub(crate) fn resolve(&self, reference: &str) -> Option<Self> {
        if reference.contains("://") {
            return Self::parse(reference);
        }
        if let Some(host) = reference.strip_prefix("//") {
            let scheme = if self.address.tls { "https" } else { "http" };
            return Self::parse(&format!("{scheme}://{host}"));
        }
        let (path, query) = reference.split_at(reference.find(['?', '#']).unwrap_or(reference.len()));
        if path.is_empty() {
            return None;
        }
        let folder = self.address.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = normalise(if path.starts_with('/') { "" } else { folder }, path)?;
        Self::parse(&format!("{}/{path}{query}", self.address.server()))
    }

    /// Returns the URL with another path and query.
    pub(crate) fn at(&self, path: &str) -> Option<Self> {
        Self::parse(&format!("{}{path}", self.address.server()))
    }

    /// Returns the URL with a slash at its end, as some endpoints of registries have it.
    pub(crate) fn with_slash(self) -> Self {
        Self { query: "/".into(), ..self }
    }

    /// Returns scheme, host and port, the name of the server in messages.
    pub(crate) fn server(&self) -> Box<str> {
        self.address.server().into()
    }

    pub(crate) fn host(&self) -> &str {
        &self.address.host
    }

    /// Returns host and port; without the port of the scheme.
    pub(crate) fn host_and_port(&self) -> String {
        self.address.server().split_once("://").map_or_else(String::new, |(_, host)| host.to_owned())
    }

    pub(crate) fn path(&self) -> &str {
        &self.address.path
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.address.tls
    }

    /// True if both have the same scheme, host and port.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.address.server() == other.address.server()
    }

    /// Returns the whole URL, only for the request.
    pub(crate) fn whole(&self) -> String {
        format!("{}{}", self.address, self.query)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_where_a_browser_would_go_and_no_higher() {
        let index = Url::parse("https://host/charts/index.yaml").unwrap();
        let table = [
            ("web-1.tgz", Some("https://host/charts/web-1.tgz")),
            ("./a/web-1.tgz?x=%2F", Some("https://host/charts/a/web-1.tgz?x=%2F")),
            ("../web-1.tgz", Some("https://host/web-1.tgz")),
            ("/web-1.tgz", Some("https://host/web-1.tgz")),
            ("//other/web-1.tgz", Some("https://other/web-1.tgz")),
            ("https://other:8443/web-1.tgz#x", Some("https://other:8443/web-1.tgz")),
            ("../../web-1.tgz", None),
            ("oci://other/web", None),
            ("https://me:planted@other/web-1.tgz", None),
            ("https://other/a/%2e%2e/web-1.tgz", None),
            ("file:///etc/passwd", None),
            ("", None),
        ];
        for (reference, expect) in table {
            let found = index.resolve(reference).map(|url| url.whole());
            assert_eq!(found.as_deref(), expect, "{reference}");
        }
        let signed = Url::parse("https://host/a?signature=planted").unwrap();
        assert!(!format!("{signed:?}").contains("planted"));
    }
}
