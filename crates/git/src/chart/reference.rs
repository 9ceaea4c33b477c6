//! Reference to a chart: its place, version and digest.
//!
//! In: text from a person.
//! Out: a validated [`ChartRef`]. It always has a digest: a version is only a name, and can be
//! published again with other content.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::error::ChartError;

/// Maximum number of bytes of a name or a version.
const MAX_TEXT_BYTES: usize = 128;

/// One version of one chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartRef {
    /// Place of publication.
    pub place: ChartPlace,
    /// Digest of the archive; in a registry it may also be that of the manifest.
    pub digest: Digest,
    /// True if the digest is the one that the server announced when the version was taken up.
    pub(in super::super) was_taken_up: bool,
}

/// Place of publication of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChartPlace {
    /// A repository with an index.
    Repository {
        /// The folder of `index.yaml`, over https or http.
        url: Box<str>,
        /// Name of the chart.
        name: Box<str>,
        /// Exact version.
        version: Box<str>,
    },
    /// A registry.
    Registry {
        /// `oci://host/path/name`.
        url: Box<str>,
        /// Exact version: the tag.
        version: Box<str>,
    },
}

impl ChartRef {
    /// Validates the parts of a reference. An `oci://` URL contains the chart's name; every other
    /// URL needs it separately.
    pub fn new(url: &str, name: Option<&str>, version: &str, digest: &str) -> Result<Self, ChartError> {
        let digest = Digest::parse(digest).ok_or(ChartError::Field {
            field: "digest",
            problem: "is no digest; write sha256: and 64 hex digits of the archive",
        })?;
        let version: Box<str> = plain("version", version)?.into();
        let place = match ChartPlace::name_of(url, name)? {
            (_, true) => ChartPlace::Registry { url: url.into(), version },
            (name, false) => ChartPlace::Repository { url: url.into(), name: name.into(), version },
        };
        Ok(Self { place, digest, was_taken_up: false })
    }
}

impl ChartPlace {
    /// Returns scheme, host and port as written. The schemes https and oci count as one server.
    pub(in super::super) fn server(&self) -> Box<str> {
        let (Self::Repository { url, .. } | Self::Registry { url, .. }) = self;
        Self::server_of(url)
    }

    /// Returns the name of the chart, and true if the URL is one of a registry.
    pub(super) fn name_of<'a>(url: &'a str, name: Option<&'a str>) -> Result<(&'a str, bool), ChartError> {
        let is_registry = url.get(..6).is_some_and(|front| front.eq_ignore_ascii_case("oci://"));
        let refuse = |problem| Err(ChartError::Field { field: "name", problem });
        match (is_registry, name) {
            (true, None) => Ok((url.trim_end_matches('/').rsplit('/').next().unwrap_or_default(), true)),
            (true, Some(_)) => refuse("is written in the URL of a registry, and nowhere else"),
            (false, Some(name)) => Ok((plain("name", name)?, false)),
            (false, None) => refuse("is missing"),
        }
    }

    pub(super) fn server_of(url: &str) -> Box<str> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // User info before the host may be secret.
        let host = host.rsplit('@').next().unwrap_or_default();
        let scheme = if scheme.eq_ignore_ascii_case("http") { "http" } else { "https" };
        format!("{scheme}://{}", host.to_ascii_lowercase()).into()
    }
}

impl fmt::Display for ChartPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository { url, name, version } => {
                write!(f, "{}/{name} {version}", url.trim_end_matches('/'))
            }
            Self::Registry { url, version } => write!(f, "{url} {version}"),
        }
    }
}

/// True for the name or the version of a chart.
pub(super) fn is_plain(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    (1..=MAX_TEXT_BYTES).contains(&text.len())
        && text.bytes().all(allowed)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

pub(super) fn plain<'a>(field: &'static str, text: &'a str) -> Result<&'a str, ChartError> {
    let problem = "has to be of letters, digits, dots, dashes, underscores and plus signs, and begins with a letter or digit";
    if is_plain(text) { Ok(text) } else { Err(ChartError::Field { field, problem }) }
}

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Parses 64 hex digits, with or without the prefix `sha256:`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// Hashes these bytes.
    pub fn hash(bytes: &[u8]) -> Self {
        let mut digest = [0; 32];
        digest.copy_from_slice(&Sha256::digest(bytes));
        Self(digest)
    }

    /// Returns the digest with this hash.
    pub(crate) fn of_hash(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// Returns the first bytes, as many as an object of Git has.
    pub(crate) fn first_bytes(self) -> [u8; 20] {
        let mut first = [0; 20];
        first.copy_from_slice(&self.0[..20]);
        first
    }

    /// Checks that `bytes` have this digest; `what` names them in the error.
    pub(super) fn expect(self, bytes: &[u8], what: &'static str) -> Result<(), ChartError> {
        self.expect_announced(Some(Self::hash(bytes)), what)
    }

    /// Checks that an announced digest, if any, is this one.
    pub(super) fn expect_announced(self, found: Option<Self>, what: &'static str) -> Result<(), ChartError> {
        match found.filter(|found| *found != self) {
            None => Ok(()),
            Some(found) => Err(ChartError::Digest {
                what,
                wanted: self.to_string().into(),
                found: found.to_string().into(),
            }),
        }
    }

    /// Returns the hex digits alone.
    pub(crate) fn digits(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.digits())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_whole_or_refused() {
        let digest = Digest::hash(b"x").to_string();
        let check = |url: &str, name: Option<&str>, version: &str, digest: &str| {
            ChartRef::new(url, name, version, digest).map_err(|error| error.to_string())
        };
        assert!(check("https://host/charts", Some("web"), "1.2.3+b", &digest).is_ok());
        assert!(check("OCI://host/charts/web", None, "1.2.3", &digest[7..]).is_ok());
        let long = "1".repeat(129);
        for (url, name, version, digest, part) in [
            ("https://host", Some("web"), "1.2.3", "sha256:12", "64 hex digits"),
            ("https://host", Some("web"), "1.2.3", "", "64 hex digits"),
            ("https://host", None, "1.2.3", &digest, "name is missing"),
            ("oci://host/web", Some("web"), "1.2.3", &digest, "in the URL of a registry"),
            ("https://host", Some("../web"), "1.2.3", &digest, "name has to be"),
            ("https://host", Some("web"), "", &digest, "version has to be"),
            ("https://host", Some("web"), "../1", &digest, "version has to be"),
            ("https://host", Some("web"), "*", &digest, "version has to be"),
            ("https://host", Some("web"), &long, &digest, "version has to be"),
        ] {
            let problem = check(url, name, version, digest).unwrap_err();
            assert!(problem.contains(part), "{url} {name:?} {version}: {problem}");
        }
    }
}
