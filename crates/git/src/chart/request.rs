//! Request for a chart: its place, a version or a range of versions, and possibly a digest.
//!
//! In: text from a person.
//! Out: a validated [`ChartRequest`], and the [`ChartRef`] of a version that was taken up.

use std::fmt;

use super::chart_version::ChartVersion;
use super::error::ChartError;
use super::reference::{ChartPlace, ChartRef, plain};
use crate::docker_login::LoginTarget;
use crate::semver_range::{self, VersionRange};

/// A chart as a person asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartRequest {
    /// Repository without its last slash, or `oci://host/path/name`.
    pub(super) url: Box<str>,
    /// Name of the chart; in a registry the end of the URL.
    pub(super) name: Box<str>,
    pub(super) is_registry: bool,
    pub(super) version: VersionRequest,
    /// The chart with its digest, if that is given: no server is asked for a version.
    pinned: Option<ChartRef>,
}

/// Version that a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VersionRequest {
    /// The version or tag of this name.
    Exact(Box<str>),
    /// The highest version in a range.
    Range(VersionRange),
}

impl ChartRequest {
    /// Validates the parts of a request. A digest belongs to one version, so it excludes a range.
    pub fn new(
        url: &str,
        name: Option<&str>,
        version: &str,
        digest: Option<&str>,
    ) -> Result<Self, ChartError> {
        let exact = match digest {
            Some(_) => Some(version),
            None => plain("version", version).ok().filter(|version| is_exact(version)),
        };
        let (pinned, version) = match (digest, exact) {
            (Some(digest), _) => {
                (Some(ChartRef::new(url, name, version, digest)?), VersionRequest::Exact(version.into()))
            }
            (None, Some(version)) => (None, VersionRequest::Exact(version.into())),
            (None, None) => (None, VersionRequest::Range(version.parse().map_err(ChartError::Range)?)),
        };
        let (name, is_registry) = ChartPlace::name_of(url, name)?;
        Ok(Self { url: url.trim_end_matches('/').into(), name: name.into(), is_registry, version, pinned })
    }

    /// Requests a dependency at the exact version of a lock. The name is appended to the URL of a
    /// registry.
    pub fn locked(repository: &str, name: &str, version: &str) -> Result<Self, ChartError> {
        let version = VersionRequest::Exact(plain("version", version)?.into());
        let (url, name, is_registry) = match repository.starts_with("oci://") {
            true => (format!("{}/{name}", repository.trim_end_matches('/')), plain("name", name)?, true),
            false => (repository.trim_end_matches('/').to_owned(), plain("name", name)?, false),
        };
        Ok(Self { url: url.into(), name: name.into(), is_registry, version, pinned: None })
    }

    /// True if both are on the same server.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.server() == other.server()
    }

    /// Returns the chart, if the request has a digest.
    pub fn pinned(&self) -> Option<&ChartRef> {
        self.pinned.as_ref()
    }

    /// Returns the chart of a version that was taken up for this request; none if the version does
    /// not fit the request.
    pub fn at(&self, taken: &ChartVersion) -> Option<ChartRef> {
        let fits = match &self.version {
            VersionRequest::Exact(version) => *version == taken.version,
            VersionRequest::Range(range) => range.best([&*taken.version].into_iter()).is_some(),
        };
        if !fits || taken.name != self.name {
            return None;
        }
        let (url, version) = (self.url.clone(), taken.version.clone());
        let place = match self.is_registry {
            true => ChartPlace::Registry { url, version },
            false => ChartPlace::Repository { url, name: self.name.clone(), version },
        };
        Some(ChartRef { place, digest: taken.digest, was_taken_up: true })
    }

    /// Returns repository and name, without the version.
    pub fn place(&self) -> String {
        match self.is_registry {
            true => self.url.to_string(),
            false => format!("{}/{}", self.url, self.name),
        }
    }

    /// Returns the key of what is known of the server: its URL.
    pub(in super::super) fn index_key(&self) -> Box<str> {
        self.url.clone()
    }

    /// Returns the key of an answer about one chart of a registry.
    pub(in super::super) fn answer_key(&self) -> Box<str> {
        self.version.to_string().into()
    }

    pub(in super::super) fn is_in_registry(&self) -> bool {
        self.is_registry
    }

    /// Returns server and path as a file of logins names them.
    pub fn login_target(&self) -> LoginTarget {
        let path = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let (server, path) = path.split_once('/').unwrap_or((path, ""));
        LoginTarget::new(server, path)
    }

    /// Returns host and port of the server, as written.
    pub fn authority(&self) -> Box<str> {
        self.server().rsplit("//").next().unwrap_or_default().into()
    }

    /// Returns the host of the server, without a port.
    pub fn host(&self) -> Box<str> {
        let authority = self.authority();
        let end = authority.rfind(':').filter(|colon| !authority[*colon..].contains(']'));
        authority[..end.unwrap_or(authority.len())].into()
    }

    /// Returns scheme, host and port of the server.
    pub(in super::super) fn server(&self) -> Box<str> {
        ChartPlace::server_of(&self.url)
    }

    /// True if a version was published again with other content. A name that is no version, such
    /// as `latest`, is followed like a branch.
    pub(in super::super) fn is_moved(&self, known: &ChartVersion, found: &ChartVersion) -> bool {
        semver_range::is_version(&found.version)
            && (&known.name, &known.version) == (&found.name, &found.version)
            && known.digest != found.digest
    }
}

impl fmt::Display for VersionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(version) => write!(f, "version {version}"),
            Self::Range(range) => write!(f, "version in the range {range}"),
        }
    }
}

/// True for a whole version, and for a name that no range can be.
fn is_exact(version: &str) -> bool {
    semver_range::is_version(version) || version.parse::<VersionRange>().is_err()
}

#[cfg(test)]
mod tests {
    use super::super::reference::Digest;
    use super::*;

    #[test]
    fn a_version_is_exact_a_range_or_a_name() {
        let request = |version: &str| ChartRequest::new("https://host/charts/", Some("web"), version, None);
        for (version, expect) in [
            ("1.2.3", "version 1.2.3"),
            ("v1.2.3-rc.1+b", "version v1.2.3-rc.1+b"),
            ("latest", "version latest"),
            ("1.2", "version in the range 1.2"),
            ("1.x", "version in the range 1.x"),
            (">=1.2 <2 || ~3.1", "version in the range >=1.2 <2 || ~3.1"),
            ("*", "version in the range *"),
        ] {
            assert_eq!(request(version).unwrap().version.to_string(), expect);
        }
        for wrong in ["", ">=", "1.2.3 -", "../1"] {
            assert_eq!(request(wrong).unwrap_err().reason(), "ChartRefInvalid", "{wrong}");
        }
        let digest = Digest::hash(b"x").to_string();
        let pinned = |version: &str| ChartRequest::new("oci://host/web", None, version, Some(&digest));
        assert!(pinned("1.2").unwrap().pinned().is_some());
        let problem = pinned(">=1.2").unwrap_err().to_string();
        assert!(problem.contains("version has to be"), "{problem}");
    }

    #[test]
    fn a_version_that_was_taken_up_has_to_fit_the_request() {
        let request = ChartRequest::new("oci://host/charts/web", None, "1.x", None).unwrap();
        let taken = |name: &str, version: &str| ChartVersion {
            name: name.into(),
            version: version.into(),
            digest: Digest::hash(b"x"),
        };
        assert_eq!(
            request.at(&taken("web", "1.4.0")).unwrap().place.to_string(),
            "oci://host/charts/web 1.4.0"
        );
        assert_eq!(request.at(&taken("web", "2.0.0")), None);
        assert_eq!(request.at(&taken("db", "1.4.0")), None);
        assert_eq!((request.place(), &*request.host()), ("oci://host/charts/web".to_owned(), "host"));
        for (url, host, authority) in [
            ("oci://Host:5000/charts/web", "host", "host:5000"),
            ("oci://[::1]:5000/charts/web", "[::1]", "[::1]:5000"),
            ("oci://[::1]/charts/web", "[::1]", "[::1]"),
        ] {
            let request = ChartRequest::new(url, None, "1.x", None).unwrap();
            assert_eq!((&*request.host(), &*request.authority()), (host, authority));
        }
        let other = ChartVersion { digest: Digest::hash(b"y"), ..taken("web", "1.4.0") };
        assert!(request.is_moved(&taken("web", "1.4.0"), &other));
        assert!(!request.is_moved(&taken("web", "1.3.0"), &other));
        let latest = ChartVersion { digest: Digest::hash(b"y"), ..taken("web", "latest") };
        assert!(!request.is_moved(&taken("web", "latest"), &latest), "a tag without a version moves");
    }
}
