//! Mirrors of registries, which the operator lists.
//!
//! In: registries and their mirrors, as in the settings. Out: the mirrors of a registry, in the
//! order in which they are asked before the registry itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::address::{Address, HttpAddress, Kind};
use super::artifact::RegistryAddress;
use super::error::Error;
use moorline_runtime::clock;

/// Maximum number of mirrors of one registry.
const MAX_MIRRORS: usize = 8;

/// Part of the time that is left, which one mirror may take.
const SHARE: u32 = 2;

/// Mirrors by the host and port of their registries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryMirrors(BTreeMap<Box<str>, Vec<HttpAddress>>);

impl RegistryMirrors {
    /// Parses the entries of a setting: a registry (`host` or `host:port`), and its mirrors
    /// (`host[:port][/path]`), which are contacted over https.
    pub fn new<'a, M: IntoIterator<Item = &'a str>>(
        setting: &'static str,
        entries: impl IntoIterator<Item = (&'a str, M)>,
    ) -> Result<Self, Error> {
        let refuse = |problem| Error::Setting { setting, problem };
        let mut all: BTreeMap<Box<str>, Vec<HttpAddress>> = BTreeMap::new();
        for (registry, mirrors) in entries {
            let registry = RegistryAddress::of_host(registry).map_err(|_| refuse(REGISTRY))?;
            let mirrors = mirrors.into_iter().map(|mirror| base(mirror).ok_or_else(|| refuse(MIRROR)));
            let known = all.entry(registry.host_and_port().into()).or_default();
            mirrors.into_iter().try_for_each(|mirror| mirror.map(|mirror| known.push(mirror)))?;
            if known.len() > MAX_MIRRORS {
                return Err(refuse("has more than 8 mirrors of one registry"));
            }
        }
        Ok(Self(all))
    }

    /// Returns the addresses of a repository on the mirrors of its registry.
    pub(super) fn of(&self, address: &RegistryAddress) -> Vec<RegistryAddress> {
        let mirrors = self.0.get(&*address.host_and_port()).into_iter().flatten();
        mirrors.map(|mirror| address.on_mirror(mirror)).collect()
    }
}

/// Returns the time by which a mirror has to answer, so that there is time for the next one.
pub(super) fn deadline(by: Instant) -> Instant {
    let now = clock::now();
    let left: Duration = by.saturating_duration_since(now);
    now + left / SHARE
}

/// Problems of the setting.
const REGISTRY: &str =
    "has a registry that is no host; write for example docker.io or registry.example.com:5000";
const MIRROR: &str = "has a mirror that is no host with a path; write for example mirror.example.com/docker-hub; mirrors are contacted over https";

/// Parses a mirror.
fn base(text: &str) -> Option<HttpAddress> {
    let text = text.trim().trim_end_matches('/');
    if text.contains("://") {
        return None;
    }
    let (host, path) = text.split_once('/').map_or((text, ""), |(host, path)| (host, path));
    let slash = if path.is_empty() { "" } else { "/" };
    let address = Address::remote(&format!("https://{host}/v2{slash}{path}")).ok()?;
    match address.kind() {
        Kind::Http(address) if RegistryAddress::is_path(path) => Some(address.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::LayerSelection;

    #[test]
    fn a_mirror_serves_the_repositories_of_its_registry_alone() {
        let entries = [
            ("docker.io", vec!["mirror.example/hub", "second.example:5000"]),
            ("Host:5000", vec!["third.example"]),
        ];
        let mirrors = RegistryMirrors::new("registryMirrors", entries).unwrap();
        let of = |url: &str| {
            let address = RegistryAddress::new(url, LayerSelection::default()).unwrap();
            let places = mirrors.of(&address).into_iter().map(|mirror| mirror.endpoint("/tags/list"));
            places.collect::<Vec<_>>()
        };
        let official =
            ["https://mirror.example/v2/hub/library/web", "https://second.example:5000/v2/library/web"];
        assert_eq!(of("oci://docker.io/web"), official.map(|place| format!("{place}/tags/list")));
        assert_eq!(of("oci://registry-1.docker.io/library/web"), of("oci://docker.io/web"));
        assert_eq!(of("oci://host:5000/a/web"), ["https://third.example/v2/a/web/tags/list"]);
        assert!(of("oci://host/a/web").is_empty() && of("oci://other/web").is_empty());
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for (registry, mirror) in [
            ("", "a"),
            ("host/path", "a"),
            ("oci://host", "a"),
            ("me:planted@host", "a"),
            ("host", ""),
            ("host", "http://a"),
            ("host", "https://a"),
            ("host", "me:planted@a"),
            ("host", "a/Upper"),
            ("host", "a/../b"),
            ("host", "a?x"),
        ] {
            let refused = RegistryMirrors::new("registryMirrors", [(registry, [mirror])]);
            let message = refused.unwrap_err().to_string();
            assert!(message.starts_with("the setting registryMirrors has a"), "{message}");
            assert!(!message.contains("planted"));
        }
        assert!(RegistryMirrors::new("registryMirrors", [("a", ["b"; 9])]).is_err());
    }
}
