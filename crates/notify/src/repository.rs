//! The repository of a Sync, as the API of its host names it.
//!
//! In: the URL of a source, and the URL of an API.
//! Out: host and path, if both belong to the same host.

/// A repository on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedRepository {
    /// The host, in lower case and without a port.
    pub host: Box<str>,
    /// Its path there, such as `group/name`, without the suffix `.git`.
    pub path: Box<str>,
}

impl HostedRepository {
    /// Reads the URL of a source: `https://host/path`, `ssh://user@host/path` or `user@host:path`.
    pub fn of_url(url: &str) -> Option<Self> {
        let (authority, path) = match url.split_once("://") {
            Some((_, rest)) => rest.split_once('/')?,
            None => url.split_once(':')?,
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let host = host_of(authority);
        let is_whole = !host.is_empty() && path.contains('/') && !path.contains(['?', '#', '%', '\\']);
        let parts = || path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        (is_whole && parts()).then(|| Self { host: host.into(), path: path.into() })
    }

    /// True if the API at this URL is that of the repository's host: `api.HOST`, or `HOST` itself.
    pub fn is_on(&self, api: &str) -> bool {
        let api = host_of_url(api);
        // Some hosts take ssh at a name of its own.
        let host = self.host.strip_prefix("ssh.").unwrap_or(&self.host);
        api == *self.host || api == host || api.strip_prefix("api.") == Some(host)
    }
}

/// Returns the host of a URL, in lower case and without user and port; empty if it has none.
pub fn host_of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    host_of(rest.split(['/', '?', '#']).next().unwrap_or_default())
}

/// Returns the host of an authority, without user and port.
fn host_of(authority: &str) -> String {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_known_on_its_own_host_only() {
        for (url, api, expect) in [
            ("https://github.com/a/b.git", "https://api.github.com", Some("a/b")),
            ("git@github.com:a/b", "https://api.github.com", Some("a/b")),
            ("ssh://git@ssh.github.com:443/a/b.git", "https://api.github.com", Some("a/b")),
            ("https://git.example.com:8443/g/sub/c/", "https://git.example.com/api/v4", Some("g/sub/c")),
            ("https://gitlab.com/a/b", "https://api.github.com", None),
            ("https://evilgithub.com/a/b", "https://api.github.com", None),
            ("https://github.com.evil.example/a/b", "https://api.github.com", None),
            ("https://github.com/a", "https://api.github.com", None),
            ("https://github.com/a/../b", "https://api.github.com", None),
            ("https://github.com/a/b%2fc", "https://api.github.com", None),
            ("/srv/a/b", "https://api.github.com", None),
        ] {
            let found = HostedRepository::of_url(url).filter(|repository| repository.is_on(api));
            assert_eq!(found.as_ref().map(|it| &*it.path), expect, "{url} {api}");
        }
    }
}
