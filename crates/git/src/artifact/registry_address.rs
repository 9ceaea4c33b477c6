//! Address of a repository in a registry, and the layer to read of its artifacts.
//!
//! In: text as a person wrote it.
//! Out: a [`RegistryAddress`]. The selection of the layer is a part of it: two Syncs that read
//! different layers of one artifact have different files for the same digest.

use std::fmt;

use super::super::address::{Address, AddressError, HttpAddress, Kind};
use super::super::docker_login::LoginTarget;

/// Maximum number of bytes of a media type.
const MAX_MEDIA_TYPE_BYTES: usize = 255;

/// Maximum number of bytes of the path of a repository.
const MAX_PATH_BYTES: usize = 255;

/// Names of Docker Hub in references; its registry has another host.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// Host of the registry of Docker Hub.
const DOCKER_HUB_HOST: &str = "registry-1.docker.io";

/// Group of the repositories of Docker Hub that are named without one.
const DOCKER_HUB_OFFICIAL: &str = "library";

/// A repository in a registry, without a tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistryAddress {
    server: HttpAddress,
    /// Path of the repository, without a slash at either end.
    repository: Box<str>,
    layer: LayerSelection,
}

/// The layer of an artifact that holds the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerSelection {
    /// Media type of the layer; none for the only one.
    pub media_type: Option<Box<str>>,
    /// True if the layer is one file, also if it is an archive.
    pub copies: bool,
}

impl RegistryAddress {
    /// Parses `oci://host[:port]/path`.
    pub fn new(text: &str, layer: LayerSelection) -> Result<Self, AddressError> {
        Self::with_scheme(text, "https", layer)
    }

    /// Parses the address of a registry that is contacted over http, for a command of a person.
    pub fn plain(text: &str, layer: LayerSelection) -> Result<Self, AddressError> {
        Self::with_scheme(text, "http", layer)
    }

    fn with_scheme(text: &str, scheme: &str, layer: LayerSelection) -> Result<Self, AddressError> {
        let (given, rest) = text.trim().split_once("://").ok_or(AddressError::RegistryScheme)?;
        if !given.eq_ignore_ascii_case("oci") {
            return Err(AddressError::RegistryScheme);
        }
        let Address(Kind::Http(mut server)) = Address::remote(&format!("{scheme}://{rest}"))? else {
            return Err(AddressError::Host);
        };
        let is_long = |media: &str| media.len() > MAX_MEDIA_TYPE_BYTES || !media.contains('/');
        let mut repository: Box<str> = server.path.trim_matches('/').into();
        if !repository.split('/').all(is_path_part)
            || repository.len() > MAX_PATH_BYTES
            || layer.media_type.as_deref().is_some_and(is_long)
        {
            return Err(AddressError::RegistryPath);
        }
        if DOCKER_HUB.contains(&&*server.host) {
            server.host = DOCKER_HUB_HOST.into();
            if !repository.contains('/') {
                repository = format!("{DOCKER_HUB_OFFICIAL}/{repository}").into();
            }
        }
        server.path = "/v2".into();
        Ok(Self { server, repository, layer })
    }

    /// Parses the host and port of a registry alone.
    pub(crate) fn of_host(text: &str) -> Result<Self, AddressError> {
        match text.contains(['/', '?', '#']) {
            true => Err(AddressError::Host),
            false => Self::new(&format!("oci://{}/any", text.trim()), LayerSelection::default()),
        }
    }

    /// Returns the address of the same repository on a mirror.
    pub(crate) fn on_mirror(&self, mirror: &HttpAddress) -> Self {
        let mut server = mirror.clone();
        let prefix = std::mem::replace(&mut server.path, "/v2".into());
        let prefix = prefix.trim_start_matches("/v2").trim_matches('/');
        let slash = if prefix.is_empty() { "" } else { "/" };
        let repository = format!("{prefix}{slash}{}", self.repository).into();
        Self { server, repository, layer: self.layer.clone() }
    }

    /// True for a path of repositories, or none.
    pub(crate) fn is_path(path: &str) -> bool {
        path.is_empty() || path.split('/').all(is_path_part)
    }

    /// Returns scheme, host and port, the name of the server in messages.
    pub(crate) fn server(&self) -> String {
        self.server.server()
    }

    /// Returns the host that is contacted.
    pub fn host(&self) -> &str {
        &self.server.host
    }

    /// Returns host and port as a file with logins names them.
    pub(crate) fn host_and_port(&self) -> String {
        let server = self.server.server();
        server.split_once("://").map_or_else(String::new, |(_, host)| host.to_owned())
    }

    /// Returns server and path as a file of logins names them.
    pub(crate) fn login_target(&self) -> LoginTarget {
        LoginTarget::new(&self.host_and_port(), &self.repository)
    }

    /// Returns the path of the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// True over https.
    pub(crate) fn is_tls(&self) -> bool {
        self.server.tls
    }

    /// Returns the selection of the layer.
    pub(crate) fn layer(&self) -> &LayerSelection {
        &self.layer
    }

    /// Returns the URL of an endpoint below the repository, which begins with a slash.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        format!("{}/{}{path}", self.server, self.repository)
    }
}

impl Address {
    /// Returns the repository of a registry.
    pub fn registry(&self) -> Option<&RegistryAddress> {
        match &self.0 {
            Kind::Registry(address) => Some(address),
            Kind::Http(_) | Kind::Ssh(_) | Kind::Local(_) => None,
        }
    }
}

impl From<RegistryAddress> for Address {
    fn from(address: RegistryAddress) -> Self {
        Self(Kind::Registry(address))
    }
}

/// True for a part of a path as registries allow it: lower-case letters and digits, with single
/// dots, one or two underscores, or dashes between them.
fn is_path_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|byte| is_plain(*byte)))
        && bytes.iter().all(|byte| is_plain(*byte) || b"._-".contains(byte))
        && !part.contains("..")
}

impl fmt::Display for RegistryAddress {
    /// Formats `oci://host/path`; a selection of the layer follows, so that addresses differ where
    /// files do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host_and_port();
        let host = if host == DOCKER_HUB_HOST { DOCKER_HUB[0] } else { &host };
        write!(f, "oci://{host}/{}", self.repository)?;
        match (&self.layer.media_type, self.layer.copies) {
            (None, false) => Ok(()),
            (None, true) => f.write_str("#copy"),
            (Some(media), false) => write!(f, "#{media}"),
            (Some(media), true) => write!(f, "#copy:{media}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_named_with_the_repository() {
        let shown = |url: &str| {
            RegistryAddress::new(url, LayerSelection::default())
                .map(|address| (address.to_string(), address.endpoint("/tags/list")))
        };
        let both = |shown: &str, place: &str| Ok((shown.to_owned(), format!("{place}/tags/list")));
        assert_eq!(shown("oci://Host/a/web"), both("oci://host/a/web", "https://host/v2/a/web"));
        assert_eq!(shown("OCI://host:5000/web/"), both("oci://host:5000/web", "https://host:5000/v2/web"));
        assert_eq!(shown("oci://host:443/web"), both("oci://host/web", "https://host/v2/web"));
        let hub = both("oci://docker.io/a/web", "https://registry-1.docker.io/v2/a/web");
        assert_eq!(shown("oci://index.docker.io/a/web"), hub);
        assert_eq!(shown("oci://docker.io/a/web"), hub);
        let official = both("oci://docker.io/library/web", "https://registry-1.docker.io/v2/library/web");
        assert_eq!(shown("oci://docker.io/web"), official);
        for (wrong, expect) in [
            ("https://host/web", AddressError::RegistryScheme),
            ("host/web", AddressError::RegistryScheme),
            ("oci://host", AddressError::Path),
            ("oci://host/", AddressError::Path),
            ("oci://me:planted@host/web", AddressError::UserInfo),
            ("oci://host/../web", AddressError::Path),
            ("oci://host/a//web", AddressError::RegistryPath),
            ("oci://host/Web", AddressError::RegistryPath),
            ("oci://host/-web", AddressError::RegistryPath),
            ("oci://host/web:1", AddressError::RegistryPath),
            ("oci://host/web@sha256:1", AddressError::RegistryPath),
            ("oci://host/web?x", AddressError::Query),
        ] {
            assert_eq!(shown(wrong), Err(expect), "{wrong}");
        }
    }

    #[test]
    fn other_layers_are_another_source() {
        let shown = |media: Option<&str>, copies| {
            let layer = LayerSelection { media_type: media.map(Into::into), copies };
            RegistryAddress::new("oci://host/web", layer).map(|address| address.to_string())
        };
        let all =
            [shown(None, false), shown(None, true), shown(Some("a/b"), false), shown(Some("a/b"), true)];
        let texts: std::collections::BTreeSet<_> = all.iter().map(|one| one.clone().unwrap()).collect();
        assert_eq!(texts.len(), all.len());
        assert_eq!(shown(Some("none"), false), Err(AddressError::RegistryPath));
    }
}
