//! Parses repository URLs, and brings them into one canonical form.
//!
//! In: text as a person wrote it.
//! Out: an [`Address`]. A URL with a password, with a query, or on the daemon's own disk is refused
//! here, with advice on the correct form, so no later code can leak or follow one.

use std::fmt;
use std::path::{Path, PathBuf};

use super::artifact::RegistryAddress;

/// Maximum number of bytes of a URL.
const MAX_URL_BYTES: usize = 2048;

/// A validated address of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub(super) Kind);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Http(HttpAddress),
    Ssh(SshAddress),
    Local(PathBuf),
    Registry(RegistryAddress),
}

/// `http(s)://host[:port]/path`, without user, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HttpAddress {
    pub(super) tls: bool,
    /// Lower case; an IPv6 address keeps its brackets.
    pub(super) host: Box<str>,
    pub(super) port: u16,
    /// Begins with a slash and does not end with one.
    pub(super) path: Box<str>,
}

/// `ssh://user@host[:port]/path`, or `user@host:path`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SshAddress {
    pub(super) user: Box<str>,
    pub(super) host: Box<str>,
    pub(super) port: u16,
    /// Path as passed to the server's shell; relative to the home folder unless it begins with a
    /// slash.
    pub(super) path: Box<str>,
}

/// Error for text that is not the address of a repository. The text is not quoted: it may contain a
/// password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is empty.
    #[error("the repository's URL is empty; write one such as https://host/group/repository.git")]
    Empty,
    /// The text is too long.
    #[error("the repository's URL is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    /// A user or a password before the host.
    #[error(
        "the repository's URL has a user or a password in it; put them into a Secret (username, password)"
    )]
    UserInfo,
    /// A password in an ssh URL.
    #[error(
        "the repository's ssh URL has a password in it; use a key in a Secret (ssh-privatekey, known_hosts)"
    )]
    SshPassword,
    /// `file://` or a path, although only remote repositories are allowed.
    #[error("the repository's URL leads to the daemon's own disk; only https and ssh are allowed here")]
    Local,
    /// A scheme other than https, http, ssh and file.
    #[error("the repository's URL has an unknown scheme; write https://host/path or ssh://user@host/path")]
    Scheme,
    /// A `?` or `#`.
    #[error("the repository's URL has a query or a fragment; leave out what begins with ? or #")]
    Query,
    /// The host is missing or invalid.
    #[error("the repository's URL has no valid host")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("the repository's URL has a port that is not a number from 1 to 65535")]
    Port,
    /// The path is missing or contains `..`.
    #[error(
        "the repository's URL needs a path to a repository behind the host, without .. in it, and without codes for dots, \
         slashes and percent signs"
    )]
    Path,
    /// The URL of a registry has another scheme.
    #[error("the artifact's URL has to begin with oci://, such as oci://host/path")]
    RegistryScheme,
    /// The path in a registry is invalid.
    #[error(
        "the artifact's URL needs a path that a registry can have, without a tag or digest: lower-case letters, digits, dots, \
         dashes and underscores; a media type has a slash"
    )]
    RegistryPath,
    /// A space, a control character, or a character that has to be percent-encoded.
    #[error("the repository's URL has a space or another character that must be percent-encoded")]
    Character,
}

impl Address {
    /// Parses the address of a remote repository; the local disk is refused.
    pub fn remote(text: &str) -> Result<Self, AddressError> {
        match Self::local_or_remote(text)? {
            Self(Kind::Local(_)) => Err(AddressError::Local),
            address => Ok(address),
        }
    }

    /// Parses the address of a remote or local repository, for callers that may read the local
    /// disk.
    pub fn local_or_remote(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.len() > MAX_URL_BYTES {
            return Err(AddressError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(AddressError::Character);
        }
        let kind = match text.split_once("://") {
            Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
                "https" => Kind::Http(http(true, rest)?),
                "http" => Kind::Http(http(false, rest)?),
                "ssh" | "git+ssh" | "ssh+git" => Kind::Ssh(ssh(rest)?),
                "file" => Kind::Local(local(rest)?),
                _ => return Err(AddressError::Scheme),
            },
            None => match scp(text) {
                Some((login, path)) => Kind::Ssh(ssh_parts(login, None, path)?),
                None => Kind::Local(local(text)?),
            },
        };
        Ok(Self(kind))
    }

    /// True if both name the same repository, even if one uses https and the other ssh.
    pub fn is_same_repository(&self, other: &Self) -> bool {
        let place = |address: &Self| match &address.0 {
            Kind::Http(at) => (at.host.to_lowercase(), at.path.to_string()),
            Kind::Ssh(at) => (at.host.to_lowercase(), at.path.to_string()),
            Kind::Local(path) => (String::new(), path.display().to_string()),
            Kind::Registry(at) => (at.host_and_port(), at.repository().to_owned()),
        };
        let bare = |(host, path): (String, String)| {
            let path = path.trim_matches('/');
            (host, path.strip_suffix(".git").unwrap_or(path).to_owned())
        };
        bare(place(self)) == bare(place(other))
    }

    /// True for a repository on the local disk.
    pub fn is_local(&self) -> bool {
        matches!(self.0, Kind::Local(_))
    }

    /// Returns the host of a remote repository, in lower case.
    pub fn host(&self) -> Option<&str> {
        match &self.0 {
            Kind::Http(address) => Some(&address.host),
            Kind::Ssh(address) => Some(&address.host),
            Kind::Local(_) => None,
            Kind::Registry(address) => Some(address.host()),
        }
    }

    /// Returns the folder of a repository on the local disk.
    pub fn local_path(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Local(path) => Some(path),
            Kind::Http(_) | Kind::Ssh(_) | Kind::Registry(_) => None,
        }
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0
    }
}

impl HttpAddress {
    /// Returns scheme, host and port, the name of the server in messages.
    pub(super) fn server(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        match self.port == default_port(self.tls) {
            true => format!("{scheme}://{}", self.host),
            false => format!("{scheme}://{}:{}", self.host, self.port),
        }
    }

    /// Returns the host, with the port unless it is the usual one.
    pub(super) fn host_and_port(&self) -> String {
        let server = self.server();
        server.split_once("://").map_or_else(String::new, |(_, host)| host.to_owned())
    }

    /// Returns the address of a redirect to `location`, if it may be followed.
    ///
    /// Only to the same host, and only to the same scheme and port or from http to https:
    /// credentials must not reach a server that they were not given for, and a server must not make
    /// the daemon send requests to other hosts in its network.
    pub(super) fn redirected(&self, location: &str, endpoint: &str) -> Option<Self> {
        let location = location.split_once(['?', '#']).map_or(location, |(front, _)| front);
        let path_only = location.starts_with('/') && !location.starts_with("//");
        let absolute = if path_only { format!("{}{location}", self.server()) } else { location.to_owned() };
        let base = absolute.strip_suffix(endpoint)?;
        let Ok(Address(Kind::Http(target))) = Address::remote(base) else { return None };
        let upgrade = !self.tls && target.tls;
        let same = self.tls == target.tls && self.port == target.port;
        (target.host == self.host && (same || upgrade)).then_some(target)
    }
}

impl SshAddress {
    /// Returns scheme, host and port, the name of the server in messages.
    pub(super) fn server(&self) -> String {
        match self.port {
            22 => format!("ssh://{}", self.host),
            port => format!("ssh://{}:{port}", self.host),
        }
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.server(), self.path)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Http(address) => write!(f, "{address}"),
            Kind::Ssh(SshAddress { user, host, port, path }) => {
                let slash = if path.starts_with('/') { "" } else { "/~/" };
                match port {
                    22 => write!(f, "ssh://{user}@{host}{slash}{path}"),
                    port => write!(f, "ssh://{user}@{host}:{port}{slash}{path}"),
                }
            }
            Kind::Local(path) => write!(f, "{}", path.display()),
            Kind::Registry(address) => write!(f, "{address}"),
        }
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

fn http(tls: bool, rest: &str) -> Result<HttpAddress, AddressError> {
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(AddressError::UserInfo);
    }
    if rest.contains(['?', '#']) {
        return Err(AddressError::Query);
    }
    let (host, port) = host_and_port(authority)?;
    let path = path.trim_end_matches('/');
    if path.is_empty() || climbs(path) {
        return Err(AddressError::Path);
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
        return Err(AddressError::Character);
    }
    Ok(HttpAddress { tls, host, port: port.unwrap_or(default_port(tls)), path: path.into() })
}

fn ssh(rest: &str) -> Result<SshAddress, AddressError> {
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (login, port) = match authority.rsplit_once(']') {
        Some((_, "")) => (authority, None),
        Some((front, port)) => (&authority[..=front.len()], Some(port.strip_prefix(':').unwrap_or(port))),
        None => {
            // The colon of a password is before the `@`, that of a port after it.
            let host_at = authority.rfind('@').map_or(0, |at| at + 1);
            match authority[host_at..].find(':') {
                Some(colon) => (&authority[..host_at + colon], Some(&authority[host_at + colon + 1..])),
                None => (authority, None),
            }
        }
    };
    ssh_parts(login, port, path.strip_prefix("/~/").unwrap_or(path))
}

fn ssh_parts(login: &str, port: Option<&str>, path: &str) -> Result<SshAddress, AddressError> {
    let (user, host) = login.rsplit_once('@').unwrap_or(("git", login));
    if user.contains(':') {
        return Err(AddressError::SshPassword);
    }
    let (host, _) = host_and_port(host)?;
    let port = port.map_or(Ok(22), port_number)?;
    let plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"'\"\\`$;&|<>".contains(&byte));
    if user.is_empty() || user.starts_with('-') || !plain(user) || !plain(path) {
        return Err(AddressError::Character);
    }
    let path = path.trim_end_matches('/');
    // A path that begins with a dash would be read as an option by the program on the server.
    if path.is_empty() || path.starts_with('-') || climbs(path) {
        return Err(AddressError::Path);
    }
    Ok(SshAddress { user: user.into(), host, port, path: path.into() })
}

/// Splits `user@host:path`, which has no slash before the colon.
fn scp(text: &str) -> Option<(&str, &str)> {
    let (login, path) = text.split_once(':')?;
    (!login.contains('/') && login.len() > 1).then_some((login, path))
}

fn local(text: &str) -> Result<PathBuf, AddressError> {
    match text {
        "" => Err(AddressError::Path),
        text => Ok(PathBuf::from(text)),
    }
}

fn host_and_port(authority: &str) -> Result<(Box<str>, Option<u16>), AddressError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (inside, behind) = rest.split_once(']').ok_or(AddressError::Host)?;
            inside.parse::<std::net::Ipv6Addr>().map_err(|_| AddressError::Host)?;
            let port = match behind.strip_prefix(':') {
                None if behind.is_empty() => None,
                None => return Err(AddressError::Host),
                port => port,
            };
            (&authority[..inside.len() + 2], port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let named = |host: &str| {
        !host.starts_with(['-', '.'])
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    if host.is_empty() || host.len() > 253 || !(host.starts_with('[') || named(host)) {
        return Err(AddressError::Host);
    }
    Ok((host.to_ascii_lowercase().into(), port.map(port_number).transpose()?))
}

fn port_number(text: &str) -> Result<u16, AddressError> {
    match text.parse() {
        Ok(port) if port != 0 && !text.starts_with('+') => Ok(port),
        _ => Err(AddressError::Port),
    }
}

/// True for a path that may lead elsewhere than it says. Servers differ in their treatment of
/// percent-encoded dots, slashes, backslashes and percent signs, so none of them is accepted.
fn climbs(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.split('/').any(|part| part == "..")
        || ["%2e", "%2f", "%5c", "%25", "\\"].iter().any(|code| path.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_the_same_by_whatever_way() {
        let is_same = |a: &str, b: &str| {
            let address = |text| Address::local_or_remote(text).expect("an address");
            address(a).is_same_repository(&address(b))
        };
        assert!(is_same("https://host/a/b.git", "git@host:a/b.git"));
        assert!(is_same("https://host/a/b", "ssh://git@HOST/a/b.git"));
        assert!(!is_same("https://host/a/b", "https://host/a/bb"));
        assert!(!is_same("https://host/a/b", "https://other/a/b"));
        assert!(!is_same("/host/a/b", "https://host/a/b"));
    }

    #[test]
    fn addresses_have_one_form() {
        let table = [
            ("https://host/a/b.git", "https://host/a/b.git"),
            (" HTTPS://Host:443/a/ ", "https://host/a"),
            ("http://host:8080/a", "http://host:8080/a"),
            ("https://[::1]:8443/a", "https://[::1]:8443/a"),
            ("ssh://git@host/a.git", "ssh://git@host/a.git"),
            ("ssh://host:2222/a", "ssh://git@host:2222/a"),
            ("git@host:group/a.git", "ssh://git@host/~/group/a.git"),
            ("git@host:/a", "ssh://git@host/a"),
            ("ssh://git@host/~/group/a.git", "ssh://git@host/~/group/a.git"),
            ("file:///srv/a.git", "/srv/a.git"),
            ("/srv/a.git", "/srv/a.git"),
            ("./a", "./a"),
            ("a/b:c", "a/b:c"),
        ];
        for (text, expect) in table {
            assert_eq!(
                Address::local_or_remote(text).map(|address| address.to_string()).as_deref(),
                Ok(expect),
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_addresses_say_what_to_write_instead() {
        use AddressError as E;
        let table = [
            ("", E::Empty),
            ("https://user:planted@host/a", E::UserInfo),
            ("https://token@host/a", E::UserInfo),
            ("ssh://git:planted@host/a", E::SshPassword),
            ("file:///etc", E::Local),
            ("/etc", E::Local),
            ("../up", E::Local),
            ("FILE:///etc", E::Local),
            ("ftp://host/a", E::Scheme),
            ("git://host/a", E::Scheme),
            ("https://host/a?token=1", E::Query),
            ("https://host/a#b", E::Query),
            ("https:///a", E::Host),
            ("https://ho st/a", E::Host),
            ("https://-host/a", E::Host),
            ("https://[::1/a", E::Host),
            ("https://host:0/a", E::Port),
            ("https://host:99999/a", E::Port),
            ("https://host", E::Path),
            ("https://host/", E::Path),
            ("https://host/a/../b", E::Path),
            ("https://host/a/%2e%2E/b", E::Path),
            ("https://host/a/.%2e/b", E::Path),
            ("https://host/a/..%2fb", E::Path),
            ("https://host/a/..%5Cb", E::Path),
            ("https://host/a/%252e%252e/b", E::Path),
            ("ssh://git@host/a/.%2e/b", E::Path),
            ("https://host/a b", E::Character),
            ("https://host/a\nb", E::Character),
            ("git@host:-option", E::Path),
            ("git@host:a;b", E::Character),
            ("-x@host:a", E::Character),
        ];
        for (text, expect) in table {
            let found = Address::remote(text).expect_err(text);
            assert_eq!(found, expect, "{text}");
            assert!(!found.to_string().contains("planted"), "{text}");
        }
    }

    #[test]
    fn redirects_stay_with_the_host() {
        let base = |text| match Address::remote(text) {
            Ok(Address(Kind::Http(address))) => address,
            other => panic!("{other:?}"),
        };
        let table = [
            ("https://host/a", "https://host/b.git/info/refs?service=x", Some("https://host/b.git")),
            ("https://host/a", "/b/info/refs", Some("https://host/b")),
            ("http://host/a", "https://host/a/info/refs", Some("https://host/a")),
            ("https://host/a", "http://host/a/info/refs", None),
            ("https://host/a", "https://other/a/info/refs", None),
            ("https://host/a", "https://host:8443/a/info/refs", None),
            ("https://host/a", "//other/a/info/refs", None),
            ("https://host/a", "file:///a/info/refs", None),
            ("https://host/a", "https://user:planted@host/a/info/refs", None),
            ("https://host/a", "https://host/login", None),
        ];
        for (from, to, expect) in table {
            let found = base(from).redirected(to, "/info/refs").map(|address| address.to_string());
            assert_eq!(found.as_deref(), expect, "{from} {to}");
        }
    }
}
