//! Policy for the hosts that may be contacted: the operator's list, and hosts that are blocked by
//! default.
//!
//! In: entries of a setting; a host and the resolved address.
//! Out: allowed or refused. A name is resolved once, and the checked address is the one connected
//! to, so a DNS name that changes its address in between cannot bypass the check. If a proxy
//! resolves names, only names can be checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::error::Error;
use crate::public_address::{is_guarded, number, same};

/// Hosts that may be contacted; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPolicy(Arc<Rules>);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Rules {
    /// Allows all hosts: for a command on a person's own machine.
    all: bool,
    /// Allowed names, each including its subdomains; `*` for all.
    names: Vec<Box<str>>,
    /// Allowed addresses, including blocked ranges.
    networks: Vec<IpNetwork>,
    /// Allows the loopback addresses.
    loopback: bool,
    /// Addresses of the API server.
    api: Vec<SocketAddr>,
}

/// An IP network in CIDR notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IpNetwork {
    address: IpAddr,
    bits: u8,
}

/// Reason for refusing a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct HostRefused(pub(super) &'static str);

const UNLISTED: HostRefused = HostRefused(
    "the setting allowedHosts of the daemon has no entry for it; write a URL on one of the hosts that are allowed, or ask the administrator of the daemon",
);

const GUARDED: HostRefused = HostRefused(
    "it is a loopback, link-local or cloud metadata address, or the API server; if it is intended, add its address to the setting allowedHosts of the daemon",
);

/// Names of metadata services, which hand out a machine's credentials, and of the API server in a
/// cluster.
const GUARDED_NAMES: [&str; 9] = [
    "localhost",
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// Entry for all names.
const ALL: &str = "*";

impl HostPolicy {
    /// Allows all hosts, for a command on a person's own machine.
    pub fn allow_all() -> Self {
        Self(Arc::new(Rules { all: true, ..Rules::default() }))
    }

    /// Parses the entries of a setting: names (each including its subdomains), `*` for all names,
    /// addresses, and networks such as `10.0.0.0/8`. Without entries all names are allowed.
    pub fn new<'a>(setting: &'static str, entries: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let mut rules = Rules::default();
        for entry in entries {
            match IpNetwork::parse(entry) {
                Some(network) => rules.networks.push(network),
                None if is_name(entry) => rules.names.push(plain(entry).into()),
                None => return Err(Error::Setting { setting, problem: FORM }),
            }
        }
        if rules.names.is_empty() && rules.networks.is_empty() {
            rules.names.push(ALL.into());
        }
        Ok(Self(Arc::new(rules)))
    }

    /// Allows the loopback addresses as well.
    pub fn with_loopback(self) -> Self {
        Self(Arc::new(Rules { loopback: true, ..Rules::clone(&self.0) }))
    }

    /// Blocks the API server at these addresses.
    pub fn without_api_server(self, api: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self(Arc::new(Rules { api: api.into_iter().collect(), ..Rules::clone(&self.0) }))
    }

    /// Checks a host that is contacted through a proxy, which resolves its name.
    pub(super) fn named(&self, host: &str, port: u16) -> Result<(), HostRefused> {
        match literal(host) {
            Some(address) => self.address(host, SocketAddr::new(address, port)),
            None if self.0.all => Ok(()),
            None => self.name(host),
        }
    }

    /// Checks that a name may be resolved.
    pub(super) fn may_look_up(&self, host: &str) -> Result<(), HostRefused> {
        match self.0.all || literal(host).is_some() || !self.0.networks.is_empty() || self.0.loopback {
            // The resolved address decides.
            true => Ok(()),
            false => self.name(host),
        }
    }

    /// Checks that the resolved address of a host may be connected to.
    pub(super) fn address(&self, host: &str, address: SocketAddr) -> Result<(), HostRefused> {
        let (rules, ip) = (&*self.0, address.ip());
        let is_own = rules.loopback && ip.to_canonical().is_loopback();
        if rules.all || is_own || rules.networks.iter().any(|network| network.has(ip)) {
            return Ok(());
        }
        let is_api = |api: &SocketAddr| api.port() == address.port() && same(api.ip(), ip);
        if is_guarded(ip) || rules.api.iter().any(is_api) {
            return Err(GUARDED);
        }
        match literal(host) {
            Some(_) if rules.names.iter().any(|name| &**name == ALL) => Ok(()),
            Some(_) => Err(UNLISTED),
            None => self.name(host),
        }
    }

    /// True if the operator lists a host itself, or a network with its address.
    pub(super) fn lists(&self, host: &str, address: IpAddr) -> bool {
        let host = plain(host);
        let is_below = |name: &str| {
            host.strip_suffix(name).is_some_and(|front| front.is_empty() || front.ends_with('.'))
        };
        let has_name = self.0.names.iter().any(|name| &**name != ALL && is_below(name));
        has_name || self.0.networks.iter().any(|network| network.has(address))
    }

    fn name(&self, host: &str) -> Result<(), HostRefused> {
        let host = plain(host);
        let below = |name: &str| {
            host.strip_suffix(name).is_some_and(|front| front.is_empty() || front.ends_with('.'))
        };
        let is_api = host.starts_with("kubernetes.default.svc.");
        if GUARDED_NAMES.contains(&&*host) || host.ends_with(".localhost") || is_api {
            return Err(GUARDED);
        }
        match self.0.names.iter().any(|name| &**name == ALL || below(name)) {
            true => Ok(()),
            false => Err(UNLISTED),
        }
    }
}

/// Error for an invalid entry of the setting.
pub(super) const FORM: &str = "has an entry that is not a host name, address or network; write for example git.example.com, 10.0.0.0/8 or *";

impl IpNetwork {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most))?;
        Some(Self { address, bits })
    }

    fn has(self, address: IpAddr) -> bool {
        let shifted =
            |bits: u128, width: u32| bits.checked_shr(width.saturating_sub(self.bits.into())).unwrap_or(0);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                shifted(own.to_bits().into(), 32) == shifted(other.to_bits().into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                shifted(own.to_bits(), 128) == shifted(other.to_bits(), 128)
            }
            _ => false,
        }
    }
}

fn is_name(text: &str) -> bool {
    let text = plain(text);
    let is_sound = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    text == ALL || (text.len() <= 253 && number(&text).is_none() && text.split('.').all(is_sound))
}

/// Returns a name in canonical form for comparison.
fn plain(name: &str) -> String {
    let name = name.trim().trim_end_matches('.');
    let name = if name == ALL { name } else { name.trim_start_matches("*.").trim_start_matches('.') };
    name.to_ascii_lowercase()
}

/// Parses a host that is an IP address, in any form that an operating system accepts.
fn literal(host: &str) -> Option<IpAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().ok().or_else(|| number(host.trim_end_matches('.')).map(IpAddr::V4))
}

#[cfg(test)]
#[path = "hosts/tests.rs"]
mod tests;
