//! Resolves host names, and checks the addresses.
//!
//! In: a host.
//! Out: its allowed addresses; connecting to exactly these ensures that the checked address is
//! used. Resolution runs on the calling thread.

use std::net::{SocketAddr, ToSocketAddrs};

use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::hosts::{HostPolicy, HostRefused};
use crate::public_address;

/// Maximum number of addresses of a host that are tried.
pub(super) const MAX_ADDRESSES: usize = 16;

/// Addresses that a name may resolve to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressScope {
    /// All: the host is configured by a person.
    Anywhere,
    /// Public ones, and those that the operator lists: the host is named by a server, which must
    /// not make the daemon contact its own network.
    PublicOrListed,
}

impl AddressScope {
    /// Checks a literal IP address that is contacted through a proxy.
    pub(super) fn of_literal(self, host: &str) -> Result<(), HostRefused> {
        let is_inner = host.parse().is_ok_and(|address| !public_address::is_public(address));
        match self != Self::Anywhere && is_inner {
            true => Err(HostRefused("a server refers to it, and it is not a public address")),
            false => Ok(()),
        }
    }
}

/// Resolves names on the calling thread. ureq's default resolver starts a thread for each lookup
/// and abandons it on timeout; the system's own lookup has a timeout.
#[derive(Debug)]
pub(super) struct SameThreadResolver(pub(super) AddressScope, pub(super) HostPolicy);

impl Resolver for SameThreadResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let (host, port) = host_and_port(uri).ok_or(ureq::Error::HostNotFound)?;
        let found = resolved(&self.1, host, port).map_err(|error| match error {
            ResolveError::Unknown => ureq::Error::HostNotFound,
            ResolveError::Refused(refused) => ureq::Error::Other(Box::new(refused)),
        })?;
        let found = found.into_iter().filter(|found| match self.0 {
            AddressScope::Anywhere => true,
            AddressScope::PublicOrListed => {
                public_address::is_public(found.ip()) || self.1.lists(host, found.ip())
            }
        });
        let mut addresses = self.empty();
        config.ip_family().keep_wanted(found).take(MAX_ADDRESSES).for_each(|address| addresses.push(address));
        match addresses.is_empty() {
            true => Err(ureq::Error::HostNotFound),
            false => Ok(addresses),
        }
    }
}

/// Returns host and port, without the brackets of an IPv6 address.
pub(super) fn host_and_port(uri: &Uri) -> Option<(&str, u16)> {
    let authority = uri.authority()?;
    let port = authority.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    Some((authority.host().trim_start_matches('[').trim_end_matches(']'), port))
}

/// Error of resolving a name.
pub(super) enum ResolveError {
    /// The name is unknown.
    Unknown,
    /// The host is not allowed.
    Refused(HostRefused),
}

/// Returns the allowed addresses of a host, resolved on this thread. Connecting to exactly these
/// ensures that the checked address is used.
pub(super) fn resolved(hosts: &HostPolicy, host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
    hosts.may_look_up(host).map_err(ResolveError::Refused)?;
    let found = (host, port).to_socket_addrs().map_err(|_| ResolveError::Unknown)?;
    let (mut allowed, mut refused) = (Vec::new(), None);
    for address in found {
        match hosts.address(host, address) {
            Ok(()) => allowed.push(address),
            Err(why) => refused = Some(why),
        }
    }
    match (allowed.is_empty(), refused) {
        (true, Some(why)) => Err(ResolveError::Refused(why)),
        (true, None) => Err(ResolveError::Unknown),
        (false, _) => Ok(allowed),
    }
}
