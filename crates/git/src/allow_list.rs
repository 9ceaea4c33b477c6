//! Allow list of repositories that may be read in addition to the one of a Sync.
//!
//! In: URL prefixes, configured by the operator of the daemon.
//! Out: true if an address is below one of them. Both are compared in canonical form, segment by
//! segment; scheme, host and port must be equal. In doubt an address is not allowed.

use super::address::{Address, HttpAddress, Kind};
use super::error::Error;

/// Placeholder for a folder below a prefix while it is parsed: a prefix alone may not be an
/// address.
const BELOW: &str = "/_";

/// Allowed URL prefixes; an empty list allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList(Vec<HttpAddress>);

impl AllowList {
    /// Parses the entries of a setting or a flag.
    pub fn new<'a>(
        setting: &'static str,
        prefixes: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let refuse = |problem| Error::Setting { setting, problem };
        let one = |text: &str| {
            let address = Address::remote(&format!("{}{BELOW}", text.trim().trim_end_matches('/')));
            let Ok(Kind::Http(address)) = address.as_ref().map(Address::kind) else {
                return Err(refuse(FORM));
            };
            let path = address.path.strip_suffix(BELOW).unwrap_or_default();
            match path.split('/').skip(1).all(|part| !part.is_empty() && part != ".") {
                true => Ok(HttpAddress { path: path.into(), ..address.clone() }),
                false => Err(refuse(FORM)),
            }
        };
        prefixes.into_iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    /// True if nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if an address equals one of the prefixes or is below one.
    pub fn allows(&self, address: &Address) -> bool {
        match address.kind() {
            Kind::Http(address) => self.0.iter().any(|prefix| is_below(prefix, address)),
            Kind::Ssh(_) | Kind::Local(_) | Kind::Registry(_) => false,
        }
    }
}

const FORM: &str =
    "has an entry that is not a URL prefix; write https://host or https://host/group, without a user";

fn is_below(prefix: &HttpAddress, address: &HttpAddress) -> bool {
    let same_server = (prefix.tls, &prefix.host, prefix.port) == (address.tls, &address.host, address.port);
    // A repository is the same with and without the suffix `.git`.
    let plain = |path: &HttpAddress| path.path.strip_suffix(".git").unwrap_or(&path.path).to_owned();
    let below = address.path.strip_prefix(&*prefix.path).is_some_and(|rest| rest.starts_with('/'));
    same_server && (below || plain(prefix) == plain(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_a_part_of_the_path_ends() {
        let table = [
            ("https://example.com/org", "https://example.com/org/repo", true),
            ("https://example.com/org/", "https://EXAMPLE.com:443/org/repo.git", true),
            ("https://example.com/org", "https://example.com/org", true),
            ("https://example.com/org", "https://example.com/organisation/repo", false),
            ("https://example.com/org", "https://example.com/Org/repo", false),
            ("https://example.com/org", "https://example.com/", false),
            ("https://example.com/org", "https://example.com//org/repo", false),
            ("https://example.com/org", "https://example.com/./org/repo", false),
            ("https://example.com/org", "https://example.com/or%67/repo", false),
            ("https://example.com/org", "https://example.com/org/../other/repo", false),
            ("https://example.com/org", "https://example.com/org/%2e%2e/other", false),
            ("https://example.com/org", "https://example.com/org%2f..%2fother", false),
            ("https://example.com/org", "http://example.com/org/repo", false),
            ("https://example.com/org", "https://example.com:8443/org/repo", false),
            ("https://example.com/org", "https://example.com.evil.example/org/repo", false),
            ("https://example.com", "https://example.com.evil.example/org/repo", false),
            ("https://example.com", "https://example.com@evil.example/org/repo", false),
            ("https://example.com", "https://example.com/any/repo", true),
            ("https://example.com/org/repo", "https://example.com/org/repo.git", true),
            ("https://example.com/org/repo.git", "https://example.com/org/repo", true),
            ("https://example.com/org.git", "https://example.com/org/repo", false),
            ("https://example.com/org/repo", "https://example.com/org/repo.github", false),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/base.git", true),
            ("https://example.com", "ssh://git@example.com/org/repo", false),
            ("https://example.com", "/srv/repo", false),
        ];
        for (prefix, url, expect) in table {
            let list = AllowList::new("remoteBases", [prefix]).unwrap();
            let allowed = Address::local_or_remote(url).is_ok_and(|address| list.allows(&address));
            assert_eq!(allowed, expect, "{prefix} {url}");
        }
        assert!(!AllowList::default().allows(&Address::remote("https://example.com/a").unwrap()));
    }

    #[test]
    fn what_is_no_prefix_is_refused_and_not_repeated() {
        for text in [
            "",
            "*",
            "example.com",
            "https://",
            "https://me:planted@host",
            "ssh://git@host",
            "file:///srv",
            "https://host/a/../b",
            "https://host/a//b",
            "https://host/a?b",
        ] {
            let error = AllowList::new("remoteBases", [text]).unwrap_err().to_string();
            assert!(error.contains("remoteBases") && !error.contains("planted"), "{text}: {error}");
        }
    }
}
